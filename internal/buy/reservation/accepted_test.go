package reservation_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func learn(t *testing.T, b *reservation.StockCache) {
	t.Helper()
	refresh(t, b)
	if err := b.RefreshAccepted(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refused reports whether the cache alone refuses an attempt.
func refused(b *reservation.StockCache, a reservation.Attempt) bool {
	_, refused := b.RefuseAttempt(a.Item, a.User, "", a.IdempotencyKey)
	return refused
}

func TestAKeyThatTookTheLastUnitIsNotRefusedInMemory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(3)
		b := f.stockCache(clock.NewFake(time.Now()))
		refresh(t, b)
		var takers []reservation.Attempt
		for range 3 {
			a := f.attempt(id.New[id.User]())
			o := f.reserve(a)
			b.Update(f.item, o.Epoch, o.Revision, o.Remaining)
			takers = append(takers, a)
		}
		late := f.bare(id.New[id.User]())
		if refused(b, late) {
			t.Error("refused in memory before it is known who took the units")
		}
		learn(t, b)
		if !refused(b, late) {
			t.Error("a late buyer is not refused in memory")
		}
		for _, a := range takers { // in another tab: with a new key, and without a path token
			if refused(b, f.bare(a.User)) {
				t.Error("a buyer with a reservation is refused in memory")
			}
			if _, out := b.RefuseUser(f.item, a.User, ""); out {
				t.Error("a buyer with a reservation is refused a path token in memory")
			}
			if o := f.reserve(f.bare(a.User)); o.Code != reservation.AlreadyHolding || o.Task != a.Task {
				t.Errorf("a buyer with a reservation of a sold-out item: %+v", o)
			}
		}
		if _, out := b.RefuseUser(f.item, late.User, ""); !out {
			t.Error("a late buyer is not refused a path token in memory")
		}
		stolen := late
		stolen.IdempotencyKey = takers[0].IdempotencyKey
		if !refused(b, stolen) {
			t.Error("another user's key counts")
		}
		for _, a := range takers {
			if refused(b, a) {
				t.Errorf("who took a unit is refused when asking again")
			}
			again := a
			again.Task = id.NewTask(id.ShardOf(f.sale))
			if o := f.reserve(again); o.Code != reservation.Replayed || o.Task != a.Task {
				t.Errorf("asked again: %+v, want the first task", o)
			}
		}

		// Units move without an idempotency key, as with offers of the waitlist.
		item, idems := f.keys.Item(id.ShardOf(f.sale), f.item), f.keys.IdempotencyKeys(id.ShardOf(f.sale), f.sale)
		if err := f.client.HIncrBy(t.Context(), item, "rev", 1).Err(); err != nil {
			t.Fatal(err)
		}
		learn(t, b)
		if !refused(b, late) || refused(b, takers[1]) {
			t.Error("what was learnt is forgotten because the gate moved")
		}
		// An offer is redeemed with a key; the gate's revision does not change.
		redeemed := f.bare(id.New[id.User]())
		if err := f.client.HSet(t.Context(), idems, redeemed.User.String()+":"+redeemed.IdempotencyKey, "task|item|1").Err(); err != nil {
			t.Fatal(err)
		}
		learn(t, b)
		if refused(b, redeemed) {
			t.Error("who redeemed an offer is refused when asking again")
		}

		// A unit is released and taken by another buyer: the known keys are outdated.
		if _, err := f.gate.Release(t.Context(),
			reservation.Ref{Sale: f.sale, Item: f.item, User: takers[0].User, Task: takers[0].Task}); err != nil {
			t.Fatal(err)
		}
		next := f.attempt(id.New[id.User]())
		f.reserve(next)
		refresh(t, b)
		if refused(b, next) || refused(b, late) {
			t.Error("refused by what was known before the gate moved")
		}
	})
}

