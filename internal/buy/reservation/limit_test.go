package reservation_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// items returns fixtures of n items of one sale, whose gates are not built.
func (f *fixture) items(n int) []*fixture {
	all := make([]*fixture, n)
	for i := range all {
		one := *f
		one.item = id.New[id.Item]()
		all[i] = &one
	}
	return all
}

// build builds the gates of a sale for an epoch, with the reservations of each item.
func build(t *testing.T, items []*fixture, epoch int64, saleLimit int, held map[id.Item][]reservation.Reservation) {
	t.Helper()
	gates := make([]reservation.Contents, len(items))
	for i, f := range items {
		if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, epoch); err != nil || !begun {
			t.Fatalf("begin: %v %v", begun, err)
		}
		units := 0
		for _, r := range held[f.item] {
			units += r.Quantity
		}
		gates[i] = reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: epoch, Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
			Limit: 2, SaleLimit: saleLimit, Total: 100, Stock: 100 - units, Revision: 1000 * epoch,
		}
	}
	for i, f := range items {
		if written, err := f.gate.AddReservations(t.Context(), &gates[i], held[f.item]); err != nil || !written {
			t.Fatalf("add reservations: %v %v", written, err)
		}
	}
	for i, f := range items {
		if opened, err := f.gate.Open(t.Context(), gates[i]); err != nil || !opened {
			t.Fatalf("open: %v %v", opened, err)
		}
	}
}

// try makes an attempt of a user with a valid path token of an epoch.
func (f *fixture) try(user id.User, epoch int64, quantity int) (reservation.Attempt, reservation.Outcome) {
	f.t.Helper()
	a := f.attempt(user)
	a.OnlyItem, a.Permit.Epoch, a.Quantity = false, epoch, quantity
	return a, f.reserve(a)
}

func TestAHundredAttemptsOverFiveItemsTakeTheLimitOfTheSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(5)
		build(t, items, 1, 2, nil)
		user, other := id.New[id.User](), id.New[id.User]()
		for _, it := range items {
			it.path(user)
		}
		var all sync.WaitGroup
		outcomes := make([]reservation.Outcome, 100)
		attempts := make([]reservation.Attempt, len(outcomes))
		for i := range outcomes {
			attempts[i] = items[i%len(items)].bare(user)
			attempts[i].OnlyItem = false
			all.Go(func() {
				o, err := f.gate.Reserve(context.Background(), attempts[i])
				if err != nil {
					t.Errorf("attempt %d: %v", i, err)
				}
				outcomes[i] = o
			})
		}
		all.Wait()
		var accepted []reservation.Attempt
		for i, o := range outcomes {
			switch o.Code {
			case reservation.Accepted:
				accepted = append(accepted, attempts[i])
			case reservation.OverSaleLimit:
				if o.LimitLeft != 0 {
					t.Errorf("a refused attempt leaves room for %d", o.LimitLeft)
				}
			case reservation.AlreadyHolding, reservation.PathInvalid: // of an item that was bought
			default:
				t.Errorf("outcome %d", o.Code)
			}
		}
		if len(accepted) != 2 {
			t.Fatalf("%d units at a limit of 2", len(accepted))
		}
		if _, o := items[0].try(other, 1, 1); o.Code != reservation.Accepted {
			t.Errorf("another buyer: outcome %d", o.Code)
		}

		first := accepted[0]
		ref := reservation.Ref{Sale: first.Sale, Item: first.Item, User: user, Task: first.Task}
		for range 2 { // the second release changes nothing
			if _, err := f.gate.Release(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		taken := 0
		for _, it := range items {
			if it.item != accepted[1].Item {
				if _, o := it.try(user, 1, 1); o.Code == reservation.Accepted {
					taken++
				}
			}
		}
		if taken != 1 {
			t.Errorf("after a release of one unit %d more were taken", taken)
		}
	})
}

