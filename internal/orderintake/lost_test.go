package orderintake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/orderintake"
)

// lostTasks returns a search with the reservations of the test.
func (r *rig) lostTasks(orders *order.Store, reserved func() (bool, error)) *orderintake.LostTasks {
	return orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: orders, Writer: r.writer, Backlog: r.backlog, Clock: r.clock, Log: quiet,
		Gates: gates{reserved: reserved, epoch: new(int64)},
	})
}

// gates are those of a test.
type gates struct {
	reserved func() (bool, error)
	epoch    *int64
}

func (g gates) Reserved(context.Context, order.Task) (bool, error) { return g.reserved() }
func (g gates) Epoch(id.Item) int64                                { return *g.epoch }

// submit writes the record of a task as the reserve script does.
func (r *rig) submit() id.Task {
	task, at := id.NewTask(r.shard), r.clock.Now().UTC().Truncate(time.Millisecond)
	// A cache never writes a SUBMITTED task with an older revision over a newer one.
	r.must(r.cache.Put(r.t.Context(), []order.Task{{
		ID: task, User: id.New[id.User](), Sale: r.sale, Item: r.item, Quantity: 1, Status: order.Submitted, Revision: 1, CreatedAt: at, UpdatedAt: at,
	}}, nil))
	return task
}

func (r *rig) task(s *order.Store, task id.Task) *order.Task {
	r.t.Helper()
	got, err := s.Task(r.t.Context(), task, id.User{})
	r.must(err)
	return got
}

func TestATaskWithoutReservationAndMessageFails(t *testing.T) {
	t.Parallel()
	r := setup(t)
	reserved, away := true, error(nil)
	search := r.lostTasks(r.orders, func() (bool, error) { return reserved, away })
	task := r.submit()
	still := func(when string) {
		t.Helper()
		if _, err := search.Step(t.Context()); err != nil && away == nil {
			t.Fatal(err)
		}
		if got := r.task(r.orders, task); got == nil || got.Status != order.Submitted {
			t.Errorf("%s: %+v", when, got)
		}
	}
	still("at once")
	r.clock.Advance(time.Minute)
	still("its units are reserved")
	reserved = false
	still("no reservation, just now")
	r.clock.Advance(5 * time.Second)
	reserved = true
	still("the gate was rebuilt")
	reserved = false
	still("no reservation again")
	r.clock.Advance(10 * time.Second)
	away = errors.New("redis is away")
	still("the reservation cannot be read")
	away = nil
	counts, err := search.Step(t.Context())
	if err != nil || counts["failed"] != 1 {
		t.Fatalf("lost: %v %v", counts, err)
	}
	if got := r.task(r.orders, task); got.Status != order.Failed || got.Failure != fault.Conflict {
		t.Errorf("lost: %+v", got)
	}
}

// Redis loses the record: a process that has returned the task still knows it.
func TestATaskWhoseRecordIsGoneFailsInTheProcessThatSawIt(t *testing.T) {
	t.Parallel()
	r := setup(t)
	search := r.lostTasks(r.orders, func() (bool, error) { return false, nil })
	other := order.NewStore(order.StoreConfig{DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet})
	task := r.submit()
	r.task(r.orders, task)
	r.must(r.conn.Cmd.Del(t.Context(), r.keys.Tasks(r.shard, task)).Err())
	r.clock.Advance(time.Minute)
	if got := r.task(other, task); got != nil {
		t.Errorf("a process that never saw it: %+v", got)
	}
	for range 2 {
		if got := r.task(r.orders, task); got == nil || got.Status != order.Submitted {
			t.Errorf("before the search: %+v", got)
		}
		_, err := search.Step(t.Context())
		r.must(err)
		r.clock.Advance(10 * time.Second)
	}
	for _, s := range []*order.Store{r.orders, other} {
		if got := r.task(s, task); got == nil || got.Status != order.Failed {
			t.Errorf("after the search: %+v", got)
		}
	}
}

func TestATaskWithADeadLetterIsNotLost(t *testing.T) {
	t.Parallel()
	r := setup(t)
	search := r.lostTasks(r.orders, func() (bool, error) { return false, nil })
	task, at := r.aside(), r.clock.Now()
	r.must(r.cache.Put(t.Context(), []order.Task{{
		ID: task, Sale: r.sale, Item: r.item, Status: order.Submitted, Revision: 1, CreatedAt: at, UpdatedAt: at,
	}}, nil))
	r.task(r.orders, task)
	for range 3 {
		r.clock.Advance(time.Minute)
		if counts, err := search.Step(t.Context()); err != nil || counts["failed"] != 0 {
			t.Errorf("%v %v", counts, err)
		}
	}
	r.comesBack(task)
	r.clock.Advance(orderintake.DecisionTimeout)
	if counts, err := r.dead.Step(t.Context()); err != nil || counts["given_up"] != 1 || r.status(task) != order.Failed {
		t.Errorf("overdue: %v %v, task %s", counts, err, r.status(task))
	}
}

// A task that was written in the meantime has an order and is not lost.
func TestATaskThatWasWrittenIsNotLost(t *testing.T) {
	t.Parallel()
	r := setup(t)
	search := r.lostTasks(r.orders, func() (bool, error) { return false, nil })
	task := r.submit()
	seen := r.task(r.orders, task)
	end := r.writer.Write(t.Context(), order.Requested{
		V: 1, Task: task, User: seen.User, Sale: r.sale, Item: r.item, Quantity: 1, UnitPriceMinor: 1999, Currency: "EUR",
		PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: seen.CreatedAt.UnixMilli(),
	})[0]
	r.must(end.Err)
	for range 3 {
		r.clock.Advance(time.Minute)
		if counts, err := search.Step(t.Context()); err != nil || counts["failed"] != 0 {
			t.Errorf("%v %v", counts, err)
		}
	}
	if got := r.task(r.orders, task); got.Status != order.Succeeded {
		t.Errorf("written: %+v", got)
	}
}
