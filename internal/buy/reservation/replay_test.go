package reservation_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// wantReplay repeats an attempt with its key and without its path token, checks that it is
// answered with its task, and returns the repeated attempt.
func (f *fixture) wantReplay(a reservation.Attempt, when string) reservation.Attempt {
	f.t.Helper()
	again := a
	again.Task, again.Permit = id.NewTask(id.ShardOf(f.sale)), reservation.Permit{}
	if o := f.reserve(again); o.Code != reservation.Replayed || o.Task != a.Task {
		f.t.Errorf("%s: %+v, want task %s again", when, o, a.Task)
	}
	return again
}

// An idempotency key returns its first task through the whole life of a reservation and
// for a day after it, in a sale of one item and in a sale of several.
func TestAKeyReturnsItsTaskAsLongAsItLives(t *testing.T) {
	t.Parallel()
	for name, only := range map[string]bool{"only item": true, "one of several": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, f *fixture) {
				f.open(5, func(g *reservation.Contents) { g.Limit = 3 })
				a := f.attempt(id.New[id.User]())
				a.OnlyItem = only
				f.reserve(a)
				replayed := func(when string) {
					t.Helper()
					again := f.wantReplay(a, when)
					again.Quantity = 2
					if o := f.reserve(again); o.Code != reservation.IdempotencyMismatch {
						t.Errorf("%s: %+v with another quantity", when, o)
					}
					stranger := again
					stranger.User, stranger.Quantity = id.New[id.User](), 1
					if o := f.reserve(stranger); o.Code == reservation.Replayed || o.Code == reservation.IdempotencyMismatch {
						t.Errorf("%s: %+v for another user", when, o)
					}
				}
				ref := reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}
				replayed("reserved")
				for epoch := int64(2); epoch < 4; epoch++ { // the first build is not completed
					if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, epoch); err != nil || !begun {
						t.Fatal(begun, err)
					}
					replayed("while the gate is built")
				}
				// The table of orders has no idempotency key.
				opened, err := f.gate.Open(t.Context(), reservation.Contents{
					Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 3, Opens: time.Now().Add(-time.Hour),
					Closes: time.Now().Add(time.Hour), Limit: 3, Total: 5, Stock: 4, Revision: 9,
					Reservations: []reservation.Reservation{{User: a.User, Task: a.Task, Quantity: 1, At: time.Now()}},
				})
				if err != nil || !opened {
					t.Fatal(opened, err)
				}
				replayed("rebuilt")
				if r, err := f.gate.Release(t.Context(), ref); err != nil || !r.Done {
					t.Fatal(r, err)
				}
				replayed("released after the rebuild")

				first := a
				a = f.attempt(first.User)
				a.Permit.Epoch = 3
				a.OnlyItem = only
				if o := f.reserve(a); o.Code != reservation.Accepted {
					t.Fatalf("a second purchase under another key: %+v", o)
				}
				ref.Task = a.Task
				if r, err := f.gate.Release(t.Context(), ref); err != nil || !r.Done {
					t.Fatal(r, err)
				}
				replayed("released")
				second := a
				a = f.attempt(first.User)
				a.Permit.Epoch = 3
				a.OnlyItem = only
				f.reserve(a)
				if done, err := f.gate.Unload(t.Context(), f.sale, f.item, 3); err != nil || !done {
					t.Fatal(done, err)
				}
				replayed("unloaded")
				for _, a = range []reservation.Attempt{first, second} {
					replayed("unloaded, of an earlier reservation")
				}
				ttl := f.client.PTTL(t.Context(), f.keys.IdempotencyKeys(id.ShardOf(f.sale), f.sale)).Val()
				if ttl <= 23*time.Hour || ttl > 24*time.Hour {
					t.Errorf("the keys expire in %s", ttl)
				}
			})
		})
	}
}

