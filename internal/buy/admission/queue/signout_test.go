package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/id"
)

// enterFrom requires a ticket for a session of a user.
func (f *fixture) enterFrom(user id.User, session id.Session) *queue.Ticket {
	f.t.Helper()
	in := f.input(user)
	in.Session = session
	t, err := f.queue.Enter(f.t.Context(), in)
	if err != nil || t == nil {
		f.t.Fatalf("enter: %+v, %v", t, err)
	}
	return t
}

func TestSigningOutGivesPlacesUpAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.rules.Store(&queue.Rules{PerMille: 100}) // ten units: one permit
		desktop, phone := id.New[id.Session](), id.New[id.Session]()
		admitted := f.enterFrom(id.New[id.User](), desktop)
		f.step()
		moved := f.enterFrom(id.New[id.User](), desktop)
		moved = f.enterFrom(moved.User, phone)
		waiting := f.enterFrom(id.New[id.User](), desktop)
		last := f.enterFrom(id.New[id.User](), id.New[id.Session]())
		f.must(f.queue.SignedOut(t.Context(), desktop, id.New[id.Session]()))
		for name, c := range map[string]struct {
			ticket *queue.Ticket
			want   queue.Status
		}{
			"let in, with an unused path": {admitted, queue.Left}, "in line": {waiting, queue.Left},
			"taken over by another session": {moved, queue.Waiting}, "another user's": {last, queue.Waiting},
		} {
			if now := f.ticket(c.ticket); now.Status != c.want {
				t.Errorf("%s: %s, want %s", name, now.Status, c.want)
			}
		}
		if err := f.redis.ZScore(t.Context(), f.keys.Permits(f.shard, f.item), admitted.User.String()).Err(); !errors.Is(err, redis.Nil) {
			t.Error("the path of who signed out can still be used")
		}
		f.step() // the free permit goes to the next buyer
		if now := f.ticket(moved); now.Status != queue.Admitted {
			t.Errorf("the next in line is %s", now.Status)
		}
	})
}

func TestWhenEveryUnitIsPaidAllWhoWaitAreNotified(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		var people []*queue.Ticket
		for range 250 {
			people = append(people, f.enter(id.New[id.User]()))
		}
		f.set("stock", 0, "reserved", 10)
		paid := false
		f.gone = func(_ context.Context, item id.Item) (bool, error) { return paid && item == f.item, nil }
		if counts := f.step(); counts["closed"] != 0 {
			t.Errorf("units are unpaid and may come back, and %d were sent away", counts["closed"])
		}
		paid = true
		if counts := f.step(); counts["closed"] != len(people) {
			t.Errorf("%d of %d were notified", counts["closed"], len(people))
		}
		for _, p := range people {
			if now := f.ticket(p); now.Status != queue.Closed {
				t.Fatalf("one is %s", now.Status)
			}
		}
	})
}
