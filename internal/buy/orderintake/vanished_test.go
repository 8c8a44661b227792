package orderintake_test

import (
	"encoding/binary"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// processes returns the stores of some API processes and their searches for lost tasks.
func (r *rig) processes(n int, gate *reservation.Gate) (stores []*order.Store, steps []func() int) {
	items := items{{Sale: r.sale, Item: r.item}}
	for range n {
		s := order.NewStore(order.StoreConfig{
			DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet,
			Submitted: orderintake.ReservedTasks{Gate: gate, Items: items},
			Vanished:  orderintake.Vanished{Items: items, Clock: r.clock},
		})
		search := r.redisLost(s, gate)
		stores = append(stores, s)
		steps = append(steps, func() int {
			counts, err := search.Step(r.t.Context())
			r.must(err)
			return counts["failed"]
		})
	}
	return stores, steps
}

// A process accepted a task and crashed, and Redis lost the write. The other processes are
// asked in turn: all of them say SUBMITTED until the failure is recorded, then FAILED.
func TestATaskThatNoStoreKnowsFailsInAllProcessesAtOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, _ := r.reserve()
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys, Timeout: testenv.Wait})
	stores, steps := r.processes(3, gate)
	r.must(r.conn.Cmd.HDel(t.Context(), r.keys.Reservations(r.shard, r.item), a.User.String()).Err())
	r.must(r.conn.Cmd.Del(t.Context(), r.key).Err())
	failed := 0
	for second := range 40 {
		for i, s := range stores {
			if second < 15 && i == 2 {
				continue // a load balancer sends nothing here at first
			}
			got, err := s.Task(t.Context(), a.Task, a.User)
			want := order.Submitted
			if failed > 0 {
				want = order.Failed
			}
			if r.must(err); got == nil || got.Status != want || !got.Vanished {
				t.Fatalf("second %d, process %d: %+v, want %s", second, i, got, want)
			}
			if second%2 == 0 {
				failed += steps[i]()
			}
		}
		r.clock.Advance(time.Second)
	}
	if failed != 1 {
		t.Errorf("failed %d times", failed)
	}
	if got, err := stores[0].Task(t.Context(), a.Task, id.New[id.User]()); err != nil || got.Status != order.Failed {
		t.Errorf("in the end: %+v, %v", got, err)
	}
}

// Its message is in the stream, and only its reservation is gone: the order is still written.
func TestATaskThatOnlyItsMessageKnowsDoesNotFail(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, _ := r.reserve()
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys, Timeout: testenv.Wait})
	stores, steps := r.processes(1, gate)
	r.must(r.conn.Cmd.HDel(t.Context(), r.keys.Reservations(r.shard, r.item), a.User.String()).Err())
	for range 60 {
		r.clock.Advance(2 * time.Second)
		got, err := stores[0].Task(t.Context(), a.Task, a.User)
		if r.must(err); got == nil || got.Status != order.Submitted || steps[0]() != 0 {
			t.Fatalf("task %+v", got)
		}
	}
}

// Users can make up ids: other users' are unknown, and few of their own are recorded.
func TestMadeUpTasksAreUnknownOrFew(t *testing.T) {
	t.Parallel()
	r := setup(t)
	gate := r.rebuilt(9)
	stores, steps := r.processes(2, gate)
	user := id.New[id.User]()
	ask := func(task id.Task) *order.Task {
		t.Helper()
		got, err := stores[0].Task(t.Context(), task, user)
		r.must(err)
		return got
	}
	future := id.NewTaskOf(r.sale, r.item, user)
	binary.BigEndian.PutUint32(future[:4], binary.BigEndian.Uint32(future[:4])+2) // 131 s later
	for what, task := range map[string]id.Task{
		"of another user": id.NewTaskOf(r.sale, r.item, id.New[id.User]()), "of an unknown item": id.NewTaskOf(r.sale, id.Item{15: r.item[15] + 1}, user),
		"any id": id.New[id.Task](), "of the future": future,
	} {
		if got := ask(task); got != nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	known := 0
	for range 4 {
		for range 10 {
			if ask(id.NewTaskOf(r.sale, r.item, user)) != nil {
				known++
			}
		}
		for range 12 {
			steps[0]()
			r.clock.Advance(2 * time.Second)
		}
	}
	if n := r.db.Ent.OrderFailure.Query().CountX(t.Context()); n > 4 || n == 0 || known > 8 {
		t.Errorf("%d made up tasks are recorded, %d were answered", n, known)
	}
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
