package operator

import (
	"context"
	"errors"
	"slices"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// HoldOrdersInput is the input of HoldOrders.
type HoldOrdersInput struct {
	By      sale.Actor
	Sale    id.Sale
	Cluster string // label of the cluster
	Note    string // the reason; the buyers see it
}

// Holding is how many orders of a cluster were held, and how many were not.
type Holding struct{ Held, Left int }

// HoldOrders holds the unpaid orders of a cluster for review: they cannot be paid until an operator
// releases them. The operator's own orders are left. A cluster without an order to hold is refused.
// The log of the sale has the act in the transaction that holds the orders.
func (s *Service) HoldOrders(ctx context.Context, in HoldOrdersInput) (done Holding, err error) {
	if err := authorise(in.By, sale.ActHold); err != nil {
		return done, err
	}
	if err := requireNote(&in.Note); err != nil {
		return done, err
	}
	if len(in.Cluster) != person.LabelChars || person.KindOf(in.Cluster) == "" {
		return done, unknown("cluster")
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	switch {
	case err != nil:
		return done, err
	case v == nil:
		return done, unknown("saleId")
	case len(sale.Targets(sale.ActHold, v.Status)) == 0:
		return done, conflict("saleId")
	}
	hold := payment.HoldInput{Sale: in.Sale, Cluster: in.Cluster, Operator: in.By.ID, Note: in.Note}
	orders, left, err := s.cfg.Payments.Holdable(ctx, hold)
	if err != nil {
		return done, err
	}
	done.Left = left
	for len(orders) > 0 {
		var held []*order.Order
		var moved int
		_, err := s.do(ctx, act{
			by: in.By, sale: in.Sale, what: sale.ActHold, note: in.Note, decide: sameStatus,
			details: map[string]any{"cluster": in.Cluster, "orders": len(orders)},
			within: func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) (err error) {
				held, moved, err = s.cfg.Payments.HoldIn(ctx, tx, orders, hold)
				return err
			},
		})
		if errors.Is(err, order.ErrMoved) { // paid, cancelled or expired meanwhile
			orders = slices.Delete(orders, moved, moved+1)
			done.Left++
			continue
		}
		if err != nil {
			return done, err
		}
		s.cfg.Payments.Reviewed(ctx, held...)
		done.Held = len(held)
		return done, nil
	}
	return done, conflict("cluster")
}

// sameStatus decides an act on the orders of a sale, which leaves the sale as it is.
func sameStatus(v *sale.Sale) (sale.Status, error) { return v.Status, nil }

// ReleaseInput is the input of ReleaseOrder.
type ReleaseInput struct {
	By    sale.Actor
	Order id.Order
	Note  string // the reason; the buyer sees it
}

// ReleaseOrder ends the review of an order: its buyer has the whole payment window. The buyer of an
// order cannot release it. Beside a refusal it returns the order.
func (s *Service) ReleaseOrder(ctx context.Context, in ReleaseInput) (*order.Order, error) {
	if err := authorise(in.By, sale.ActRelease); err != nil {
		return nil, err
	}
	if err := requireNote(&in.Note); err != nil {
		return nil, err
	}
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: in.By.ID}, Note: in.Note}
	for range maxTries {
		o, err := s.cfg.Orders.Reload(ctx, in.Order)
		switch {
		case err != nil:
			return nil, err
		case o == nil:
			return nil, unknown("orderId")
		case o.User == in.By.ID:
			return o, selfApproval("orderId")
		case !o.UnderReview():
			return o, conflict("orderId")
		}
		if err := s.endable(ctx, o, sale.ActRelease); err != nil {
			return o, err
		}
		var released *order.Order
		_, err = s.do(ctx, act{
			by: in.By, sale: o.Sale, what: sale.ActRelease, note: in.Note, decide: sameStatus,
			details: map[string]any{"order": o.ID.Public()},
			within: func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) (err error) {
				released, err = s.cfg.Payments.ReleaseIn(ctx, tx, o, entry)
				return err
			},
		})
		if errors.Is(err, order.ErrMoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.cfg.Payments.Reviewed(ctx, released)
		return released, nil
	}
	return nil, conflict("orderId")
}
