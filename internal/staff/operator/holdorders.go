package operator

import (
	"context"
	"log/slog"

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

// HoldOrders holds the unpaid orders of a cluster for review: they cannot be paid until an operator
// releases them. The operator's own orders are left. A cluster without an order to hold is refused.
// The log of the sale has the act, those of the orders what became of each.
func (s *Service) HoldOrders(ctx context.Context, in HoldOrdersInput) (payment.Holding, error) {
	if err := authorise(in.By, sale.ActHold); err != nil {
		return payment.Holding{}, err
	}
	if err := requireNote(&in.Note); err != nil {
		return payment.Holding{}, err
	}
	if len(in.Cluster) != person.LabelChars || person.KindOf(in.Cluster) == "" {
		return payment.Holding{}, unknown("cluster")
	}
	v, err := s.cfg.Sales.ByID(ctx, in.Sale)
	switch {
	case err != nil:
		return payment.Holding{}, err
	case v == nil:
		return payment.Holding{}, unknown("saleId")
	case len(sale.Targets(sale.ActHold, v.Status)) == 0:
		return payment.Holding{}, conflict("saleId")
	}
	done, err := s.cfg.Payments.Hold(ctx, payment.HoldInput{Sale: in.Sale, Cluster: in.Cluster, Operator: in.By.ID,
		Note: in.Note})
	if done.Held > 0 { // also those before a failure
		s.logOrders(ctx, act{by: in.By, sale: in.Sale, what: sale.ActHold, note: in.Note, details: map[string]any{
			"cluster": in.Cluster, "units": done.Held,
		}})
	}
	if err != nil {
		return done, err
	}
	if done.Held == 0 {
		return done, conflict("cluster")
	}
	return done, nil
}

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
	o, err := s.cfg.Orders.Reload(ctx, in.Order)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, unknown("orderId")
	case o.User == in.By.ID:
		return o, selfApproval("orderId")
	}
	if err := s.endable(ctx, o, sale.ActRelease); err != nil {
		return o, err
	}
	released, err := s.cfg.Payments.Release(ctx, o.ID, order.Entry{By: order.Actor{Kind: order.Operator, User: in.By.ID},
		Note: in.Note})
	if err != nil {
		return released, err
	}
	s.logOrders(ctx, act{by: in.By, sale: o.Sale, what: sale.ActRelease, note: in.Note,
		details: map[string]any{"order": o.ID.Public()}})
	return released, nil
}

// logOrders writes an act on orders to the log of their sale. The logs of the orders have it already, in
// the transactions of the act: without the line the act stays.
func (s *Service) logOrders(ctx context.Context, a act) {
	a.decide = func(v *sale.Sale) (sale.Status, error) { return v.Status, nil }
	if _, err := s.do(ctx, a); err != nil {
		s.cfg.Log.ErrorContext(ctx, "act on orders is not in the log of the sale", slog.String("act", string(a.what)),
			slog.String("sale", a.sale.Public()), slog.Any("error", err))
	}
}
