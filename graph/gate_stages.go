package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/model"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

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
