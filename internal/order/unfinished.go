package order

import (
	"context"
	"fmt"
	"time"

	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
)

// Unfinished counts what should have ended by itself before an instant and has
// not: unpaid orders past their deadline, units that are still to go back to Redis.
// The loops finish it; who reads this wants to know that they do.
func (s *Store) Unfinished(ctx context.Context, before time.Time) (map[string]int, error) {
	overdue, err := s.db.Ent.Order.Query().
		Where(entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.PaymentDeadlineLT(before)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count overdue orders: %w", err)
	}
	returns, err := s.db.Ent.Order.Query().Where(entorder.ReturnDue(true), entorder.UpdatedAtLT(before)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count returns: %w", err)
	}
	failures, err := s.db.Ent.OrderFailure.Query().
		Where(orderfailure.Released(false), orderfailure.CreatedAtLT(before)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count failures: %w", err)
	}
	return map[string]int{"unpaid_orders": overdue, "returns": returns, "failures": failures}, nil
}
