package order

import (
	"context"
	"fmt"
	"time"

	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
)

// Unfinished counts overdue work: orders with a payment deadline before the given time
// that are still unpaid, and units that are still due in Redis. The loops finish this
// work, so counts that stay above zero show that a loop does not run.
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
