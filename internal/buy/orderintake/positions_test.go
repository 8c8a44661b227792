package orderintake_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

const positionGroup = "writers"

// queued appends messages of some orders each, and returns the tasks in their order.
func (r *rig) queued(sizes ...int) (tasks []*order.Task) {
	r.t.Helper()
	appender := stream.Appender{Client: r.conn.Cmd}
	for _, n := range sizes {
		at, err := r.conn.Cmd.Time(r.t.Context()).Result()
		r.must(err)
		var requests []order.Request
		for range n {
			request := order.Request{
				V: 1, Task: id.NewTask(r.shard), User: id.New[id.User](), Sale: r.sale, Item: r.item, Quantity: 1,
				UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: at.UnixMilli(),
			}
			requests = append(requests, request)
			tasks = append(tasks, order.NewSubmitted(order.Task{ID: request.Task, User: request.User, Sale: r.sale, Item: r.item, Quantity: 1}, at))
		}
		msg, err := order.NewMessage(requests...)
		r.must(err)
		r.must(appender.Append(r.t.Context(), r.key, msg))
	}
	return tasks
}

// hold reads messages as a worker that does not end them, and returns their entries.
func (r *rig) hold(n int64) (entries []string) {
	r.t.Helper()
	read, err := r.conn.Cmd.XReadGroup(r.t.Context(), &redis.XReadGroupArgs{
		Group: positionGroup, Consumer: "w", Streams: []string{r.key, ">"}, Count: n, Block: -1,
	}).Result()
	r.must(err)
	for _, entry := range read[0].Messages {
		entries = append(entries, entry.ID)
	}
	return entries
}

// Workers that hold orders, because Postgres is down, have not written them: their orders
// are ahead of those behind them, message by message, in whatever order they end.
func TestOrdersThatWorkersHoldAreAhead(t *testing.T) {
	t.Parallel()
	r := setup(t)
	ctx := t.Context()
	positions := func() *orderintake.QueuePositions {
		return orderintake.NewQueuePositions(orderintake.QueuePositionsConfig{
			Queue: orderintake.Queue{
				Inspector: stream.Inspector{Client: r.conn.Cmd, Clock: r.clock}, Keys: r.keys, Group: positionGroup,
			},
			Clock: r.clock,
		})
	}
	used := positions()
	want := func(when string, tasks []*order.Task, places ...int) {
		t.Helper()
		r.clock.Advance(2 * time.Second)
		for _, q := range []*orderintake.QueuePositions{used, positions()} {
			for i, task := range tasks {
				p, err := q.Position(ctx, task)
				if err != nil || p == nil || p.Ahead != places[i] {
					t.Errorf("%s: order %d has %+v ahead, want %d (%v)", when, i, p, places[i], err)
				}
			}
		}
	}
	r.must(r.conn.Cmd.XGroupCreateMkStream(ctx, r.key, positionGroup, "0").Err())
	tasks := r.queued(2, 3, 1)
	want("no worker", tasks, 0, 1, 2, 3, 4, 5)
	held := r.hold(2)
	want("a worker holds two messages", tasks, 0, 1, 2, 3, 4, 5)
	tasks = append(tasks, r.queued(1)...)
	want("another order", tasks, 0, 1, 2, 3, 4, 5, 6)
	r.must(r.conn.Cmd.XAck(ctx, r.key, positionGroup, held[1]).Err())
	want("the second is written", tasks, 0, 1, 2, 2, 2, 2, 3)
	held = append(held, r.hold(5)...)
	r.must(r.conn.Cmd.XAck(ctx, r.key, positionGroup, held[0]).Err())
	want("the first is written, too", tasks, 0, 0, 0, 0, 0, 0, 1)
	r.must(r.conn.Cmd.XAck(ctx, r.key, positionGroup, held...).Err())
	want("all are written", tasks, 0, 0, 0, 0, 0, 0, 0)
	r.must(r.conn.Cmd.XTrimMaxLen(ctx, r.key, 0).Err())
	want("the stream is trimmed", r.queued(2), 0, 1)

	r.must(r.conn.Cmd.Del(ctx, r.key, stream.SumKey(r.key)).Err())
	r.must(r.conn.Cmd.XGroupCreateMkStream(ctx, r.key, positionGroup, "0").Err())
	want("Redis was lost", r.queued(1, 1), 0, 1)
}

// The positions of a crowd cost one command per message and one reading.
func TestPositionsOfAMessageAreFoundTogether(t *testing.T) {
	t.Parallel()
	r := setup(t)
	conn, _ := testenv.Redis(t)
	reads := &countedReads{}
	conn.Cmd.AddHook(reads)
	q := orderintake.NewQueuePositions(orderintake.QueuePositionsConfig{
		Queue: orderintake.Queue{Inspector: stream.Inspector{Client: conn.Cmd, Clock: r.clock}, Keys: r.keys, Group: positionGroup},
		Clock: r.clock,
	})
	tasks := r.queued(200)
	for i, task := range tasks {
		if p, err := q.Position(t.Context(), task); err != nil || p == nil || p.Ahead != i {
			t.Fatalf("order %d: %+v %v", i, p, err)
		}
	}
	if n := reads.n.Load(); n > 2 {
		t.Errorf("%d reads of the stream for 200 orders", n)
	}
}
