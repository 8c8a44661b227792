package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/model"
	"seckill/internal/buy/refusal"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// toAttempts returns what was refused to a user, without the units that a sale hides.
func (r *Resolver) toAttempts(ctx context.Context, list []refusal.Refusal) *model.RefusedAttempts {
	out := &model.RefusedAttempts{Attempts: make([]*model.RefusedAttempt, len(list))}
	for i, a := range list {
		out.Total += a.Times
		one := &model.RefusedAttempt{
			Stage: salestats.Stage(a.Stage), Code: a.Code, Message: refusedAs(ctx, a), Times: a.Times,
			FirstAt: a.First, LastAt: a.Last, Ahead: a.Ahead,
		}
		if item := r.item(ctx, a.Item); !a.Item.IsZero() && item != nil {
			one.Item = toItem(item)
			if !r.numbersHidden(ctx, item) {
				one.UnitsLeft = a.Left
			}
		}
		out.Attempts[i] = one
	}
	return out
}

// refusedAs returns the message of a refusal that is over. No call is refused at the stage
// of the waiting room for its path token: there, an admission expired unused.
func refusedAs(ctx context.Context, a refusal.Refusal) string {
	if a.Stage == string(salestats.StageQueue) && a.Code == fault.PathInvalid {
		return turnPassed.in(ctx)
	}
	return reasons[a.Code].in(ctx)
}

// stages are the mutations that are counted as stages of the gate, whatever refuses them:
// a limit, an input rule, memory or Redis. Package checkout counts placeOrder.
var stages = map[string]salestats.Stage{
	"createCaptcha": salestats.StageCaptcha, "issueSeckillPath": salestats.StagePath, "enterQueue": salestats.StageQueue,
}

// counted counts a call at the gate of a public sale by a signed-in user.
func (r *Resolver) counted(ctx context.Context, fc *graphql.FieldContext, payload any, err error) {
	stage, ok := stages[fc.Field.Name]
	if !ok || auth.PrincipalFrom(ctx) == nil {
		return
	}
	v := r.saleAsked(ctx)
	if input, ok := fc.Args["input"].(model.CreateCaptchaInput); ok && input.SaleID != nil {
		saleID, _ := id.ParseSale(*input.SaleID) // none has the zero id
		if snap, err := r.Shop.Catalog(ctx); err == nil {
			v = snap.Sale(saleID)
		}
	}
	if v == nil || !v.Public() {
		return
	}
	issued, _ := payload.(*model.IssueSeckillPathPayload)
	r.Counts.Called(salestats.Call{
		Sale: v.ID, User: auth.PrincipalFrom(ctx).UserID, Item: itemAsked(fc), Stage: stage,
		Queued: issued != nil && issued.Ticket != nil, Err: err,
	})
}
