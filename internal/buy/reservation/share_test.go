package reservation_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// keeping adds a share to a gate.
func keeping(key person.Key, units int, until time.Time) func(*reservation.Contents) {
	return func(g *reservation.Contents) {
		g.Shares = append(g.Shares, reservation.Share{Key: key, Units: units, Until: until})
	}
}

// tryOf is an attempt of a new user of a share, "" = of none.
func (f *fixture) tryOf(share person.Key, quantity int) (reservation.Attempt, reservation.Outcome) {
	f.t.Helper()
	return f.tryAs(person.Keys{Contact: hasher.Contact(f.sale, uuid.NewString(), true), Share: share}, 1, quantity)
}

// shares returns the shares of the item in Redis.
func (f *fixture) shares() []reservation.Share {
	f.t.Helper()
	text, _ := f.client.HGet(f.t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "kept").Result()
	shares, err := reservation.ParseShares(text)
	f.must(err)
	return shares
}

// A rush of all buyers at once: exactly the kept units are left to the buyers of each share.
func TestKeptUnitsAreSoldToTheirBuyersAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		later := time.Now().Add(time.Hour)
		first, second := person.ShareOf(0), person.ShareOf(3)
		f.open(10, keeping(first, 3, later), keeping(second, 2, later))
		var sold, others sync.Map
		count := func(m *sync.Map, key person.Key) *atomic.Int64 {
			n, _ := m.LoadOrStore(key, new(atomic.Int64))
			return n.(*atomic.Int64)
		}
		var all sync.WaitGroup
		rush := func(key person.Key, into *sync.Map, n int) {
			for range n {
				a := f.attempt(id.New[id.User]())
				a.Permit.Persons.Share = key
				all.Go(func() {
					switch o, err := f.gate.Reserve(context.Background(), a); {
					case err != nil:
						t.Error(err)
					case o.Code == reservation.Accepted:
						count(into, key).Add(1)
					case o.Code != reservation.SoldOut:
						t.Errorf("outcome %d", o.Code)
					}
				})
			}
			all.Wait()
		}
		rush("", &others, 20)
		if n := count(&others, "").Load(); n != 5 {
			t.Errorf("buyers of no share took %d units, want 5", n)
		}
		rush(first, &sold, 20)
		rush(second, &sold, 20)
		if n, m := count(&sold, first).Load(), count(&sold, second).Load(); n != 3 || m != 2 {
			t.Errorf("the shares took %d and %d units, want 3 and 2", n, m)
		}
		f.want(figures{stock: 0, reserved: 10, holders: 10, orders: 10})
	})
}

// A released unit is kept again, a repeated release gives nothing, and a rebuilt gate knows the shares.
func TestAReleasedUnitReturnsToItsShare(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		share := person.ShareOf(1)
		f.open(2, keeping(share, 1, time.Now().Add(time.Hour)))
		a, o := f.tryOf(share, 1)
		if o.Code != reservation.Accepted {
			t.Fatalf("outcome %d", o.Code)
		}
		if b, o := f.tryOf("", 1); o.Code != reservation.Accepted {
			t.Fatalf("the other unit: outcome %d of %s", o.Code, b.User)
		}
		for range 2 {
			f.must(second(f.gate.Release(t.Context(), reservation.Ref{Sale: a.Sale, Item: a.Item, User: a.User, Task: a.Task})))
		}
		if _, o := f.tryOf("", 1); o.Code != reservation.SoldOut {
			t.Errorf("another buyer: outcome %d", o.Code)
		}
		offer := reservation.Reacquire{Ref: reservation.Ref{Sale: f.sale, Item: f.item, User: id.New[id.User](), Task: id.New[id.Task]()}, Quantity: 1}
		if r, err := f.gate.Reacquire(t.Context(), offer); err != nil || r.Code != reservation.ReacquireTooFew {
			t.Errorf("an offer to another buyer: %+v %v", r, err)
		}
		act := reservation.Adjustment{Sale: f.sale, Item: f.item, Act: id.New[id.Act](), Units: -1}
		if r, err := f.gate.Adjust(t.Context(), act); err != nil || r.Code != reservation.AdjustTooFew {
			t.Errorf("removal of a kept unit: %+v %v", r, err)
		}
		offer.Persons.Share = share
		if r, err := f.gate.Reacquire(t.Context(), offer); err != nil || r.Code != reservation.Reacquired {
			t.Errorf("an offer to a buyer of the share: %+v %v", r, err)
		}
		if got := f.shares(); len(got) != 1 || got[0].Taken != 1 {
			t.Errorf("shares %+v", got)
		}
	})
}

// While buyers wait, released units are for them, and what a share keeps is for its buyers.
func TestAWaitlistLeavesKeptUnitsToTheirBuyers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		share := person.ShareOf(0)
		f.open(3, keeping(share, 1, time.Now().Add(time.Hour)))
		user := reservation.StatusUser{User: id.New[id.User]()}
		status, err := f.gate.Status(t.Context(), f.sale, f.item, reservation.BuyersWait, user,
			reservation.StatusUser{User: user.User, Persons: person.Keys{Share: share}})
		if err != nil || status.Users[0].Free != 2 || status.Users[1].Free != 3 {
			t.Fatalf("status %+v %v", status, err)
		}
		for i, want := range []reservation.Code{reservation.Accepted, reservation.SoldOut} {
			if _, o := f.tryOf(share, 1); o.Code != want {
				t.Errorf("buyer %d of the share: outcome %d, want %d", i, o.Code, want)
			}
		}
	})
}

