package waitlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/predicate"
	"seckill/ent/user"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/identity/account"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// maxBlocked bounds the entries that one call of LeaveBlocked ends.
const maxBlocked = 100

// LeaveBlocked ends open entries of users who are disabled, at most 100, and returns their
// number.
func (s *Service) LeaveBlocked(ctx context.Context) (left int, err error) {
	rows, err := s.cfg.DB.Ent.WaitlistEntry.Query().
		Where(ofBlocked).
		Order(ent.Asc(waitlistentry.FieldID)).Limit(maxBlocked).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read waitlist entries of disabled users: %w", err)
	}
	return len(rows), s.end(ctx, rows)
}

var ofBlocked = waitlistentry.And(waitlistentry.StatusIn(openStatuses...), ofDisabledUser)

// ofDisabledUser matches entries of users who are disabled.
var ofDisabledUser predicate.WaitlistEntry = func(s *sql.Selector) {
	users := sql.Table(user.Table)
	s.Where(sql.In(s.C(waitlistentry.FieldUserID), sql.Select(users.C(user.FieldID)).From(users).
		Where(sql.NotNull(users.C(user.FieldDisabledAt)))))
}

// end ends entries of users who are disabled, which are blocked or deleted, and others whose card is due.
func (s *Service) end(ctx context.Context, entries []*ent.WaitlistEntry) error {
	if len(entries) == 0 {
		return nil
	}
	users := collect.Map(entries, func(row *ent.WaitlistEntry) id.User { return row.UserID })
	rows, err := s.cfg.DB.Ent.User.Query().Where(user.IDIn(users...), user.DisabledAtNotNil()).
		Select(user.FieldID, user.FieldAccount).All(ctx)
	if err != nil {
		return fmt.Errorf("read disabled users: %w", err)
	}
	reasons := make(map[id.User]draw.Reason, len(rows))
	for _, row := range rows {
		reasons[row.ID] = draw.ReasonBlocked
		if strings.HasPrefix(row.Account, account.DeletedPrefix) {
			reasons[row.ID] = draw.ReasonDeleted
		}
	}
	var failed []error
	for _, row := range entries {
		_, err := s.leave(ctx, row.ID, row.UserID, cmp.Or(reasons[row.UserID], draw.ReasonCard))
		if _, refused := fault.AsRefusal(err); !refused { // an entry that ended otherwise meanwhile is refused
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
