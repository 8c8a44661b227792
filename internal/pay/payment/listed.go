package payment

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/ent/predicate"
	"seckill/ent/refund"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// RefundFilter selects refunds of all sales.
type RefundFilter struct {
	NotOf    id.User        // a user whose own orders are left out: others decide about those
	Sale     id.Sale        // Nil = of every sale
	Statuses []RefundStatus // empty = any
}

// RefundList is a request for a page of refunds, oldest first.
type RefundList struct {
	RefundFilter
	Limit         int
	Backward      bool      // the last page before Before, instead of the first after After
	After, Before id.Refund // Nil = from the end of the list
}

// RefundPage is a page of refunds.
type RefundPage struct {
	Refunds              []*Refund
	HasNext, HasPrevious bool
}

// ListRefunds returns a page of refunds, oldest first.
func (s *Service) ListRefunds(ctx context.Context, in RefundList) (RefundPage, error) {
	query := s.cfg.DB.Ent.Refund.Query().Where(in.match()...).Limit(in.Limit + 1)
	if !in.After.IsZero() {
		query.Where(refund.IDGT(in.After))
	}
	if !in.Before.IsZero() {
		query.Where(refund.IDLT(in.Before))
	}
	if in.Backward {
		query.Order(ent.Desc(refund.FieldID))
	} else {
		query.Order(ent.Asc(refund.FieldID))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return RefundPage{}, fmt.Errorf("list refunds: %w", err)
	}
	more := len(rows) > in.Limit
	rows = rows[:min(len(rows), in.Limit)]
	page := RefundPage{HasNext: more, HasPrevious: !in.After.IsZero()}
	if in.Backward {
		slices.Reverse(rows)
		page.HasNext, page.HasPrevious = !in.Before.IsZero(), more
	}
	for _, row := range rows {
		page.Refunds = append(page.Refunds, refundFromRow(row))
	}
	return page, nil
}

// CountRefunds returns the number of refunds.
func (s *Service) CountRefunds(ctx context.Context, in RefundFilter) (int, error) {
	n, err := s.cfg.DB.Ent.Refund.Query().Where(in.match()...).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count refunds: %w", err)
	}
	return n, nil
}

func (f RefundFilter) match() (match []predicate.Refund) {
	if len(f.Statuses) > 0 {
		statuses := collect.Map(f.Statuses, func(status RefundStatus) refund.Status { return refund.Status(status) })
		match = append(match, refund.StatusIn(statuses...))
	}
	if !f.NotOf.IsZero() {
		match = append(match, func(s *sql.Selector) {
			s.Where(sql.NotIn(s.C(refund.FieldOrderID), ordersWith(entorder.FieldUserID, f.NotOf)))
		})
	}
	if !f.Sale.IsZero() {
		match = append(match, func(s *sql.Selector) {
			s.Where(sql.In(s.C(refund.FieldOrderID), ordersWith(entorder.FieldSaleID, f.Sale)))
		})
	}
	return match
}

// ordersWith selects the ids of orders, for refunds that refer to them.
func ordersWith(column string, value driver.Valuer) *sql.Selector {
	orders := sql.Table(entorder.Table)
	return sql.Select(orders.C(entorder.FieldID)).From(orders).Where(sql.EQ(orders.C(column), value))
}

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
