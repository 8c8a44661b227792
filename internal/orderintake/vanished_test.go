package orderintake_test

import (
	"testing"
	"time"

	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/orderintake"
	"seckill/internal/reservation"
	"seckill/internal/testenv"
)

// A process accepted a task and crashed, and Redis lost the write. Another process is
// asked.
func TestAnOldTaskThatNoStoreKnowsIsFailedForItsBuyerOnly(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, _ := r.reserve()
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys, Timeout: testenv.Wait})
	items := items{{Sale: r.sale, Item: r.item}}
	orders := order.NewStore(order.StoreConfig{
		DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet,
		Submitted: orderintake.Submitted{Gate: gate, Items: items},
		Vanished:  orderintake.Vanished{Gate: gate, Items: items, Clock: r.clock},
	})
	want := func(when string, task id.Task, owner id.User, status order.TaskStatus) {
		t.Helper()
		got, err := orders.Task(t.Context(), task, owner)
		if err != nil || (got == nil) != (status == "") || got != nil && got.Status != status {
			t.Errorf("%s: %+v, %v; want %q", when, got, err, status)
		}
	}
	want("it is young", id.NewTaskOf(r.sale, r.item, a.User), a.User, "")
	r.clock.Advance(2 * orderintake.VanishedAfter)
	want("its units are reserved", a.Task, a.User, order.Submitted)
	r.must(r.conn.Cmd.HDel(t.Context(), r.keys.Reservations(r.shard, r.item), a.User.String()).Err())
	lost := order.NewStore(order.StoreConfig{ // of a process that has not seen it before
		DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet,
		Vanished: orderintake.Vanished{Gate: gate, Items: items, Clock: r.clock},
	})
	orders = lost
	begun, err := gate.Begin(t.Context(), r.sale, r.item, 2)
	if r.must(err); !begun {
		t.Fatal("no build has begun")
	}
	want("the gate is being built", a.Task, a.User, "")
	opened, err := gate.Open(t.Context(), reservation.Contents{
		Sale: r.sale, Item: r.item, State: reservation.GateOpen, Epoch: 2, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 1, Total: 9, Stock: 9, Revision: 1,
	})
	if r.must(err); !opened {
		t.Fatal("the gate is not open")
	}
	want("no store has it", a.Task, a.User, order.Failed)
	want("asked by another user", a.Task, id.New[id.User](), "")
	want("an unknown id", id.New[id.Task](), a.User, "")
}

// Redis lost the writes of its last seconds, the acceptance of a task among them; no
// client has asked about the task yet.
func TestATaskThatThisProcessAcceptedBeforeALossFails(t *testing.T) {
	t.Parallel()
	r := setup(t)
	epoch := int64(1)
	search := orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: r.orders, Writer: r.writer, Backlog: r.backlog, Clock: r.clock, Log: quiet,
		Gates: gates{reserved: func() (bool, error) { return false, nil }, epoch: &epoch},
	})
	accept := func(epoch int64) id.Task {
		user, at := id.New[id.User](), r.clock.Now().UTC().Truncate(time.Millisecond)
		task := order.Task{
			ID: id.NewTaskOf(r.sale, r.item, user), User: user, Sale: r.sale, Item: r.item, Quantity: 1,
			Status: order.Submitted, Revision: 1, CreatedAt: at, UpdatedAt: at,
		}
		r.orders.NoteAccepted(task, epoch)
		return task.ID
	}
	steps := func(want int) {
		t.Helper()
		failed := 0
		for range 3 {
			r.clock.Advance(time.Minute)
			counts, err := search.Step(t.Context())
			r.must(err)
			failed += counts["failed"]
		}
		if failed != want {
			t.Errorf("%d tasks failed, want %d", failed, want)
		}
	}
	lost := accept(1)
	steps(0) // the gate that accepted it still stands
	epoch = 2
	kept := accept(2)
	steps(1)
	if got := r.task(r.orders, lost); got == nil || got.Status != order.Failed {
		t.Errorf("lost: %+v", got)
	}
	if got := r.task(r.orders, kept); got != nil {
		t.Errorf("of the present gate: %+v", got)
	}
	steps(0)
}
