package order

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/user"
	"seckill/internal/platform/id"
)

// UnpaidOfBlocked returns at most limit unpaid orders of users who are disabled, oldest
// first.
func (s *Store) UnpaidOfBlocked(ctx context.Context, limit int) ([]id.Order, error) {
	ids, err := s.db.Ent.Order.Query().
		Where(entorder.StatusEQ(entorder.Status(PendingPayment)), func(s *sql.Selector) {
			users := sql.Table(user.Table)
			s.Where(sql.In(s.C(entorder.FieldUserID), sql.Select(users.C(user.FieldID)).From(users).
				Where(sql.NotNull(users.C(user.FieldDisabledAt)))))
		}).
		Order(ent.Asc(entorder.FieldID)).Limit(limit).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read unpaid orders of disabled users: %w", err)
	}
	return ids, nil
}