func TestAfterTheEndAKeyThatTookAUnitIsAnsweredAndOthersAreRefused(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(5)
	a, expiring := f.attempt(id.New[id.User]()), f.attempt(id.New[id.User]())
	f.reserve(a)
	f.reserve(expiring)
	ended := time.Now().Add(-time.Minute).UnixMilli()
	if err := f.client.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "closes", ended).Err(); err != nil {
		t.Fatal(err)
	}
	b := f.stockCache(clock.NewFake(time.Now()))
	learn(t, b)
	if _, err := f.gate.Release(t.Context(),
		reservation.Ref{Sale: f.sale, Item: f.item, User: expiring.User, Task: expiring.Task}); err != nil {
		t.Fatal(err)
	}
	refresh(t, b) // the gate changes once more, and no unit is taken
	late := f.bare(id.New[id.User]())
	if refused(b, a) || !refused(b, late) {
		t.Errorf("who took a unit is refused: %v; a late buyer is refused: %v", refused(b, a), refused(b, late))
	}
}

// Redis lost the key of one buyer and, after the rebuild, another buyer took the unit:
// there are as many keys as before.
func TestAKeyThatTookAUnitAfterALossIsNotRefusedInMemory(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(1)
	before := f.attempt(id.New[id.User]())
	f.reserve(before)
	now := clock.NewFake(time.Now())
	b := f.stockCache(now)
	learn(t, b)
	if late := f.bare(id.New[id.User]()); refused(b, before) || !refused(b, late) {
		t.Fatalf("before the loss: the buyer with the unit is refused: %v; a late buyer is refused: %v", refused(b, before), refused(b, late))
	}
	shard := id.ShardOf(f.sale)
	for _, key := range []string{f.keys.Item(shard, f.item), f.keys.Reservations(shard, f.item), f.keys.IdempotencyKeys(shard, f.sale)} {
		if err := f.client.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	f.open(1, func(g *reservation.Contents) { g.Epoch, g.Revision = 2, 1000 })
	after := f.bare(id.New[id.User]())
	after.Permit.Epoch = 2
	f.path(after.User)
	f.reserve(after)
	now.Advance(time.Second)
	learn(t, b)
	if late := f.bare(id.New[id.User]()); refused(b, after) || !refused(b, late) {
		t.Errorf("after the loss: the buyer with the unit is refused: %v; a late buyer is refused: %v", refused(b, after), refused(b, late))
	}
}

func TestASaleThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(0)
	b := f.stockCache(clock.NewFake(time.Now()))
	learn(t, b)
	late := reservation.Attempt{Item: f.item, User: id.User(uuid.New()), IdempotencyKey: uuid.NewString()}
	if !refused(b, late) {
		t.Fatal("not refused by a gate without stock")
	}
	if err := f.client.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item)).Err(); err != nil {
		t.Fatal(err)
	}
	learn(t, b)
	if refused(b, late) {
		t.Error("refused by a gate that is gone")
	}
}

// A worker reserves the unit of an accepted task again after Redis lost it.
func TestAKeyWhoseUnitIsReservedAgainIsNotRefusedInMemory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(1)
		first := f.attempt(id.New[id.User]())
		f.reserve(first)
		now := clock.NewFake(time.Now())
		b := f.stockCache(now)
		learn(t, b)
		if _, err := f.gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: f.item, User: first.User, Task: first.Task}); err != nil {
			t.Fatal(err)
		}
		now.Advance(time.Second)
		learn(t, b) // the key of the first buyer is among the recorded ones
		accepted := f.bare(id.New[id.User]())
		got, err := f.gate.Reacquire(t.Context(), reservation.Reacquire{
			Ref:      reservation.Ref{Sale: f.sale, Item: f.item, User: accepted.User, Task: accepted.Task},
			Quantity: 1, IdempotencyKey: accepted.IdempotencyKey,
		})
		if err != nil || got.Code != reservation.Reacquired {
			t.Fatalf("%+v, %v", got, err)
		}
		now.Advance(time.Second)
		learn(t, b)
		if late := f.bare(id.New[id.User]()); refused(b, accepted) || !refused(b, late) {
			t.Errorf("the buyer with the unit is refused: %v; a late buyer is refused: %v", refused(b, accepted), refused(b, late))
		}
	})
}
