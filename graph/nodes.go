package graph

import (
	"context"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/auth"
	"seckill/internal/id"
)

// maxNodes bounds the ids of one nodes query.
const maxNodes = 100

// node returns an object by its global id; nil when it does not exist or the caller may
// not see it.
func (r *Resolver) node(ctx context.Context, nodeID string) (model.Node, error) {
	kind, u, err := id.Split(nodeID)
	if err != nil {
		return r.letterNode(ctx, nodeID) // the ids of dead letters are those of their stream
	}
	switch kind {
	case id.Sale, id.Item, id.Goods:
		return r.catalogueNode(ctx, kind, u)
	case id.User:
		user, err := r.user(ctx, u)
		return orNil(user), err
	}
	p := auth.PrincipalFrom(ctx)
	if p == nil {
		return nil, nil
	}
	switch kind {
	case id.Order:
		o, err := r.Orders.OrderFor(ctx, u, p.UserID, reads(ctx, auth.OrdersRead))
		return orNil(r.toOrder(o)), err
	case id.Task:
		t, err := r.ownTask(ctx, nodeID)
		return orNil(toTask(ctx, t)), err
	case id.Ticket:
		t, err := r.Queue.Own(ctx, u, p.UserID)
		return orNil(toTicket(t)), err
	case id.Waitlist:
		e, err := r.ownPlace(ctx, u)
		return orNil(toPlace(e)), err
	case id.Act:
		return r.interventionNode(ctx, u)
	case id.Held:
		return r.heldNode(ctx, u)
	case id.Payment, id.Refund:
		return r.moneyNode(ctx, kind, u)
	}
	return nil, nil
}

// moneyNode returns a payment or a refund of an order that the caller may see.
func (r *Resolver) moneyNode(ctx context.Context, kind id.Kind, u uuid.UUID) (model.Node, error) {
	var node model.Node
	var orderID uuid.UUID
	if kind == id.Payment {
		p, err := r.Payments.Payment(ctx, u)
		if err != nil || p == nil {
			return nil, err
		}
		node, orderID = r.toPayment(ctx, p), p.Order
	} else {
		f, err := r.Payments.Refund(ctx, u)
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
	case id.Goods:
		goods, public, err := r.Store.Product(ctx, u)
		if err != nil || !public && !reads(ctx, auth.CatalogueRead) {
			return nil, err
		}
		return orNil(toGoods(goods)), nil
	case id.Item:
		item, v, err := r.Store.Item(ctx, u)
		if err != nil || visible(ctx, v) == nil {
			return nil, err
		}
		return orNil(toItem(item)), nil
	default:
		v, err := r.Store.Sale(ctx, u)
		return orNil(r.toSale(visible(ctx, v))), err
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
