package graph

import (
	"context"
	"fmt"
	"reflect"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/generated"
	"seckill/graph/model"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/ratelimit"
)

// Directives returns the run-time directives of the schema. local counts
// placeOrder, which must cost no round trip.
func (r *Resolver) Directives(local *ratelimit.Local[ratelimit.Subject]) generated.DirectiveRoot {
	return generated.DirectiveRoot{
		Auth: authorise,
		RateLimit: func(ctx context.Context, _ any, next graphql.Resolver, burst int, perSecond float64) (any, error) {
			field := graphql.GetFieldContext(ctx).Field.Name
			subject := ratelimit.Addr(r.Addr(ctx))
			if p := auth.PrincipalFrom(ctx); p != nil {
				subject = ratelimit.User(p.UserID)
			}
			policy := ratelimit.Policy{Name: field, Burst: burst, PerSecond: perSecond}
			var d ratelimit.Decision
			var err error
			if field == "placeOrder" {
				d = local.Allow(policy, subject)
			} else if d, err = r.Limits.Allow(ctx, policy, subject); err != nil {
				return nil, err
			}
			if refusal := d.Refusal(); refusal != nil {
				r.throttled(ctx, refusal)
				return refusedPayload(ctx, r.userErrors(ctx, refusal))
			}
			return next(ctx)
		},
	}
}

// throttled counts a call of placeOrder that came too soon among those of its sale.
func (r *Resolver) throttled(ctx context.Context, refusal fault.Refusal) {
	input, ok := graphql.GetFieldContext(ctx).Args["input"].(model.PlaceOrderInput)
	if !ok {
		return
	}
	if item, err := id.Parse(id.Item, input.ItemID); err == nil {
		r.Checkout.Throttled(ctx, item, refusal)
	}
}

// authorise lets the field through when the caller holds at least the role.
func authorise(ctx context.Context, _ any, next graphql.Resolver, role model.Role) (any, error) {
	p := auth.PrincipalFrom(ctx)
	switch {
	case p == nil:
		return nil, fault.New(fault.Unauthenticated, "Please sign in first.")
	case !p.Role.AtLeast(auth.Role(role)):
		return nil, fault.New(fault.Forbidden, "This is not for your role.")
	}
	return next(ctx)
}

// payloads are the outcome types of mutations, by field, for refusals that
// happen before the resolver runs.
var payloads = map[string]reflect.Type{
	"register":           reflect.TypeFor[model.RegisterPayload](),
	"login":              reflect.TypeFor[model.LoginPayload](),
	"refreshSession":     reflect.TypeFor[model.RefreshSessionPayload](),
	"logout":             reflect.TypeFor[model.LogoutPayload](),
	"createCaptcha":      reflect.TypeFor[model.CreateCaptchaPayload](),
	"issueSeckillPath":   reflect.TypeFor[model.IssueSeckillPathPayload](),
	"enterQueue":         reflect.TypeFor[model.EnterQueuePayload](),
	"leaveQueue":         reflect.TypeFor[model.LeaveQueuePayload](),
	"joinWaitlist":       reflect.TypeFor[model.JoinWaitlistPayload](),
	"leaveWaitlist":      reflect.TypeFor[model.LeaveWaitlistPayload](),
	"placeOrder":         reflect.TypeFor[model.PlaceOrderPayload](),
	"payOrder":           reflect.TypeFor[model.PayOrderPayload](),
	"cancelOrder":        reflect.TypeFor[model.CancelOrderPayload](),
	"requestRefund":      reflect.TypeFor[model.RequestRefundPayload](),
	"decideRefund":       reflect.TypeFor[model.DecideRefundPayload](),
	"createGoods":        reflect.TypeFor[model.CreateGoodsPayload](),
	"updateGoods":        reflect.TypeFor[model.UpdateGoodsPayload](),
	"createSale":         reflect.TypeFor[model.CreateSalePayload](),
	"updateSale":         reflect.TypeFor[model.UpdateSalePayload](),
	"submitSale":         reflect.TypeFor[model.SubmitSalePayload](),
	"approveSale":        reflect.TypeFor[model.ApproveSalePayload](),
	"rejectSale":         reflect.TypeFor[model.RejectSalePayload](),
	"scheduleSale":       reflect.TypeFor[model.ScheduleSalePayload](),
	"preheatSale":        reflect.TypeFor[model.PreheatSalePayload](),
	"pauseSale":          reflect.TypeFor[model.PauseSalePayload](),
	"resumeSale":         reflect.TypeFor[model.ResumeSalePayload](),
	"endSale":            reflect.TypeFor[model.EndSalePayload](),
	"adjustStock":        reflect.TypeFor[model.AdjustStockPayload](),
	"voidOrder":          reflect.TypeFor[model.VoidOrderPayload](),
	"decideIntervention": reflect.TypeFor[model.DecideInterventionPayload](),
	"setSaleSwitches":    reflect.TypeFor[model.SetSaleSwitchesPayload](),
	"replayDeadLetter":   reflect.TypeFor[model.ReplayDeadLetterPayload](),
	"dropDeadLetter":     reflect.TypeFor[model.DropDeadLetterPayload](),
	"returnHeldPayment":  reflect.TypeFor[model.ReturnHeldPaymentPayload](),
}

// refusedPayload is the payload of the current mutation with nothing in it but
// userErrors.
func refusedPayload(ctx context.Context, errs []model.UserError) (any, error) {
	field := graphql.GetFieldContext(ctx).Field.Name
	t, ok := payloads[field]
	if !ok {
		return nil, fmt.Errorf("no payload is known for %s", field)
	}
	payload := reflect.New(t)
	payload.Elem().FieldByName("UserErrors").Set(reflect.ValueOf(errs))
	return payload.Interface(), nil
}
