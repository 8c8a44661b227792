package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/model"
	paths "seckill/internal/buy/admission/path"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/account"
	"seckill/internal/identity/person"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

// userError converts a refusal. Refusals of the domains are converted nowhere else.
func (r *Resolver) userError(ctx context.Context, refusal fault.Refusal) model.UserError {
	code, msg, path := refusal.Reason(), message(ctx, refusal.Reason()), inputPath(refusal)
	switch v := refusal.(type) {
	case fault.BadField:
		return model.InputError{Code: code, Message: brokenRule(ctx, v), Path: path, Rule: v.Rule.String()}
	case fault.Throttled:
		if v.Cause == fault.ExpiredReservations {
			msg = expiredWait.with(ctx, int(math.Ceil(v.RetryAfter.Minutes())))
		}
		return model.RateLimitedError{
			Code: code, Message: msg, Path: path, RetryAfterMs: max(1, int(v.RetryAfter.Milliseconds())),
			Cause: cmp.Or(v.Cause, fault.TooManyCalls),
		}
	case sale.NotOpen:
		if v.Phase == sale.PhaseCancelled {
			msg = saleCancelled.in(ctx)
		}
		return model.SaleNotOpenError{
			Code: code, Message: msg, Path: path,
			Phase: v.Phase, StartsAt: v.StartsAt, ServerTime: v.ServerTime,
		}
	case sale.NoAccess:
		return noAccess(ctx, v, path)
	case operator.SelfApproval, payment.OwnOrder:
		return model.BasicError{Code: code, Message: needsAnother.in(ctx), Path: path}
	case operator.SamePerson:
		return model.BasicError{Code: code, Message: notSecondPerson[v.Because].in(ctx), Path: path}
	case account.NoTexts:
		return model.BasicError{Code: code, Message: noTexts.in(ctx), Path: path}
	case waitlist.ForSale:
		return model.BasicError{Code: code, Message: buyInstead.in(ctx), Path: path}
	case order.UnderReview:
		return model.BasicError{Code: code, Message: reviewText(ctx, v.Kinds), Path: path}
	case operator.TooFew:
		return model.BasicError{Code: code, Message: fewerFree.in(ctx), Path: path}
	case reservation.NoneLeft:
		return r.soldOut(ctx, v)
	case reservation.LimitReached:
		if v.By == person.Code {
			return basicError(ctx, code, path)
		}
		return overLimit(ctx, v)
	case reservation.AlreadyOrdered:
		return model.AlreadyOrderedError{Code: code, Message: msg, Path: path, Source: v.Task}
	case captcha.Invalid:
		return model.CaptchaError{Code: code, Message: msg, Path: path, Challenge: toChallenge(ctx, v.Challenge)}
	case captcha.Required:
		return model.CaptchaError{Code: code, Message: msg, Path: path, Challenge: toChallenge(ctx, v.Challenge)}
	case paths.NoPermit:
		return model.RateLimitedError{Code: code, Message: msg, Path: path, RetryAfterMs: int(v.RetryAfter.Milliseconds()),
			Cause: fault.NoPermit}
	}
	return basicError(ctx, refusal.Reason(), path)
}

// inputPath returns the path of the refused value in the arguments of a mutation: each has
// one argument, "input", of which the domains know the fields.
func inputPath(refusal fault.Refusal) []string {
	path := refusal.Path()
	if path == nil {
		return nil
	}
	return append([]string{"input"}, path...)
}

func basicError(ctx context.Context, why fault.Reason, path []string) model.BasicError {
	return model.BasicError{Code: why, Message: message(ctx, why), Path: path}
}

// overLimit names the limit and what it leaves to the buyer.
func overLimit(ctx context.Context, v reservation.LimitReached) model.PurchaseLimitError {
	out := model.PurchaseLimitError{Code: v.Reason(), Path: inputPath(v), Limit: v.Limit, Remaining: v.Remaining,
		WholeSale: v.WholeSale,
		LimitBy:   cmp.Or(v.By, person.Account)}
	switch {
	case v.By == person.Contact:
		out.Message = contactLimit.with(ctx, v.Limit)
	case v.By == person.Address:
		out.Message = addressLimit.with(ctx, v.Limit)
	case v.WholeSale && v.Remaining == 0:
		out.Message = saleLimitUsed.with(ctx, v.Limit)
	case v.WholeSale:
		out.Message = saleLimit.with(ctx, v.Limit, v.Remaining)
	default:
		out.Message = itemLimit.with(ctx, v.Limit)
	}
	return out
}

