package orderintake_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// reserve opens a gate and returns an accepted attempt, and a store that looks it up.
func (r *rig) reserve() (reservation.Attempt, *order.Store) {
	r.t.Helper()
	ctx := r.t.Context()
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys, Timeout: testenv.Wait})
	begun, err := gate.Begin(ctx, r.sale, r.item, 1)
	r.must(err)
	opened, err := gate.Open(ctx, reservation.Contents{
		Sale: r.sale, Item: r.item, State: reservation.GateOpen, Epoch: 1, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 1, Total: 9, Stock: 9, Revision: 1,
	})
	if r.must(err); !begun || !opened {
		r.t.Fatal("the gate is not open")
	}
	user := id.New[id.User]()
	a := reservation.Attempt{
		Task: id.NewTaskOf(r.sale, r.item, user), Sale: r.sale, Item: r.item, User: user, Quantity: 1,
		IdempotencyKey: uuid.NewString(), Terms: "1999|EUR|900",
	}
	a.Permit = reservation.Permit{Epoch: 1, Until: time.UnixMilli(time.Now().Add(time.Hour).UnixMilli())}
	r.must(r.conn.Cmd.ZAdd(ctx, r.keys.Permits(r.shard, r.item), redis.Z{Score: float64(a.Permit.Until.UnixMilli()), Member: a.User.String()}).Err())
	o, err := gate.Reserve(ctx, a)
	if r.must(err); o.Code != reservation.Accepted {
		r.t.Fatalf("reserve: %+v", o)
	}
	submitted := orderintake.ReservedTasks{Gate: gate, Items: items{{Sale: r.sale, Item: r.item}}}
	return a, order.NewStore(order.StoreConfig{DB: r.db, Cache: r.cache, Submitted: submitted, Clock: r.clock, Log: quiet})
}

// items are all items of a catalogue; all are loaded.
type items []reservation.ItemRef

func (i items) Loaded(context.Context) ([]reservation.ItemRef, error) { return i, nil }
func (i items) All(context.Context) ([]reservation.ItemRef, error)    { return i, nil }

func TestATaskIsSubmittedWhileItsUnitsAreReservedAndItsOrderIsNotWritten(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, orders := r.reserve()
	want := func(status order.TaskStatus) {
		t.Helper()
		for _, owner := range []id.User{a.User, {}} {
			task, err := orders.Task(t.Context(), a.Task, owner)
			if err != nil || task == nil || task.Status != status || task.User != a.User || task.Item != a.Item || task.Sale != a.Sale ||
				task.Quantity != 1 || task.CreatedAt.IsZero() {
				t.Errorf("task %+v, %v; want %s", task, err, status)
			}
		}
	}
	want(order.Submitted)
	if task, err := orders.Task(t.Context(), a.Task, id.New[id.User]()); task != nil && task.User != a.User || err != nil {
		t.Errorf("asked by another user: %+v, %v", task, err)
	}
	r.work()
	waiting, err := r.backlog.Requests(t.Context(), r.shard)
	if err != nil || len(waiting) != 1 {
		t.Fatalf("%+v, %v", waiting, err)
	}
	r.must(r.writer.Write(t.Context(), waiting[0])[0].Err)
	want(order.Succeeded)
	r.must(r.conn.Cmd.Del(t.Context(), r.keys.Tasks(r.shard, a.Task)).Err()) // its copy in Redis expires
	r.clock.Advance(time.Hour)
	want(order.Succeeded)
}

// countedReads counts the commands that read a stream.
type countedReads struct{ n atomic.Int64 }

func (c *countedReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *countedReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "xr") {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *countedReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestQueriesForTasksReadNoStreamWhileTheirGateIsRebuilt(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, orders := r.reserve()
	gate := reservation.NewGate(reservation.GateConfig{Client: r.conn.Script, Keys: r.keys, Timeout: testenv.Wait})
	if begun, err := gate.Begin(t.Context(), r.sale, r.item, 2); err != nil || !begun {
		t.Fatal(begun, err)
	}
	reads := &countedReads{}
	r.conn.Cmd.AddHook(reads)
	r.conn.Script.AddHook(reads)
	for range 3 {
		r.clock.Advance(time.Minute)
		for _, owner := range []id.User{a.User, {}} {
			if task, err := orders.Task(t.Context(), a.Task, owner); err != nil || task == nil || task.Status != order.Submitted {
				t.Errorf("task %+v, %v", task, err)
			}
		}
	}
	if n := reads.n.Load(); n != 0 {
		t.Errorf("%d reads of streams", n)
	}
}
