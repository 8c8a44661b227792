package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestABuyerWhoNeverPaysWaitsAfterTwoExpiries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		user, releaser := id.New[id.User](), reservation.NewGate(reservation.GateConfig{Client: f.redis, Keys: f.keys, Timeout: testenv.Wait})
		release := func(expired bool) {
			task := id.Task(uuid.New())
			f.must(f.redis.HSet(t.Context(), f.keys.Reservations(f.shard, f.item), user.String(), task.String()+"|1|0|k").Err())
			hold := reservation.Ref{Sale: f.sale, Item: f.item, User: user, Task: task, Expired: expired}
			for range 2 { // the second release of a reservation is not counted
				_, err := releaser.Release(t.Context(), hold)
				f.must(err)
			}
		}
		issue := func() fault.Refusal {
			_, err := f.paths.Issue(t.Context(), path.IssueInput{Sale: f.sale, Item: f.item, User: user, Waived: true})
			return testenv.Refusal(f.t, err)
		}
		release(true)
		release(false) // cancelled in time
		if r := issue(); r != nil {
			t.Fatalf("after one expiry: %#v", r)
		}
		release(true)
		if r, ok := issue().(fault.Throttled); !ok || r.RetryAfter <= 0 || r.RetryAfter > reservation.ExpiredWait || r.Cause != fault.ExpiredReservations {
			t.Errorf("a path after two expiries: %#v", r)
		}
		_, err := f.queue.Enter(t.Context(), f.input(user))
		if r, ok := errors.AsType[fault.Throttled](err); !ok || r.RetryAfter < time.Minute || r.Cause != fault.ExpiredReservations {
			t.Errorf("a place after two expiries: %v", err)
		}
		f.must(f.redis.Del(t.Context(), f.keys.Expiries(f.shard, f.sale, user)).Err()) // the wait is over
		if r := issue(); r != nil {
			t.Errorf("after the wait: %#v", r)
		}
	})
}
