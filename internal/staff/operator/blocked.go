package operator

import (
	"context"
	"errors"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent/user"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// blockedEvery is the pause between two searches for what disabled users hold.
	blockedEvery = 500 * time.Millisecond
	// idleBlocked is the longest pause while they hold nothing. It delays the return of units.
	idleBlocked = 2 * time.Second
	// recentlyBlocked is how long after a user was disabled the search does not rest. What
	// workers write for the user later waits for a step that runs in any case.
	recentlyBlocked = time.Minute
	// blockedTimeout bounds one search: payments are closed at their providers.
	blockedTimeout = time.Minute
	// maxBlocked bounds the orders of one search.
	maxBlocked = 100
)

// BlockedLoop returns the loop that cancels the unpaid orders and ends the waitlist
// entries of disabled users.
func (s *Service) BlockedLoop() periodic.Loop {
	return periodic.Loop{
		Name: "blocked users", Every: blockedEvery, Idle: idleBlocked, Timeout: blockedTimeout, Step: s.ReleaseBlocked,
		HasWork: s.cfg.DB.AnyRows(func() *sql.Selector {
			recent := user.DisabledAtGTE(s.cfg.Clock.Now().Add(-recentlyBlocked))
			return postgres.First(postgres.Rows(user.Table, recent), user.FieldDisabledAt)
		}), Log: s.cfg.Log,
	}
}

// ReleaseBlocked cancels unpaid orders of disabled users and ends their places on
// waitlists, so that others get the units. Their sessions, with sockets and path tokens,
// end where they are disabled. It is a periodic.Step: it also finds orders that a worker
// writes later, and users whom the command line disabled.
func (s *Service) ReleaseBlocked(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	ids, err := s.cfg.Orders.UnpaidOfBlocked(ctx, maxBlocked)
	failed := []error{err}
	for _, id := range ids {
		_, err := s.cfg.Payments.CancelUnpaid(ctx, id)
		if _, refused := fault.AsRefusal(err); refused {
			continue // paid or expired in the meantime
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		counts["cancelled"]++
	}
	counts["places"], err = s.cfg.Waitlist.LeaveBlocked(ctx)
	return counts, errors.Join(append(failed, err)...)
}
