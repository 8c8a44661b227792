package payment

import (
	"context"
	"fmt"
	"time"

	entpayment "seckill/ent/payment"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// Waiting is what waits for an operator: a refund to decide, one that failed, or money
// that fits nothing.
type Waiting struct {
	Refund *Refund // nil = Held
	Held   Held
	Order  id.Order // Nil = unknown
	Buyer  id.User  // who must not decide; Nil = unknown
}

// AwaitingOperator returns at most limit refunds of each status that waits for an
// operator, and at most limit held events, oldest first.
func (s *Service) AwaitingOperator(ctx context.Context, limit int) ([]Waiting, error) {
	var waiting []Waiting
	for _, status := range []RefundStatus{RefundRequested, RefundGivenUp} {
		page, err := s.ListRefunds(ctx, RefundList{RefundFilter: RefundFilter{Statuses: []RefundStatus{status}},
			Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Refunds {
			waiting = append(waiting, Waiting{Refund: r, Order: r.Order})
		}
	}
	held, err := s.HeldEvents(ctx, HeldList{Limit: limit})
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		waiting = append(waiting, Waiting{Held: h})
	}
	return waiting, s.nameBuyers(ctx, waiting)
}

// payment returns the payment that w is about; it may be unknown.
func (w Waiting) payment() id.Payment {
	if w.Refund != nil {
		return w.Refund.Payment
	}
	return w.Held.Payment
}

// nameBuyers fills in orders and buyers.
func (s *Service) nameBuyers(ctx context.Context, waiting []Waiting) error {
	if len(waiting) == 0 {
		return nil
	}
	ids := collect.Map(waiting, func(w Waiting) id.Payment { return w.payment() })
	rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.IDIn(ids...)).
		Select(entpayment.FieldID, entpayment.FieldOrderID, entpayment.FieldUserID).All(ctx)
	if err != nil {
		return fmt.Errorf("read payments that wait for an operator: %w", err)
	}
	type owner struct {
		order id.Order
		buyer id.User
	}
	owners := map[id.Payment]owner{}
	for _, row := range rows {
		owners[row.ID] = owner{row.OrderID, row.UserID}
	}
	for i := range waiting {
		if o, ok := owners[waiting[i].payment()]; ok {
			waiting[i].Order, waiting[i].Buyer = o.order, o.buyer
		}
	}
	return nil
}

// Since returns when the wait began.
func (w Waiting) Since() time.Time {
	switch {
	case w.Refund == nil:
		return w.Held.At
	case w.Refund.Status == RefundGivenUp:
		return w.Refund.UpdatedAt
	}
	return w.Refund.CreatedAt
}
