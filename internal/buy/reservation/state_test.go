package reservation_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func (f *fixture) adjust(act id.Act, units int) reservation.Adjusted {
	f.t.Helper()
	a, err := f.gate.Adjust(context.Background(), reservation.Adjustment{Sale: f.sale, Item: f.item, Act: act, Units: units})
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

func (f *fixture) field(name string) string {
	f.t.Helper()
	return f.client.HGet(context.Background(), f.keys.Item(id.ShardOf(f.sale), f.item), name).Val()
}

func (f *fixture) wantField(name, want string) {
	f.t.Helper()
	if got := f.field(name); got != want {
		f.t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func TestAnAdjustmentCountsOncePerAct(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		more, fewer := id.New[id.Act](), id.New[id.Act]()
		if a := f.adjust(more, 5); a.Code != reservation.AdjustNotLoaded {
			t.Errorf("without a gate: %+v", a)
		}
		f.open(10)
		if a := f.adjust(more, 5); a.Code != reservation.AdjustDone || a.Remaining != 15 || a.Epoch != 1 {
			t.Errorf("the first time: %+v", a)
		}
		if a := f.adjust(more, 5); a.Code != reservation.AdjustDoneBefore || a.Remaining != 15 || !a.Counted() {
			t.Errorf("the second time: %+v", a)
		}
		if a := f.adjust(fewer, -15); a.Code != reservation.AdjustDone || a.Remaining != 0 {
			t.Errorf("everything off: %+v", a)
		}
		if a := f.adjust(id.New[id.Act](), -1); a.Code != reservation.AdjustTooFew || a.Counted() {
			t.Errorf("more than is there: %+v", a)
		}
		f.wantField("total", "0")
		f.wantField("stock", "0")
	})
}

func TestStatusKeepsTheRecordOfWaitingBuyersWhenItIsNotKnown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(10)
		status := func(w reservation.Waiting) string {
			if _, err := f.gate.Status(t.Context(), f.sale, f.item, w); err != nil {
				t.Fatal(err)
			}
			return f.field("line")
		}
		until := status(reservation.BuyersWait)
		if got := status(reservation.WaitingUnknown); got != until || got == "" {
			t.Errorf("%q, want %q", got, until)
		}
		if got := status(reservation.NoBuyerWaits); got != "" {
			t.Errorf("%q although no buyer waits", got)
		}
	})
}

func TestAnActIsTakenBackOnlyWhereItWasCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(10)
		taken, never := id.New[id.Act](), id.New[id.Act]()
		f.adjust(taken, -4)
		back := func(act, what id.Act) reservation.Adjusted {
			a, err := f.gate.Adjust(t.Context(), reservation.Adjustment{Sale: f.sale, Item: f.item, Act: act, Units: 4, Undoes: what})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := back(id.New[id.Act](), never); a.Code != reservation.AdjustNothing || a.Remaining != 6 {
			t.Errorf("an act that was never counted: %+v", a)
		}
		undo := id.New[id.Act]()
		if a := back(undo, taken); a.Code != reservation.AdjustDone || a.Remaining != 10 {
			t.Errorf("the act that was counted: %+v", a)
		}
		if a := back(undo, taken); a.Code != reservation.AdjustDoneBefore || a.Remaining != 10 {
			t.Errorf("the same again: %+v", a)
		}
	})
}

func TestAnAdjustmentNeverTouchesWhatIsHeld(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(10)
		for range 7 {
			f.reserve(f.attempt(id.New[id.User]()))
		}
		if a := f.adjust(id.New[id.Act](), -4); a.Code != reservation.AdjustTooFew || a.Remaining != 3 {
			t.Errorf("four of three: %+v", a)
		}
		if a := f.adjust(id.New[id.Act](), -3); a.Code != reservation.AdjustDone {
			t.Errorf("three of three: %+v", a)
		}
		f.want(figures{stock: 0, reserved: 7, holders: 7, orders: 7})
		f.wantField("total", "7")
	})
}

func TestABuildKnowsTheActsThatItCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		counted, later := id.New[uuid.UUID](), id.New[id.Act]()
		f.open(15, func(g *reservation.Contents) { g.Acts = []uuid.UUID{id.New[uuid.UUID](), counted} })
		if a := f.adjust(id.Act(counted), 5); a.Code != reservation.AdjustDoneBefore {
			t.Errorf("an act that the build counted: %+v", a)
		}
		if a := f.adjust(later, 5); a.Code != reservation.AdjustDone || a.Remaining != 20 {
			t.Errorf("an act after the build: %+v", a)
		}
		if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, 2); err != nil || !begun {
			t.Fatal(begun, err)
		}
		if a := f.adjust(id.New[id.Act](), 5); a.Code != reservation.AdjustBuilding {
			t.Errorf("while a gate is built: %+v", a)
		}
	})
}

// While Postgres is compared with Redis, buyers read that the sale is paused, and no unit is
// taken. The revision of the sale stays, so that the next check opens the gate again.
func TestASuspendedGateSellsNothingUntilItsStateIsSet(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		ref := reservation.ItemRef{Sale: f.sale, Item: f.item}
		f.must(f.gate.Suspend(t.Context(), ref))
		f.wantField("gate", "") // no gate is made
		f.open(10, func(g *reservation.Contents) { g.SaleRevision = 3 })
		set := func(state string) {
			t.Helper()
			done, err := f.gate.SetState(t.Context(), reservation.StateChange{
				Sale: f.sale, Item: f.item, Epoch: 1, Revision: 3, State: state, Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
			})
			if err != nil || !done.Done {
				t.Errorf("%s: %+v %v", state, done, err)
			}
		}
		for range 2 {
			f.must(f.gate.Suspend(t.Context(), ref))
			if o := f.reserve(f.attempt(id.New[id.User]())); o.Code != reservation.Paused {
				t.Errorf("a suspended gate answered %d", o.Code)
			}
			f.want(figures{stock: 10})
			f.wantField("srev", "3")
		}
		set(reservation.GateOpen)
		if o := f.reserve(f.attempt(id.New[id.User]())); o.Code != reservation.Accepted {
			t.Errorf("afterwards it answered %d", o.Code)
		}
		set(reservation.GateEnded)
		f.must(f.gate.Suspend(t.Context(), ref))
		f.wantField("gate", reservation.GateEnded)
	})
}

