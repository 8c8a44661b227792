package reservation_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// hasher makes person keys in tests.
var hasher = person.NewHasher([][]byte{[]byte("a secret of at least 32 bytes, for tests")})

// keys returns the person keys of a contact and a street; "" = none.
func (f *fixture) persons(contact, street string) (k person.Keys) {
	if contact != "" {
		k.Contact = hasher.Contact(f.sale, contact, true)
	}
	if street != "" {
		k.Address = hasher.Address(f.sale, person.Place{Country: "CN", PostalCode: "200000", Street: street})
	}
	return k
}

// tryAs is try for a new user with person keys.
func (f *fixture) tryAs(keys person.Keys, epoch int64, quantity int) (reservation.Attempt, reservation.Outcome) {
	f.t.Helper()
	a := f.attempt(id.New[id.User]())
	a.OnlyItem, a.Permit.Epoch, a.Permit.Persons, a.Quantity = false, epoch, keys, quantity
	return a, f.reserve(a)
}

func TestAccountsOfOnePersonTakeTheLimitOfOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for saleLimit, want := range map[int]int64{0: 2 * 3, 2: 2} { // the items have a limit of 2 each
			items := f.items(3)
			build(t, items, int64(1+saleLimit), saleLimit, nil)
			var taken atomic.Int64
			var all sync.WaitGroup
			for n := range 60 {
				it := items[n%len(items)]
				a := it.attempt(id.New[id.User]())
				a.OnlyItem, a.Permit.Epoch = false, int64(1+saleLimit)
				a.Permit.Persons = f.persons(fmt.Sprintf("buyer+%d@example.com", n), "")
				all.Go(func() {
					switch o, err := f.gate.Reserve(context.Background(), a); {
					case err != nil:
						t.Errorf("attempt %d: %v", n, err)
					case o.Code == reservation.Accepted:
						taken.Add(1)
					case o.Code != reservation.OverContactLimit || o.LimitLeft != 0:
						t.Errorf("attempt %d: outcome %d with room for %d", n, o.Code, o.LimitLeft)
					}
				})
			}
			all.Wait()
			if taken.Load() != want {
				t.Errorf("one mailbox took %d units of a sale with limit %d, want %d", taken.Load(), saleLimit, want)
			}
		}
	})
}

func TestTheUnitsOfAPersonReturnWithTheReservation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(2)
		build(t, items, 1, 2, nil)
		home := f.persons("a@example.com", "1 Main Street")
		expect := func(keys person.Keys, quantity int, code reservation.Code, room int) reservation.Attempt {
			t.Helper()
			a, o := items[1].tryAs(keys, 1, quantity)
			if o.Code != code || o.LimitLeft != room {
				t.Errorf("%d units: outcome %d with room for %d, want %d with room for %d", quantity, o.Code, o.LimitLeft, code, room)
			}
			return a
		}
		first, o := items[0].tryAs(home, 1, 2)
		if o.Code != reservation.Accepted {
			t.Fatalf("outcome %d", o.Code)
		}
		if r, err := f.gate.Reservations(t.Context(), f.sale, []id.Item{first.Item}, first.User); err != nil || r[first.Item].Persons != home {
			t.Errorf("reservation %+v %v", r, err)
		}
		if sent := f.orders(); len(sent) != 1 || sent[0].Persons != home {
			t.Errorf("order messages %+v", sent)
		}
		expect(f.persons("a@example.com", ""), 1, reservation.OverContactLimit, 0)
		expect(f.persons("b@example.com", "1 MAIN ST."), 1, reservation.OverAddressLimit, 0)
		part := reservation.Ref{Sale: first.Sale, Item: first.Item, User: first.User, Task: first.Task, Keep: 1}
		for range 2 { // the second release changes nothing
			f.must(second(f.gate.Release(t.Context(), part)))
		}
		expect(home, 2, reservation.OverContactLimit, 1)
		next := expect(f.persons("b@example.com", "1 Main St"), 1, reservation.Accepted, 0)
		expect(home, 1, reservation.OverAddressLimit, 0)
		whole := part
		whole.Keep = 0
		f.must(second(f.gate.Release(t.Context(), whole)))
		f.must(second(f.gate.Release(t.Context(), reservation.Ref{Sale: next.Sale, Item: next.Item, User: next.User, Task: next.Task})))
		expect(home, 2, reservation.Accepted, 0)
	})
}

