package graph

import (
	"context"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/model"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/telemetry"
)

// refused converts the error of a mutation. A refusal becomes userErrors of the payload
// that the resolver returned beside it, nil = an empty one; other errors stay errors.
func (r *Resolver) refused(ctx context.Context, payload any, err error) (any, error) {
	refusal, ok := fault.AsRefusal(err)
	if !ok {
		if refusal = expected(err); refusal == nil {
			return nil, err
		}
	}
	field := graphql.GetFieldContext(ctx).Field.Name
	telemetry.OperationFrom(ctx).Fail(string(refusal.Reason()))
	set, ok := payloads[field]
	if !ok {
		return nil, fmt.Errorf("no payload is known for %s: %w", field, err)
	}
	var errs []model.UserError
	for _, each := range fault.Each(refusal) {
		errs = append(errs, r.userError(ctx, each))
	}
	return set(payload, errs), nil
}

// expected returns the refusal that a fault stands for in a mutation, where a wait and an
// unknown id are always userErrors; nil for other faults.
func expected(err error) fault.Refusal {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	switch f.Code {
	case fault.RateLimited:
		return fault.Throttled{RetryAfter: f.RetryAfter}
	case fault.NotFound:
		return fault.Refused{Why: fault.Unknown}
	default:
		return nil
	}
}

// setUserErrors sets the userErrors of a payload, or of a new one when it is nil, and
// returns the payload.
type setUserErrors func(payload any, errs []model.UserError) any

func userErrorsOf[P any](list func(*P) *[]model.UserError) setUserErrors {
	return func(payload any, errs []model.UserError) any {
		p, _ := payload.(*P)
		if p == nil {
			p = new(P)
		}
		*list(p) = errs
		return p
	}
}
