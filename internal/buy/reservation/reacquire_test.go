package reservation_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// expired reserves one unit for a user and releases it, as an expiry does.
func (f *fixture) expired(releaser *reservation.Gate, givenBack bool) reservation.Reacquire {
	f.t.Helper()
	a := f.attempt(id.New[id.User]())
	if o := f.reserve(a); o.Code != reservation.Accepted {
		f.t.Fatalf("reserve: %+v", o)
	}
	hold := reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}
	if givenBack {
		if r, err := f.gate.Release(f.t.Context(), hold); err != nil || !r.Done {
			f.t.Fatalf("release: %+v, %v", r, err)
		}
	}
	hold.Task = id.New[id.Task]()
	return reservation.Reacquire{Ref: hold, Before: id.Order(a.Task), Quantity: 1}
}

func TestAnExpiredOrderTakesItsUnitAgainOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(3)
		r := f.expired(f.gate, true)
		for i, want := range []reservation.ReacquireCode{reservation.Reacquired, reservation.ReacquiredBefore, reservation.ReacquiredBefore} {
			if got, err := f.gate.Reacquire(t.Context(), r); err != nil || got.Code != want || got.Remaining != 2 {
				t.Errorf("try %d: %+v, %v, want %d", i, got, err, want)
			}
		}
		f.want(figures{stock: 2, reserved: 1, holders: 1, orders: 1})
		old := r.Ref
		old.Task = id.Task(r.Before)
		if got, err := f.gate.Release(t.Context(), old); err != nil || got.Done {
			t.Errorf("a late return of what was held before: %+v, %v", got, err)
		}
		f.want(figures{stock: 2, reserved: 1, holders: 1, orders: 1})
		if got, err := f.gate.Release(t.Context(), r.Ref); err != nil || !got.Done {
			t.Errorf("return: %+v, %v", got, err)
		}
		f.want(figures{stock: 3, orders: 1})
	})
}

func TestUnitsAreTakenAgainOnlyWhenTheyAreThere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		code := func(r reservation.Reacquire) reservation.ReacquireCode {
			t.Helper()
			got, err := f.gate.Reacquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return got.Code
		}
		stranger := reservation.Reacquire{Ref: reservation.Ref{Sale: f.sale, Item: f.item, User: id.New[id.User](), Task: id.New[id.Task]()}, Quantity: 1}
		if got := code(stranger); got != reservation.ReacquireNotLoaded {
			t.Errorf("without a gate: %d", got)
		}
		f.open(1)
		held := f.expired(f.gate, false)
		if got := code(held); got != reservation.ReacquireNotYet {
			t.Errorf("while the old units are out: %d", got)
		}
		if got := code(stranger); got != reservation.ReacquireTooFew {
			t.Errorf("with nothing left: %d", got)
		}
		other := held
		other.Before = id.New[id.Order]()
		if got := code(other); got != reservation.ReacquireOther {
			t.Errorf("while the user holds units for another order: %d", got)
		}
		f.want(figures{reserved: 1, holders: 1, orders: 1})
	})
}

func TestManyTriesAtOnceTakeOneUnitAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(10)
		r := f.expired(f.gate, true)
		var taken atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				got, err := f.gate.Reacquire(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				if got.Code == reservation.Reacquired {
					taken.Add(1)
				}
			})
		}
		wg.Wait()
		if taken.Load() != 1 {
			t.Errorf("taken %d times", taken.Load())
		}
		f.want(figures{stock: 9, reserved: 1, holders: 1, orders: 1})
	})
}

// The build may have read Postgres while the former reservation was still there.
func TestUnitsComeBackOnlyOnceTheirGateIsBuilt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(3)
		a := f.attempt(id.New[id.User]())
		f.reserve(a)
		hold := reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}
		if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, 2); err != nil || !begun {
			t.Fatal(begun, err)
		}
		if r, err := f.gate.Release(t.Context(), hold); err != nil || r.Done || !r.Building {
			t.Errorf("while the gate is being built: %+v, %v", r, err)
		}
		opened, err := f.gate.Open(t.Context(), reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 2, Total: 3, Stock: 2, Revision: 100,
			Reservations: []reservation.Reservation{{User: a.User, Task: a.Task, Quantity: 1}},
		})
		if err != nil || !opened {
			t.Fatal(opened, err)
		}
		if r, err := f.gate.Release(t.Context(), hold); err != nil || !r.Done || r.Building {
			t.Errorf("once it stands: %+v, %v", r, err)
		}
		f.want(figures{stock: 3, orders: 1})
	})
}
