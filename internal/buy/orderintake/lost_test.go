package orderintake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// lostTasks returns a search with the reservations of the test.
func (r *rig) lostTasks(orders *order.Store, reserved func() (bool, error)) *orderintake.LostTasks {
	return orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: orders, Writer: r.writer, Backlog: r.backlog, Clock: r.clock, Log: quiet,
		Gates: gates{reserved: reserved, epoch: new(int64)},
	})
}

// redisLost returns a search that reads the gates in Redis.
func (r *rig) redisLost(orders *order.Store, gate *reservation.Gate) *orderintake.LostTasks {
	return orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: orders, Writer: r.writer, Backlog: r.backlog, Clock: r.clock, Log: quiet,
		Gates: secondEpoch{orderintake.RedisGates{Gate: gate, Items: items{{Sale: r.sale, Item: r.item}}}},
	})
}

// secondEpoch are gates in Redis that this process has seen rebuilt.
type secondEpoch struct{ orderintake.RedisGates }

func (secondEpoch) Epoch(id.Item) int64 { return 2 }

// gates are those of a test.
type gates struct {
	reserved func() (bool, error)
	epoch    *int64
}

func (g gates) Missing(_ context.Context, _ reservation.ItemRef, tasks []order.Task) ([]order.Task, bool, error) {
	if reserved, err := g.reserved(); reserved || err != nil {
		return nil, true, err
	}
	return tasks, true, nil
}

func (g gates) Epoch(id.Item) int64 { return *g.epoch }

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
	r.emptyRedis()
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
	end := r.writer.Write(t.Context(), order.Request{
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

// manyLost is the number of tasks that one process accepted before a loss.
const manyLost = 20_000

// I5: all of them end within 30 s after the loss is known, although no client asks and no
// worker runs, and although others keep asking for some.
func TestTwentyThousandLostTasksEndWithin30Seconds(t *testing.T) {
	t.Parallel()
	r := setup(t)
	gate := r.rebuilt(9)
	search := r.redisLost(r.orders, gate)
	at := r.clock.Now().UTC().Truncate(time.Millisecond)
	tasks := make([]order.Task, manyLost)
	for i := range tasks {
		user := id.New[id.User]()
		tasks[i] = order.Task{
			ID: id.NewTaskOf(r.sale, r.item, user), User: user, Sale: r.sale, Item: r.item, Quantity: 1,
			Status: order.Submitted, Revision: 1, CreatedAt: at, UpdatedAt: at,
		}
		r.orders.NoteAccepted(tasks[i], 1)
	}
	began, known, ended := time.Now(), r.clock.Now(), 0
	for ended < manyLost && r.clock.Now().Sub(known) < 30*time.Second {
		counts, err := search.Step(t.Context())
		r.must(err)
		ended += counts["failed"]
		if got := r.task(r.orders, tasks[0].ID); got != nil && got.Ended() != (ended > 0) {
			t.Errorf("after %d ends: %+v", ended, got)
		}
		r.clock.Advance(2 * time.Second)
	}
	if n := r.db.Ent.OrderFailure.Query().CountX(t.Context()); ended != manyLost || n != manyLost {
		t.Errorf("%d tasks ended in %v, %d are recorded", ended, r.clock.Now().Sub(known), n)
	}
	t.Logf("the searches took %v", time.Since(began))
	if counts, err := search.Step(t.Context()); err != nil || counts["failed"] != 0 {
		t.Errorf("afterwards: %v %v", counts, err)
	}
}

// A gate that is not built again yet: its orders may be in the hands of a worker, whose
// message the build waits for.
func TestATaskOfALostGateWaitsForTheBuild(t *testing.T) {
	t.Parallel()
	r := setup(t)
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys})
	search := r.redisLost(r.orders, gate)
	task := r.submit()
	r.task(r.orders, task)
	r.clock.Advance(11 * time.Second)
	steps := func(n int) (failed int) {
		for range n {
			counts, err := search.Step(t.Context())
			r.must(err)
			failed += counts["failed"]
			r.clock.Advance(2 * time.Second)
		}
		return failed
	}
	if failed := steps(6); failed != 0 { // 10 s
		t.Errorf("%d tasks failed before the build", failed)
	}
	if begun, err := gate.Begin(t.Context(), r.sale, r.item, 2); err != nil || !begun {
		t.Fatal(err)
	}
	if failed := steps(20); failed != 0 {
		t.Errorf("%d tasks failed during the build", failed)
	}
	r.rebuiltFrom(gate, 9)
	if failed := steps(5); failed != 1 {
		t.Errorf("%d tasks failed after the build", failed)
	}
}

// The message of a task that counted as lost is found after all, with its reservation: an
// old copy of Redis came back. Its units return.
func TestTheUnitsOfALostTaskThatIsFoundReturn(t *testing.T) {
	t.Parallel()
	r := setup(t)
	request := r.request(2)
	gate := r.rebuilt(8, reservation.Reservation{User: request.User, Task: request.Task, Quantity: 1, At: time.Now(), IdempotencyKey: request.IdempotencyKey})
	r.must(r.writer.FailTask(t.Context(), request, order.ReasonLost).Err)
	r.must(r.db.Ent.OrderFailure.UpdateOneID(request.Task).SetReleased(true).Exec(t.Context())) // before the reservation came back
	r.must(orderintake.NewHandler(r.writer, gate, nil).Handle(r.message(request)))
	if r.status(request.Task) != order.Failed {
		t.Errorf("task %s", r.status(request.Task))
	}
	_, err := order.TaskReturns(r.db, release(gate), quiet).Step(t.Context())
	r.must(err)
	if n := r.stockOf(gate); n != 9 {
		t.Errorf("%d of 9 units are for sale", n)
	}
}

func release(gate *reservation.Gate) order.ReturnReservations {
	return func(ctx context.Context, reservations []order.Reservation) ([]id.Item, error) {
		for _, r := range reservations {
			if _, err := gate.Release(ctx, reservation.Ref{Sale: r.Sale, Item: r.Item, User: r.User, Task: r.Name}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}
