package reservation_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// A rush with one code: over all items of the sale, exactly its uses are taken, also while the
// accounts of one contact share a limit.
func TestACodeIsTakenAsOftenAsItsUses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(2)
		build(t, items, 1, 0, nil)
		code, other := person.CodeOf(1<<18, 5), person.CodeOf(1<<18+1, 1)
		var taken, others atomic.Int64
		var all sync.WaitGroup
		for n := range 40 {
			a := items[n%2].attempt(id.New[id.User]())
			a.OnlyItem, a.Permit.Persons = false, f.persons("", "")
			if n%4 < 2 {
				a.Permit.Persons = f.persons(a.User.String()+"@example.com", a.User.String())
			}
			a.Permit.Persons.Code = code
			all.Go(func() {
				switch o, err := f.gate.Reserve(context.Background(), a); {
				case err != nil:
					t.Error(err)
				case o.Code == reservation.Accepted:
					taken.Add(1)
				case o.Code != reservation.OverCode || o.LimitLeft != 0:
					t.Errorf("outcome %d, %d left", o.Code, o.LimitLeft)
				}
			})
		}
		for range 3 { // another code is counted apart
			all.Go(func() {
				if _, o := items[0].tryAs(person.Keys{Code: other}, 1, 1); o.Code == reservation.Accepted {
					others.Add(1)
				}
			})
		}
		all.Wait()
		if taken.Load() != 5 || others.Load() != 1 {
			t.Errorf("%d and %d units, want 5 and 1", taken.Load(), others.Load())
		}
	})
}

func TestAReleasedUnitGivesTheUseBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(2)
		build(t, items, 1, 0, nil)
		keys := f.persons("a@example.com", "1 Main Street").Under(person.Keys{Code: person.CodeOf(7, 2), Share: person.ShareOf(0)})
		next := keys
		next.Contact, next.Address = "", ""
		first, o := items[0].tryAs(keys, 1, 2)
		if o.Code != reservation.Accepted {
			t.Fatalf("outcome %d", o.Code)
		}
		if r, err := f.gate.Reservations(t.Context(), f.sale, []id.Item{first.Item}, first.User); err != nil || r[first.Item].Persons != keys {
			t.Errorf("reservation %+v %v", r, err)
		}
		if sent := f.orders(); len(sent) != 1 || sent[0].Persons != keys {
			t.Errorf("order messages %+v", sent)
		}
		if _, o := items[1].tryAs(next, 1, 1); o.Code != reservation.OverCode || o.LimitLeft != 0 {
			t.Errorf("a used code: outcome %d, %d left", o.Code, o.LimitLeft)
		}
		s, err := f.gate.Status(t.Context(), f.sale, items[1].item, reservation.WaitingUnknown,
			reservation.StatusUser{User: id.New[id.User](), Persons: next})
		if f.must(err); s.Users[0].LimitLeft != 0 || s.Users[0].LimitBy != person.Code {
			t.Errorf("on the waitlist: %+v", s.Users[0])
		}
		part := reservation.Ref{Sale: first.Sale, Item: first.Item, User: first.User, Task: first.Task, Keep: 1}
		for range 2 { // the second release changes nothing
			f.must(second(f.gate.Release(t.Context(), part)))
		}
		if _, o := items[1].tryAs(next, 1, 2); o.Code != reservation.OverCode || o.LimitLeft != 1 {
			t.Errorf("two with one use: outcome %d, %d left", o.Code, o.LimitLeft)
		}
		if _, o := items[1].tryAs(next, 1, 1); o.Code != reservation.Accepted {
			t.Errorf("the use that returned: outcome %d", o.Code)
		}
		part.Keep, part.Expired = 0, true
		f.must(second(f.gate.Release(t.Context(), part)))
		_, o = items[1].tryAs(next, 1, 1)
		if o.Code != reservation.Accepted {
			t.Errorf("after an expiry: outcome %d", o.Code)
		}
	})
}

func TestARebuiltGateKnowsTheUsesOfACode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(2)
		keys := person.Keys{Code: person.CodeOf(7, 2)}
		build(t, items, 1, 0, map[id.Item][]reservation.Reservation{items[0].item: {
			{User: id.New[id.User](), Task: id.New[id.Task](), Persons: keys, Quantity: 1, At: time.Now()},
		}})
		late := reservation.Reacquire{
			Ref:      reservation.Ref{Sale: f.sale, Item: items[1].item, User: id.New[id.User](), Task: id.New[id.Task]()},
			Quantity: 1, Persons: keys,
		}
		if r, err := f.gate.Reacquire(t.Context(), late); err != nil || r.Code != reservation.Reacquired {
			t.Errorf("within the uses: %+v %v", r, err)
		}
		late.User, late.Task = id.New[id.User](), id.New[id.Task]()
		if r, err := f.gate.Reacquire(t.Context(), late); err != nil || r.Code != reservation.ReacquireOverLimit {
			t.Errorf("over the uses: %+v %v", r, err)
		}
		if _, o := items[0].tryAs(keys, 1, 1); o.Code != reservation.OverCode {
			t.Errorf("outcome %d", o.Code)
		}
	})
}
