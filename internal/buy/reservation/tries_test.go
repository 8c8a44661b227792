package reservation_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestTriesAreCountedAcrossProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		second := newFixture(t, f.client, f.keys.Prefix) // another process that uses the same gate
		user, tries := id.New[id.User](), reservation.Tries{Burst: 5, Window: 5 * time.Hour}
		passed, refused := make(chan struct{}, 40), make(chan time.Duration, 40)
		var wg sync.WaitGroup
		for n := range 40 {
			reserver := []*reservation.Gate{f.gate, second.gate}[n%2]
			a := f.bare(user)
			a.Permit, a.Tries = reservation.Permit{}, tries
			wg.Go(func() {
				o, err := reserver.Reserve(context.Background(), a)
				switch {
				case err != nil:
					t.Error(err)
				case o.Code == reservation.TooManyTries:
					refused <- o.RetryAfter
				case o.Code == reservation.PathInvalid:
					passed <- struct{}{}
				default:
					t.Errorf("outcome %+v", o)
				}
			})
		}
		wg.Wait()
		if len(passed) != tries.Burst || len(refused) != 40-tries.Burst {
			t.Fatalf("%d tries passed and %d were refused, want %d and %d", len(passed), len(refused), tries.Burst, 40-tries.Burst)
		}
		for range len(refused) {
			if wait := <-refused; wait <= 0 || wait > tries.Window {
				t.Errorf("has to wait %s", wait)
			}
		}
		other := f.attempt(id.New[id.User]())
		other.Tries = tries
		if o := f.reserve(other); o.Code != reservation.Accepted {
			t.Errorf("another user: %+v", o)
		}
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
	})
}

func TestAnAttemptSentAgainIsNotATry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		a := f.attempt(id.New[id.User]())
		a.Tries = reservation.Tries{Burst: 1, Window: 5 * time.Hour}
		if o := f.reserve(a); o.Code != reservation.Accepted {
			t.Fatalf("the only try: %+v", o)
		}
		if o := f.reserve(a); o.Code != reservation.Accepted || o.Task != a.Task {
			t.Errorf("sent again after a lost reply: %+v", o)
		}
		again := a
		again.Task = id.NewTask(id.ShardOf(f.sale))
		if o := f.reserve(again); o.Code != reservation.TooManyTries || !o.Task.IsZero() || o.Epoch != 0 {
			t.Errorf("pressed again: %+v", o)
		}
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
	})
}

func TestALimitThatWasLoosenedHoldsNoUserBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		a := f.attempt(id.New[id.User]())
		spent := f.bare(a.User)
		spent.Permit, spent.Tries = reservation.Permit{}, reservation.Tries{Burst: 1, Window: 5 * time.Hour}
		f.reserve(spent)
		a.Tries = reservation.Tries{Burst: 2, Window: 2 * time.Millisecond}
		testenv.Eventually(t, testenv.Wait, func() bool { return f.reserve(a).Code == reservation.Accepted }, "the buyer gets a try by the new limit")
	})
}