// item returns an item of the catalogue, or nil.
func (r *Resolver) item(ctx context.Context, itemID id.Item) *sale.Item {
	item, _, err := r.Shop.Item(ctx, itemID)
	if err != nil {
		return nil
	}
	return item
}

// Errors converts faults for the top-level errors list: a fixed code and a message
// without internal details. Unexpected errors get an error id, which is logged with the
// whole chain.
type Errors struct {
	Log *slog.Logger
	// Reference is the address of the page of error codes; "" = errors have no link.
	Reference string
}

const ourFault = "Something went wrong on our side."

// Present implements gqlgen's error presenter. Each code links to its row in the reference.
func (e Errors) Present(ctx context.Context, err error) *gqlerror.Error {
	out := e.present(ctx, err)
	code, _ := out.Extensions["code"].(string)
	if code == "" || e.Reference == "" {
		return out
	}
	linked := *out // an error of the parser may be shared
	linked.Extensions = maps.Clone(out.Extensions)
	linked.Extensions["documentation"] = e.Reference + "#" + code
	return &linked
}

func (e Errors) present(ctx context.Context, err error) *gqlerror.Error {
	var known *gqlerror.Error
	var f *fault.Error
	switch {
	case errors.As(err, &f) && f.Code != fault.Internal:
		return e.fromFault(ctx, f, faultMessage(ctx, f.Code, f.Message))
	case errors.As(err, &known) && known.Err == nil:
		return known // created by the parser, the validator or a transport
	case errors.As(err, &known) && known.Rule != "":
		return known
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return at(ctx, fault.Timeout, faultMessage(ctx, fault.Timeout, "The answer took too long."), nil)
	case fault.IsTransient(err):
		f := fault.Wrap(fault.Unavailable, "A service that this needs is not available. Please try again shortly.", err)
		return e.fromFault(ctx, f, faultMessage(ctx, f.Code, f.Message))
	}
	if refusal, ok := fault.AsRefusal(err); ok {
		f := refusalFault(ctx, refusal)
		return e.fromFault(ctx, f, f.Message)
	}
	errorID := uuid.NewString()
	e.Log.ErrorContext(ctx, "request failed", slog.String("error_id", errorID), slog.Any("error", err))
	return at(ctx, fault.Internal, faultMessage(ctx, fault.Internal, ourFault), map[string]any{"errorId": errorID})
}

// refusalFault converts a refusal of a query or subscription: only mutations have a
// userErrors list.
func refusalFault(ctx context.Context, refusal fault.Refusal) *fault.Error {
	f := fault.New(fault.BadInput, message(ctx, refusal.Reason()))
	switch v := refusal.(type) {
	case fault.Throttled:
		f.Code, f.RetryAfter = fault.RateLimited, v.RetryAfter
	case fault.Refused:
		if v.Why == fault.Unknown {
			f.Code = fault.NotFound
		}
	}
	return f
}

func (e Errors) fromFault(ctx context.Context, f *fault.Error, msg string) *gqlerror.Error {
	var more map[string]any
	if f.RetryAfter > 0 {
		more = map[string]any{"retryAfterMs": f.RetryAfter.Milliseconds()}
	}
	switch f.Code {
	case fault.Unavailable, fault.Timeout:
		e.Log.WarnContext(ctx, "request not answered", slog.String("code", string(f.Code)), slog.Any("error", f))
	default: // an expected fault: a metric, not a log line
	}
	return at(ctx, f.Code, msg, more)
}

func at(ctx context.Context, code fault.Code, msg string, more map[string]any) *gqlerror.Error {
	ext := map[string]any{"code": string(code)}
	for k, v := range more {
		ext[k] = v
	}
	out := &gqlerror.Error{Message: msg, Extensions: ext}
	if graphql.GetFieldContext(ctx) != nil {
		out.Path = graphql.GetPath(ctx)
	}
	return out
}

// Recover implements gqlgen's recover function: a panic becomes an INTERNAL error with an
// id. The log has the position, and the text of runtime errors; of other panic values
// only the type is logged, because they may contain client input.
func (e Errors) Recover(ctx context.Context, p any) error {
	errorID := uuid.NewString()
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		what = err.Error()
	}
	e.Log.ErrorContext(ctx, "panic", slog.String("error_id", errorID),
		slog.String("panic", what), slog.String("stack", string(debug.Stack())))
	return &gqlerror.Error{
		Message:    faultMessage(ctx, fault.Internal, ourFault),
		Extensions: map[string]any{"code": string(fault.Internal), "errorId": errorID},
	}
}