func TestARebuiltGateKnowsTheUnitsOfEachPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for saleLimit, epoch := range map[int]int64{0: 1, 2: 2} {
			items := f.items(1)
			home := f.persons("a@example.com", "1 Main Street")
			build(t, items, epoch, saleLimit, map[id.Item][]reservation.Reservation{items[0].item: {
				{User: id.New[id.User](), Task: id.New[id.Task](), Persons: home, Quantity: 1, At: time.Now()},
			}})
			if _, o := items[0].tryAs(home, epoch, 2); o.Code != reservation.OverContactLimit || o.LimitLeft != 1 {
				t.Errorf("limit %d: two beside one: outcome %d, room %d", saleLimit, o.Code, o.LimitLeft)
			}
			offer := reservation.Reacquire{
				Ref:      reservation.Ref{Sale: f.sale, Item: items[0].item, User: id.New[id.User](), Task: id.New[id.Task]()},
				Quantity: 1, Persons: f.persons("", "1 Main Street"),
			}
			if r, err := f.gate.Reacquire(t.Context(), offer); err != nil || r.Code != reservation.Reacquired {
				t.Errorf("limit %d: reacquire within the limit: %+v %v", saleLimit, r, err)
			}
			if _, o := items[0].tryAs(home, epoch, 1); o.Code != reservation.OverAddressLimit {
				t.Errorf("limit %d: after the reacquired unit: outcome %d", saleLimit, o.Code)
			}
			offer.User, offer.Task = id.New[id.User](), id.New[id.Task]()
			if r, err := f.gate.Reacquire(t.Context(), offer); err != nil || r.Code != reservation.ReacquireOverLimit {
				t.Errorf("limit %d: reacquire over the limit: %+v %v", saleLimit, r, err)
			}
		}
	})
}

// Two accounts that hold a unit by turns without paying share the count of a person, and the
// wait doubles up to its bound.
func TestTheWaitOfAPersonGrowsWithEachExpiry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		items := f.items(1)
		build(t, items, 1, 0, nil)
		keys := f.persons("a@example.com", "")
		var waits []time.Duration
		for range 9 {
			a, o := items[0].tryAs(keys, 1, 1)
			if o.Code != reservation.Accepted {
				t.Fatalf("outcome %d", o.Code)
			}
			f.must(second(f.gate.Release(t.Context(), reservation.Ref{Sale: a.Sale, Item: a.Item, User: a.User, Task: a.Task, Expired: true})))
			s, err := f.gate.Status(t.Context(), f.sale, a.Item, reservation.WaitingUnknown, reservation.StatusUser{User: id.New[id.User](), Persons: keys})
			f.must(err)
			waits = append(waits, s.Users[0].Wait.Round(time.Minute))
		}
		want := []int{0, 15, 30, 60, 120, 240, 480, 720, 720}
		for i := range want {
			if waits[i] != time.Duration(want[i])*time.Minute {
				t.Errorf("after %d expiries: wait %s, want %d minutes", i+1, waits[i], want[i])
			}
		}
		s, err := f.gate.Status(t.Context(), f.sale, items[0].item, reservation.WaitingUnknown, reservation.StatusUser{User: id.New[id.User]()})
		if f.must(err); s.Users[0].Wait != 0 {
			t.Errorf("another person waits %s", s.Users[0].Wait)
		}
	})
}

func second[T any](_ T, err error) error { return err }
