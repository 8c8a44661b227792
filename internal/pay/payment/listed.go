package payment

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
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
