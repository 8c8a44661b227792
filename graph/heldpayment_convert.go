package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
)

func toHeld(h *payment.Held) *model.HeldPayment {
	if h == nil {
		return nil
	}
	return &model.HeldPayment{
		ID: h.ID, At: h.At, Amount: toMoney(money.Amount{Minor: h.AmountMinor, Currency: h.Currency}),
		Provider: h.Provider, Transaction: h.Transaction, Reason: h.Why, Source: *h,
	}
}

// heldPage parses the arguments of a page.
func heldPage(first int, after, provider *string) (payment.HeldList, error) {
	from, err := cursor.Parse(after, id.ParseHeld)
	return payment.HeldList{After: from, Limit: first, Provider: deref(provider)}, err
}

func (r *Resolver) heldConnection(ctx context.Context, in payment.HeldList) (*model.HeldPaymentConnection, error) {
	page, total, err := listing[payment.Held]{
		first: in.Limit, begun: !in.After.IsZero(),
		read: func(ctx context.Context, limit int) ([]payment.Held, error) {
			in.Limit = limit
			return r.Payments.HeldEvents(ctx, in)
		},
		cursor: func(h payment.Held) string { return h.ID.Public() },
		count:  func(ctx context.Context) (int, error) { return r.Payments.CountHeld(ctx, in) },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, func(h payment.Held) *model.HeldPayment { return toHeld(&h) },
		func(n *model.HeldPayment, cursor string) *model.HeldPaymentEdge {
			return &model.HeldPaymentEdge{Cursor: cursor, Node: n}
		})
	return &model.HeldPaymentConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, nil
}

// heldNode returns money that waits for an operator, for operators.
func (r *Resolver) heldNode(ctx context.Context, u id.Held) (model.Node, error) {
	if !isOperator(ctx) {
		return nil, nil
	}
	h, err := r.Payments.HeldEvent(ctx, u)
	return orNil(toHeld(h)), err
}

// endHeld ends held money, or asks for a second person, and returns the order that was to be
// paid, or nil.
func (r *Resolver) endHeld(ctx context.Context, kind operator.Kind, heldID, note string) (*model.Order,
	*model.Intervention, error) {
	held, err := id.ParseHeld(heldID)
	if err != nil {
		return nil, nil, unknown("heldPaymentId")
	}
	done, err := r.Operator.Return(ctx, operator.ReturnInput{By: actor(ctx), Kind: kind, Held: held, Note: note})
	if err != nil {
		return nil, nil, err
	}
	if done.Payment.IsZero() {
		return nil, waits(done), nil
	}
	o, err := r.paidFor(ctx, done.Payment)
	return o, nil, err
}

// waits returns the request for a second person; nil = there is none.
func waits(done operator.Returned) *model.Intervention {
	if done.Intervention == nil || done.Intervention.State != operator.Requested {
		return nil
	}
	return toIntervention(done.Intervention)
}

// returnedOrder returns the order whose money was returned, or is to be.
func (r *Resolver) returnedOrder(ctx context.Context, done operator.Returned) *model.Order {
	if done.Order == nil && done.Intervention != nil && done.Intervention.Order != nil {
		if o, err := r.Orders.Order(ctx, *done.Intervention.Order); err == nil {
			return r.toOrder(o)
		}
	}
	return r.toOrder(done.Order)
}
