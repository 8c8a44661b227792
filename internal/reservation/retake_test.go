package reservation_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"seckill/internal/id"
	"seckill/internal/reservation"
)

// lapsed reserves one unit for a user and gives it back, as a lapse does.
func (f *fixture) lapsed(releaser *reservation.Releaser, givenBack bool) reservation.Retake {
	f.t.Helper()
	a := f.attempt(id.New())
	if o := f.reserve(a); o.Code != reservation.Accepted {
		f.t.Fatalf("reserve: %+v", o)
	}
	hold := reservation.Hold{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}
	if givenBack {
		if r, err := releaser.Release(f.t.Context(), hold); err != nil || !r.Done {
			f.t.Fatalf("release: %+v, %v", r, err)
		}
	}
	hold.Task = id.New()
	return reservation.Retake{Hold: hold, Before: a.Task, Quantity: 1}
}

func TestALapsedOrderTakesItsUnitAgainOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(3)
		releaser := reservation.NewReleaser(f.client, f.keys)
		r := f.lapsed(releaser, true)
		for i, want := range []reservation.RetakeCode{reservation.RetakeDone, reservation.RetakeDoneBefore, reservation.RetakeDoneBefore} {
			if got, err := releaser.Retake(t.Context(), r); err != nil || got.Code != want || got.Remaining != 2 {
				t.Errorf("try %d: %+v, %v, want %d", i, got, err, want)
			}
		}
		f.want(figures{stock: 2, reserved: 1, holders: 1, messages: 1})
		old := r.Hold
		old.Task = r.Before
		if got, err := releaser.Release(t.Context(), old); err != nil || got.Done {
			t.Errorf("a late return of what was held before: %+v, %v", got, err)
		}
		f.want(figures{stock: 2, reserved: 1, holders: 1, messages: 1})
		if got, err := releaser.Release(t.Context(), r.Hold); err != nil || !got.Done {
			t.Errorf("return: %+v, %v", got, err)
		}
		f.want(figures{stock: 3, messages: 1})
	})
}

func TestUnitsAreTakenAgainOnlyWhenTheyAreThere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		releaser := reservation.NewReleaser(f.client, f.keys)
		code := func(r reservation.Retake) reservation.RetakeCode {
			t.Helper()
			got, err := releaser.Retake(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return got.Code
		}
		nobody := reservation.Retake{Hold: reservation.Hold{Sale: f.sale, Item: f.item, User: id.New(), Task: id.New()}, Quantity: 1}
		if got := code(nobody); got != reservation.RetakeNotLoaded {
			t.Errorf("without a gate: %d", got)
		}
		f.open(1)
		held := f.lapsed(releaser, false)
		if got := code(held); got != reservation.RetakeNotYet {
			t.Errorf("while the old units are out: %d", got)
		}
		if got := code(nobody); got != reservation.RetakeTooFew {
			t.Errorf("with nothing left: %d", got)
		}
		other := held
		other.Before = id.New()
		if got := code(other); got != reservation.RetakeOther {
			t.Errorf("while the user holds units for another order: %d", got)
		}
		f.want(figures{reserved: 1, holders: 1, messages: 1})
	})
}

func TestManyTriesAtOnceTakeOneUnitAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(10)
		releaser := reservation.NewReleaser(f.client, f.keys)
		r := f.lapsed(releaser, true)
		var taken atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				got, err := releaser.Retake(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				if got.Code == reservation.RetakeDone {
					taken.Add(1)
				}
			})
		}
		wg.Wait()
		if taken.Load() != 1 {
			t.Errorf("taken %d times", taken.Load())
		}
		f.want(figures{stock: 9, reserved: 1, holders: 1, messages: 1})
	})
}

// What the build read of the record may have the units with their holder still.
func TestUnitsComeBackOnlyOnceTheirGateIsBuilt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(3)
		releaser, loader := reservation.NewReleaser(f.client, f.keys), reservation.NewLoader(f.client, f.keys)
		a := f.attempt(id.New())
		f.reserve(a)
		hold := reservation.Hold{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}
		if begun, err := loader.Begin(t.Context(), f.sale, f.item, 2); err != nil || !begun {
			t.Fatal(begun, err)
		}
		if r, err := releaser.Release(t.Context(), hold); err != nil || r.Done || !r.Building {
			t.Errorf("while the gate is being built: %+v, %v", r, err)
		}
		opened, err := loader.Open(t.Context(), reservation.Gate{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 2, Total: 3, Stock: 2, Revision: 100,
			Holders: []reservation.Holder{{User: a.User, Task: a.Task, Quantity: 1}},
		})
		if err != nil || !opened {
			t.Fatal(opened, err)
		}
		if r, err := releaser.Release(t.Context(), hold); err != nil || !r.Done || r.Building {
			t.Errorf("once it stands: %+v, %v", r, err)
		}
		f.want(figures{stock: 3, messages: 1})
	})
}
