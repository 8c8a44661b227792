package payment

import (
	"cmp"
	"context"
	"fmt"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/ent/refund"
	"seckill/ent/waitlistentry"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// openStatuses are the states in which a payment can still be paid.
var openStatuses = []entpayment.Status{
	entpayment.StatusCREATING, entpayment.StatusPENDING, entpayment.StatusAUTHORIZED,
}

// Payment returns a payment, or nil when there is none.
func (s *Service) Payment(ctx context.Context, id id.Payment) (*Payment, error) {
	return one(s.cfg.DB.Ent.Payment.Get(ctx, id))
}

// byKey returns the payment of an order with an idempotency key, or nil.
func (s *Service) byKey(ctx context.Context, order id.Order, key string) (*Payment, error) {
	return one(s.cfg.DB.Ent.Payment.Query().Where(entpayment.OrderID(order), entpayment.IdempotencyKey(key)).Only(ctx))
}

func (s *Service) openOf(ctx context.Context, order id.Order) (*Payment, error) {
	return one(s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.OrderID(order), entpayment.StatusIn(openStatuses...)).Only(ctx))
}

func one(row *ent.Payment, err error) (*Payment, error) {
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read payment: %w", err)
	}
	return fromRow(row), nil
}

// maxPayments bounds the payments read of one order. A buyer begins one after the other
// until the deadline.
const maxPayments = 10

// PaymentsOf returns the payments of an order, newest first, at most maxPayments.
func (s *Service) PaymentsOf(ctx context.Context, order id.Order) ([]*Payment, error) {
	rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.OrderID(order)).
		Order(ent.Desc(entpayment.FieldID)).Limit(maxPayments).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read payments of order %s: %w", order, err)
	}
	return collect.Map(rows, fromRow), nil
}

func (s *Service) open(ctx context.Context, orders []id.Order) ([]*Payment, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.OrderIDIn(orders...), entpayment.StatusIn(openStatuses...)).
		All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read open payments of %d orders: %w", len(orders), err)
	}
	return collect.Map(rows, fromRow), nil
}

// Refund returns a refund, or nil when there is none.
func (s *Service) Refund(ctx context.Context, id id.Refund) (*Refund, error) {
	row, err := s.cfg.DB.Ent.Refund.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read refund: %w", err)
	}
	return refundFromRow(row), nil
}

// RefundsOf returns the refunds of several orders, oldest first.
func (s *Service) RefundsOf(ctx context.Context, orders ...id.Order) (map[id.Order][]*Refund, error) {
	rows, err := s.cfg.DB.Ent.Refund.Query().Where(refund.OrderIDIn(orders...)).Order(ent.Asc(refund.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read refunds of %d orders: %w", len(orders), err)
	}
	refunds := make(map[id.Order][]*Refund, len(orders))
	for _, row := range rows {
		refunds[row.OrderID] = append(refunds[row.OrderID], refundFromRow(row))
	}
	return refunds, nil
}

// knownTo returns what the calls to a payment's provider need.
func (s *Service) knownTo(ctx context.Context, p *Payment) (Known, error) {
	if p.Hold.On() {
		row, err := s.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.ID(p.Entry)).
			Select(waitlistentry.FieldQuantity).Only(ctx)
		if ent.IsNotFound(err) { // it ended long ago
			return p.known("", 1), nil
		}
		if err != nil {
			return Known{}, fmt.Errorf("read entry %s: %w", p.Entry, err)
		}
		return p.known("", row.Quantity), nil
	}
	row, err := s.cfg.DB.Ent.Order.Query().
		Where(entorder.ID(p.Order)).Select(entorder.FieldNumber, entorder.FieldQuantity).
		Only(ctx)
	if ent.IsNotFound(err) { // the database went back since the payment was read
		return Known{}, fault.Wrap(fault.Unavailable, "The order cannot be read now. Please try again shortly.", err)
	}
	if err != nil {
		return Known{}, fmt.Errorf("read number of order %s: %w", p.Order, err)
	}
	known := p.known(row.Number, row.Quantity)
	known.ReturnURL = cmp.Or(p.ReturnURL, s.cfg.OrderPage(p.Order, row.Number))
	return known, nil
}
