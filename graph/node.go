package graph

import (
	"context"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/buy/admission/queue"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// maxNodes bounds the ids of one nodes query.
const maxNodes = 100

// node returns an object by its global id; nil when it does not exist or the caller may
// not see it.
func (r *Resolver) node(ctx context.Context, nodeID string) (model.Node, error) {
	kind, u, err := id.Split(nodeID)
	if err != nil {
		return r.letterNode(ctx, nodeID) // the ids of dead letters are plain UUIDs
	}
	switch kind {
	case id.KindSale, id.KindItem, id.KindGoods:
		return r.catalogueNode(ctx, kind, u)
	case id.KindUser:
		user, err := r.user(ctx, id.User(u))
		return orNil(user), err
	}
	p := auth.PrincipalFrom(ctx)
	if p == nil {
		return nil, nil
	}
	switch kind {
	case id.KindOrder:
		o, err := r.visibleOrder(ctx, id.Order(u))
		return orNil(r.toOrder(o)), err
	case id.KindTask:
		t, err := r.ownTask(ctx, nodeID)
		return orNil(toTask(ctx, t)), err
	case id.KindTicket:
		t, err := ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*queue.Ticket, error) {
			return r.Queue.Own(ctx, id.Ticket(u), p.UserID)
		})
		return orNil(toTicket(t)), err
	case id.KindWaitlist:
		e, err := r.ownWaitlistEntry(ctx, id.Waitlist(u))
		return orNil(toWaitlistEntry(e)), err
	case id.KindAct:
		return r.interventionNode(ctx, u)
	case id.KindHeld:
		return r.heldNode(ctx, id.Held(u))
	case id.KindPayment, id.KindRefund:
		return r.moneyNode(ctx, kind, u)
	}
	return nil, nil
}

// moneyNode returns a payment or a refund of an order that the caller may see.
func (r *Resolver) moneyNode(ctx context.Context, kind id.Kind, u uuid.UUID) (model.Node, error) {
	var node model.Node
	var orderID id.Order
	if kind == id.KindPayment {
		p, err := ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*payment.Payment, error) {
			return r.Payments.Payment(ctx, id.Payment(u))
		})
		if err != nil || p == nil {
			return nil, err
		}
		node, orderID = r.toPayment(ctx, p), p.Order
	} else {
		f, err := ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*payment.Refund, error) {
			return r.Payments.Refund(ctx, id.Refund(u))
		})
		if err != nil || f == nil {
			return nil, err
		}
		node, orderID = toRefund(ctx, f), f.Order
	}
	o, err := r.Orders.OrderFor(ctx, orderID, auth.PrincipalFrom(ctx).UserID, reads(ctx, auth.OrdersRead))
	if err != nil || o == nil {
		return nil, err
	}
	return node, nil
}

func (r *Resolver) catalogueNode(ctx context.Context, kind id.Kind, u uuid.UUID) (model.Node, error) {
	switch kind {
	case id.KindGoods:
		goods, err := r.visibleGoods(ctx, id.Goods(u))
		return orNil(toGoods(goods)), err
	case id.KindItem:
		item, v, err := r.Shop.Item(ctx, id.Item(u))
		if v, err = r.visible(ctx, v, err); err != nil || v == nil {
			return nil, err
		}
		return orNil(toItem(item)), nil
	default:
		v, err := r.Shop.Sale(ctx, id.Sale(u))
		v, err = r.visible(ctx, v, err)
		return orNil(r.toSale(v)), err
	}
}

// orNil converts a nil pointer into a nil interface.
func orNil[T any, P interface {
	*T
	model.Node
}](p P) model.Node {
	if p == nil {
		return nil
	}
	return p
}
