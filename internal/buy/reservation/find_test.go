package reservation_test

import (
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// A task is found by its id and its user, or by its id alone, as long as its reservation
// exists, and also while the gate is rebuilt.
func TestATaskIsFoundByItsReservation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		a := f.attempt(id.New[id.User]())
		a.Task = id.NewTaskOf(f.sale, f.item, a.User)
		o := f.reserve(a)
		f.reserve(f.attempt(id.New[id.User]()))
		items := []reservation.ItemRef{{Sale: f.sale, Item: id.New[id.Item]()}, {Sale: f.sale, Item: f.item}}
		find := func(task id.Task, user id.User) *reservation.FoundTask {
			t.Helper()
			r, err := f.gate.FindTask(t.Context(), items, task, user)
			f.must(err)
			return r
		}
		want := reservation.FoundTask{
			ItemRef:     items[1],
			Reservation: reservation.Reservation{User: a.User, Task: a.Task, Quantity: 1, At: o.At, IdempotencyKey: a.IdempotencyKey},
		}
		found := func(when string) {
			t.Helper()
			for _, user := range []id.User{a.User, {}} {
				if r := find(a.Task, user); r == nil || *r != want {
					t.Errorf("%s: %+v, want %+v", when, r, want)
				}
			}
			if r := find(a.Task, id.New[id.User]()); r != nil {
				t.Errorf("%s: the task of another user: %+v", when, r)
			}
			if r := find(id.NewTaskOf(f.sale, f.item, a.User), a.User); r != nil {
				t.Errorf("%s: another task of the user: %+v", when, r)
			}
		}
		found("reserved")
		for epoch := int64(2); epoch < 4; epoch++ { // the first build is not completed
			if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, epoch); err != nil || !begun {
				t.Fatal(begun, err)
			}
			found("while the gate is built")
		}
		opened, err := f.gate.Open(t.Context(), reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 3, Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
			Limit: 1, Total: 5, Stock: 4, Revision: 9, Reservations: []reservation.Reservation{want.Reservation},
		})
		if err != nil || !opened {
			t.Fatal(opened, err)
		}
		found("rebuilt")
		if n := f.client.Exists(t.Context(), f.keys.FormerReservations(id.ShardOf(f.sale), f.item)).Val(); n != 0 {
			t.Error("the former reservations are left")
		}
		if r, err := f.gate.Release(t.Context(), reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}); err != nil || !r.Done {
			t.Fatal(r, err)
		}
		for _, user := range []id.User{a.User, {}} {
			if r := find(a.Task, user); r != nil {
				t.Errorf("after the release: %+v", r)
			}
		}
	})
}