// At its second a share is for all: for the scripts, and for the copy of this process, which reopens
// without a change of the gate.
func TestAShareEndsAtItsSecond(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		now, err := f.client.Time(t.Context()).Result()
		f.must(err)
		until := now.Add(1500 * time.Millisecond).Truncate(time.Millisecond)
		f.open(1, keeping(person.ShareOf(0), 1, until))
		board := f.stockCache(clock.System{})
		refresh(t, board)
		if o, refused := board.Refuse(f.item, ""); !refused || o.Code != reservation.SoldOut {
			t.Errorf("before its second: %+v %v", o, refused)
		}
		for _, share := range []person.Key{person.ShareOf(0), reservation.AnyShare} {
			if _, refused := board.Refuse(f.item, share); refused {
				t.Errorf("a buyer of %q is refused", share)
			}
		}
		for f.client.Time(t.Context()).Val().Before(until.Add(-reservationSlack)) {
			if _, o := f.tryOf("", 1); o.Code != reservation.SoldOut && o.At.Before(until) {
				t.Fatalf("outcome %d at %s before its second", o.Code, o.At)
			}
		}
		for {
			_, o := f.tryOf("", 1)
			if o.Code == reservation.Accepted {
				if o.At.Before(until) {
					t.Errorf("sold %s early", until.Sub(o.At))
				}
				break
			}
			if !o.At.Before(until) {
				t.Fatalf("outcome %d at %s after its second", o.Code, o.At.Sub(until))
			}
		}
		v, _ := board.View(f.item)
		if v.ForSale(until.Add(-time.Millisecond)) != 0 || v.ForSale(until) != 1 {
			t.Errorf("the copy sells %d at its second", v.ForSale(until))
		}
	})
}

const reservationSlack = 300 * time.Millisecond

// The opening moves, and the time of the shares with it.
func TestTheTimeOfAShareMovesWithTheOpening(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		var opens time.Time
		f.open(1, keeping(person.ShareOf(0), 1, until), func(g *reservation.Contents) { opens = g.Opens })
		f.must(second(f.gate.SetState(t.Context(), reservation.StateChange{Sale: f.sale, Item: f.item, Epoch: 1, Revision: 2,
			State: reservation.GateOpen, Opens: opens.Add(time.Minute), Closes: time.Now().Add(2 * time.Hour)})))
		if got := f.shares(); len(got) != 1 || !got[0].Until.Equal(until.Add(time.Minute)) {
			t.Errorf("shares %+v, want until %s", got, until.Add(time.Minute))
		}
	})
}

// Shares × times × buyers: whatever is asked and released in whatever order, the copy of this process
// and the script agree, units of a share are never sold to others before its time, and no unit is lost.
func TestSharesHoldWhateverIsAsked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		rapid.Check(t, func(rt *rapid.T) {
			g := *f
			g.sale, g.item = id.New[id.Sale](), id.New[id.Item]()
			total := rapid.IntRange(1, 8).Draw(rt, "total")
			times := []time.Duration{-time.Minute, time.Hour}
			until := map[person.Key]time.Time{}
			var add []func(*reservation.Contents)
			left := total
			kept := map[person.Key]int{}
			for i := range rapid.IntRange(0, 3).Draw(rt, "shares") {
				key := person.ShareOf(i)
				kept[key] = rapid.IntRange(0, left).Draw(rt, "kept")
				left -= kept[key]
				until[key] = time.Now().Add(rapid.SampledFrom(times).Draw(rt, "until"))
				add = append(add, keeping(key, kept[key], until[key]))
			}
			g.open(total, append(add, func(c *reservation.Contents) { c.Limit = 3 })...)
			board := g.stockCache(clock.System{})
			taken := map[person.Key]int{}
			var held []reservation.Attempt
			for range rapid.IntRange(1, 20).Draw(rt, "steps") {
				if len(held) > 0 && rapid.IntRange(0, 3).Draw(rt, "release") == 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
					a := held[i]
					held = append(held[:i], held[i+1:]...)
					g.must(second(g.gate.Release(context.Background(), reservation.Ref{Sale: a.Sale, Item: a.Item, User: a.User, Task: a.Task})))
					taken[a.Permit.Persons.Share] -= a.Quantity
					continue
				}
				share := rapid.SampledFrom([]person.Key{"", "s0", "s1", "s2"}).Draw(rt, "share")
				units := rapid.IntRange(1, 3).Draw(rt, "units")
				free, now := total, time.Now()
				for _, n := range taken {
					free -= n
				}
				for key, n := range kept {
					if key != share && now.Before(until[key]) {
						free -= max(0, n-taken[key])
					}
				}
				want := reservation.Accepted
				switch {
				case free <= 0:
					want = reservation.SoldOut
				case free < units:
					want = reservation.TooFewLeft
				}
				g.must(board.Refresh(context.Background()))
				v, _ := board.View(g.item)
				a, o := g.tryOf(share, units)
				if o.Code != want || want == reservation.TooFewLeft && o.Remaining != free || v.ForShare(share, now) != max(0, free) {
					rt.Fatalf("%d units for %q: outcome %d with %d left, the copy %d, want %d with %d; %v of %d, taken %v", units, share,
						o.Code, o.Remaining, v.ForShare(share, now), want, free, kept, total, taken)
				}
				if o.Code == reservation.Accepted {
					held = append(held, a)
					taken[share] += units
				}
			}
			for _, s := range g.shares() {
				if s.Taken != taken[s.Key] {
					rt.Fatalf("share %+v, taken %v", s, taken)
				}
			}
		})
	})
}