// A build that keeps many keys must not look as if its process had crashed.
func TestABuildThatKeepsKeysShowsProgress(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		f.reserve(f.attempt(id.New[id.User]()))
		if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, 2); err != nil || !begun {
			t.Fatal(begun, err)
		}
		item := f.keys.Item(id.ShardOf(f.sale), f.item)
		f.must(f.client.HSet(t.Context(), item, "since", 0).Err())
		opened, err := f.gate.Open(t.Context(), reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 2, Opens: time.Now(), Closes: time.Now().Add(time.Hour),
			Limit: 1, Total: 5, Stock: 5, Revision: 9,
		})
		if err != nil || !opened {
			t.Fatal(opened, err)
		}
		if since, err := f.client.HGet(t.Context(), item, "since").Int64(); err != nil || since == 0 {
			t.Errorf("since %d, %v", since, err)
		}
	})
}

// A call for another item of the sale under a used key is a mismatch.
func TestAKeyIsOfTheWholeSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		first := f.item
		f.open(5)
		a := f.attempt(id.New[id.User]())
		a.OnlyItem = false
		f.reserve(a)
		f.item = id.New[id.Item]()
		f.open(5)
		other := f.attempt(a.User)
		other.OnlyItem, other.IdempotencyKey = false, a.IdempotencyKey
		if o := f.reserve(other); o.Code != reservation.IdempotencyMismatch || o.Task != a.Task {
			t.Errorf("%+v", o)
		}
		f.item = first
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
	})
}

// In a sale of one item, an acceptance writes one record: the reservation.
func TestAnAcceptanceHasOneRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		for range 3 {
			f.reserve(f.attempt(id.New[id.User]()))
		}
		shard := id.ShardOf(f.sale)
		if n := f.client.Exists(t.Context(), f.keys.IdempotencyKeys(shard, f.sale)).Val(); n != 0 {
			t.Error("the key is recorded beside the reservation")
		}
		if n := f.client.HLen(t.Context(), f.keys.Reservations(shard, f.item)).Val(); n != 3 {
			t.Errorf("%d reservations", n)
		}
	})
}

// A buyer cancels after the item is sold out, and the unit is for the waitlist: the key
// is recorded in the meantime and must still not be refused in memory.
func TestAKeyOfAnEndedReservationIsNotRefusedInMemory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(2)
		a, b := f.attempt(id.New[id.User]()), f.attempt(id.New[id.User]())
		f.reserve(a)
		f.reserve(b)
		cache := f.stockCache(clock.NewFake(time.Now()))
		if _, err := f.gate.Status(t.Context(), f.sale, f.item, reservation.BuyersWait); err != nil {
			t.Fatal(err)
		}
		f.must(f.client.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "line", time.Now().Add(time.Hour).UnixMilli()).Err())
		if r, err := f.gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}); err != nil || !r.Done {
			t.Fatal(r, err)
		}
		learn(t, cache)
		stranger := reservation.Attempt{Item: f.item, User: id.New[id.User](), IdempotencyKey: uuid.NewString()}
		if refused(cache, a) || refused(cache, b) || !refused(cache, stranger) {
			t.Errorf("refused in memory: ended %v, reserved %v, stranger %v", refused(cache, a), refused(cache, b), refused(cache, stranger))
		}
	})
}

// A refund of some units releases them; the key still answers the attempt of all.
func TestAKeyKeepsTheQuantityOfItsAttempt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5, func(g *reservation.Contents) { g.Limit = 3 })
		a := f.attempt(id.New[id.User]())
		a.Quantity = 3
		if o := f.reserve(a); o.Code != reservation.Accepted {
			t.Fatalf("%+v", o)
		}
		ref := reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task, Keep: 2}
		if r, err := f.gate.Release(t.Context(), ref); err != nil || !r.Done {
			t.Fatal(r, err)
		}
		f.wantReplay(a, "released")
		if done, err := f.gate.Unload(t.Context(), f.sale, f.item, 1); err != nil || !done {
			t.Fatal(done, err)
		}
		f.wantReplay(a, "unloaded")
	})
}