func TestOfTwoTurnsTheLaterDecides(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		turn := func(epoch, revision int64, state string) bool {
			set, err := f.gate.SetState(t.Context(), reservation.StateChange{
				Sale: f.sale, Item: f.item, Epoch: epoch, Revision: revision, State: state, Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			return set.Done
		}
		if turn(1, 5, reservation.GatePaused) {
			t.Error("a gate that is not there was turned")
		}
		f.open(10, func(g *reservation.Contents) { g.SaleRevision = 3 })
		if !turn(1, 5, reservation.GatePaused) {
			t.Error("the first turn was refused")
		}
		if o := f.reserve(f.attempt(id.New[id.User]())); o.Code != reservation.Paused {
			t.Errorf("a held gate answered %d", o.Code)
		}
		if turn(1, 4, reservation.GateOpen) || turn(2, 9, reservation.GateOpen) {
			t.Error("an older act, or one of another epoch, opened the gate")
		}
		for range 2 {
			if !turn(1, 6, reservation.GateOpen) {
				t.Error("a later act, or the same again, was refused")
			}
		}
		if o := f.reserve(f.attempt(id.New[id.User]())); o.Code != reservation.Accepted {
			t.Errorf("an open gate answered %d", o.Code)
		}
		if !turn(1, 7, reservation.GateEnded) {
			t.Error("the end was refused")
		}
		if o := f.reserve(f.attempt(id.New[id.User]())); o.Code != reservation.Ended {
			t.Errorf("an ended gate answered %d", o.Code)
		}
	})
}

func TestASettledGateIsRemovedButNeverANewerOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(10, func(g *reservation.Contents) { g.Epoch = 4 })
		unload := func(epoch int64) bool {
			done, err := f.gate.Unload(t.Context(), f.sale, f.item, epoch)
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		if unload(3) {
			t.Error("a newer gate was removed")
		}
		if !unload(4) || unload(4) {
			t.Error("the gate was not removed once")
		}
		f.want(figures{})
	})
}

func TestAnOvertakenBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, 1); err != nil || !begun {
			t.Fatal(begun, err)
		}
		f.open(10, func(g *reservation.Contents) { g.Epoch = 2 })
		opened, err := f.gate.Open(t.Context(), reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 1, Total: 10, Stock: 9,
			Reservations: []reservation.Reservation{{User: id.New[id.User](), Task: id.New[id.Task](), Quantity: 1}},
		})
		if err != nil || opened {
			t.Fatal(opened, err)
		}
		f.want(figures{stock: 10})
	})
}

// Stock is adjusted up and down while buyers take and release units; every read of the
// gate finds stock + reserved = total, and no negative number.
func TestAdjustingARunningGateKeepsItsSumAtEveryLook(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(50)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var looks atomic.Int64
		var watcher, workers sync.WaitGroup
		watcher.Go(func() {
			key := f.keys.Item(id.ShardOf(f.sale), f.item)
			for ctx.Err() == nil {
				v, err := f.client.HMGet(ctx, key, "stock", "reserved", "total").Result()
				if err != nil {
					continue
				}
				s, r, total := number(v[0]), number(v[1]), number(v[2])
				if s < 0 || r < 0 || s+r != total {
					t.Errorf("stock %d + reserved %d, total %d", s, r, total)
				}
				looks.Add(1)
			}
		})
		attempts := make([]reservation.Attempt, 400)
		for i := range attempts {
			attempts[i] = f.attempt(id.New[id.User]())
		}
		var put, taken, sold, back atomic.Int64
		for w := range 8 {
			workers.Go(func() {
				for i := w; i < len(attempts); i += 8 {
					a := attempts[i]
					if o := f.reserve(a); o.Code == reservation.Accepted {
						sold.Add(1)
						if i%3 == 0 {
							if r, err := f.gate.Release(ctx, reservation.Ref{Sale: a.Sale, Item: a.Item, User: a.User, Task: a.Task}); err == nil && r.Done {
								back.Add(1)
							}
						}
					}
					act := id.New[id.Act]()
					for range 2 { // each twice, as after a lost reply
						switch {
						case i%4 == 0:
							if f.adjust(act, 2).Code == reservation.AdjustDone {
								put.Add(2)
							}
						case i%4 == 1:
							if f.adjust(act, -1).Code == reservation.AdjustDone {
								taken.Add(1)
							}
						}
					}
				}
			})
		}
		workers.Wait()
		testenv.Eventually(t, testenv.Wait, func() bool { return looks.Load() >= 5 }, "the figures are read meanwhile")
		cancel()
		watcher.Wait()
		got := f.figures()
		total := 50 + put.Load() - taken.Load()
		if int64(got.stock+got.reserved) != total || int64(got.reserved) != sold.Load()-back.Load() {
			t.Errorf("%+v of %d; sold %d, back %d, looks %d", got, total, sold.Load(), back.Load(), looks.Load())
		}
	})
}

func number(v any) int64 {
	var n int64
	text, _ := v.(string)
	negative := len(text) > 0 && text[0] == '-'
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		}
	}
	if negative {
		return -n
	}
	return n
}