func TestARefusalByALimitReportsWhatItLeaves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(3)
		build(t, items, 1, 3, nil)
		user := id.New[id.User]()
		expect := func(it *fixture, quantity int, code reservation.Code, room int) reservation.Attempt {
			t.Helper()
			a, o := it.try(user, 1, quantity)
			if o.Code != code || o.LimitLeft != room {
				t.Errorf("%d units: outcome %d with room for %d, want %d with room for %d", quantity, o.Code, o.LimitLeft, code, room)
			}
			return a
		}
		expect(items[0], 3, reservation.OverLimit, 2)
		a := expect(items[0], 2, reservation.Accepted, 0)
		if o := f.reserve(a); o.Code != reservation.Accepted { // a replay of the same task
			t.Errorf("a repeated call: outcome %d", o.Code)
		}
		expect(items[1], 3, reservation.OverLimit, 1)
		expect(items[1], 2, reservation.OverSaleLimit, 1)
		expect(items[1], 1, reservation.Accepted, 0)
		expect(items[2], 1, reservation.OverSaleLimit, 0)
		expect(items[0], 1, reservation.AlreadyHolding, 0)
	})
}

func TestARebuiltGateKnowsTheUnitsOfEachBuyer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(3)
		build(t, items, 1, 2, nil)
		user := id.New[id.User]()
		a, o := items[0].try(user, 1, 1)
		if o.Code != reservation.Accepted {
			t.Fatalf("outcome %d", o.Code)
		}
		of := func(task id.Task) reservation.Reservation {
			return reservation.Reservation{User: user, Task: task, Quantity: 1, At: time.Now(), IdempotencyKey: uuid.NewString()}
		}
		// The same user twice: the later record replaces the first.
		build(t, items, 2, 2, map[id.Item][]reservation.Reservation{items[0].item: {of(id.New[id.Task]()), of(a.Task)}})
		if _, o := items[1].try(user, 2, 2); o.Code != reservation.OverSaleLimit || o.LimitLeft != 1 {
			t.Errorf("two beside one: outcome %d, room %d", o.Code, o.LimitLeft)
		}
		if _, o := items[1].try(user, 2, 1); o.Code != reservation.Accepted {
			t.Errorf("the second unit: outcome %d", o.Code)
		}
		if _, o := items[2].try(user, 2, 1); o.Code != reservation.OverSaleLimit {
			t.Errorf("the third unit: outcome %d", o.Code)
		}
		late := reservation.Reacquire{Ref: reservation.Ref{Sale: f.sale, Item: items[2].item, User: user, Task: id.New[id.Task]()}, Quantity: 1}
		if r, err := f.gate.Reacquire(t.Context(), late); err != nil || r.Code != reservation.ReacquireOverLimit {
			t.Errorf("reacquire over the limit: %+v %v", r, err)
		}
		if _, err := f.gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: items[0].item, User: user, Task: a.Task}); err != nil {
			t.Fatal(err)
		}
		if r, err := f.gate.Reacquire(t.Context(), late); err != nil || r.Code != reservation.Reacquired {
			t.Errorf("reacquire within the limit: %+v %v", r, err)
		}
		if _, o := items[0].try(user, 2, 1); o.Code != reservation.OverSaleLimit {
			t.Errorf("after the reacquired unit: outcome %d", o.Code)
		}
	})
}

// A process of release 0.1 that rebuilds a gate does not write the units per buyer.
func TestAGateWithoutTheUnitsOfItsBuyersIsLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(2)
		build(t, items, 1, 2, nil)
		f.must(f.client.Del(t.Context(), f.keys.Units(id.ShardOf(f.sale), f.sale)).Err())
		if _, o := items[0].try(id.New[id.User](), 1, 1); o.Code != reservation.NotLoaded {
			t.Errorf("outcome %d", o.Code)
		}
		if s, err := f.gate.State(t.Context(), f.sale, items[0].item); err != nil || !s.Stale {
			t.Errorf("state %+v %v", s, err)
		}
	})
}
