package waitlist

import (
	"context"
	"errors"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/ent/waitlistentry"
	"seckill/internal/platform/fault"
)

// maxBlocked bounds the entries that one call of LeaveBlocked ends.
const maxBlocked = 100

// LeaveBlocked ends open entries of users who are disabled, at most 100, and returns their
// number. Entries that end otherwise in the meantime are skipped.
func (s *Service) LeaveBlocked(ctx context.Context) (left int, err error) {
	rows, err := s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.StatusIn(openStatuses...), func(s *sql.Selector) {
			users := sql.Table(user.Table)
			s.Where(sql.In(s.C(waitlistentry.FieldUserID), sql.Select(users.C(user.FieldID)).From(users).
				Where(sql.NotNull(users.C(user.FieldDisabledAt)))))
		}).
		Order(ent.Asc(waitlistentry.FieldID)).Limit(maxBlocked).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read waitlist entries of disabled users: %w", err)
	}
	var failed []error
	for _, row := range rows {
		_, err := s.Leave(ctx, row.ID, row.UserID)
		if _, refused := fault.AsRefusal(err); refused {
			continue
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		left++
	}
	return left, errors.Join(failed...)
}
