package waitlist

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/fault"
)

// maxBlocked bounds the entries that one call of LeaveBlocked ends.
const maxBlocked = 100

// LeaveBlocked ends open entries of users who are disabled, at most 100, and returns their
// number. Entries that end otherwise in the meantime are skipped.
func (s *Service) LeaveBlocked(ctx context.Context) (left int, err error) {
	rows, err := s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.StatusIn(openStatuses...), ofDisabledUser).
		Order(ent.Asc(waitlistentry.FieldID)).Limit(maxBlocked).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read waitlist entries of disabled users: %w", err)
	}
	var failed []error
	for _, row := range rows {
		_, err := s.leave(ctx, row.ID, row.UserID, draw.ReasonBlocked)
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
