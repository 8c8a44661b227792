package orderintake_test

import (
	"context"
	"testing"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

// work runs a worker on the stream until the end of the test.
func (r *rig) work() {
	r.t.Helper()
	router, err := stream.NewRouter(stream.RouterConfig{
		NewSubscriber: func() (*stream.Subscriber, error) {
			return stream.NewSubscriber(stream.SubscriberConfig{
				Client: r.conn.NewBlocking(), Group: "orders", Consumer: "test", Block: 50 * time.Millisecond,
				NackDelay: time.Millisecond, NackDelayMax: time.Millisecond, Log: quiet,
			})
		},
		Handlers: []stream.Handler{{
			Name: "orders", Topics: []string{r.key}, Handle: orderintake.NewHandler(r.writer, nil, nil).Handle, Split: order.Split,
		}},
		DeadLetters: r.letters, Log: quiet,
	})
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- router.Run(ctx) }()
	r.t.Cleanup(func() { cancel(); r.must(<-done) })
}

func (r *rig) exec(statement string) {
	r.t.Helper()
	r.must(r.db.WithTx(r.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}))
}

func (r *rig) requests(n int) []order.Request {
	requests := make([]order.Request, n)
	for i := range requests {
		requests[i] = order.Request{
			V: 1, Task: id.NewTask(r.shard), User: id.New[id.User](), Sale: r.sale, Item: r.item, Quantity: 1,
			UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: r.clock.Now().UnixMilli(),
		}
	}
	return requests
}

func (r *rig) written() int {
	r.t.Helper()
	n, err := r.db.Ent.Order.Query().Where(entorder.ItemID(r.item)).Count(r.t.Context())
	r.must(err)
	return n
}

// Postgres refuses two orders of a message: the others are written, and each of the two
// becomes a dead letter of its own. One is replayed after the cure, the other dropped.
func TestThePoisonOrdersOfAMessageAreSetAsideAlone(t *testing.T) {
	t.Parallel()
	r := setup(t)
	requests := r.requests(7)
	kept, dropped := requests[2], requests[5]
	r.exec(`ALTER TABLE orders ADD CONSTRAINT poison CHECK (user_id NOT IN ('` + kept.User.String() + `', '` + dropped.User.String() + `'))`)
	msg, err := order.NewMessage(requests...)
	r.must(err)
	r.must(stream.Appender{Client: r.conn.Cmd}.Append(t.Context(), r.key, msg))
	r.work()
	letters := map[string]string{} // by task
	testenv.Eventually(t, testenv.Wait, func() bool {
		list, err := r.dead.List(t.Context(), "", 10)
		for _, l := range list {
			letters[l.MessageID] = l.ID
		}
		return err == nil && len(list) == 2 && r.written() == 5
	}, "five orders are written and two are dead letters")
	if waiting, err := r.backlog.Requests(t.Context(), r.shard); err != nil || len(waiting) < 7 {
		t.Errorf("%d orders of the backlog, %v", len(waiting), err)
	}
	r.exec(`ALTER TABLE orders DROP CONSTRAINT poison`)
	decide := func(r order.Request) orderintake.Decision {
		return orderintake.Decision{Letter: letters[r.Task.String()], Actor: id.New[id.User](), Note: "cured"}
	}
	if _, err := r.dead.Drop(t.Context(), decide(dropped)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.dead.Replay(t.Context(), decide(kept)); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return r.status(kept.Task) == order.Succeeded }, "the replayed order is written")
	if r.status(dropped.Task) != order.Failed || r.written() != 6 {
		t.Errorf("the dropped task is %s, %d orders", r.status(dropped.Task), r.written())
	}
}

// A dead letter with all orders of a message, as a worker of the former release makes
// it: dropping it fails each task.
func TestDroppingALetterOfSeveralOrdersFailsEachTask(t *testing.T) {
	t.Parallel()
	r := setup(t)
	requests := r.requests(3)
	msg, err := order.NewMessage(requests...)
	r.must(err)
	r.spoil(msg)
	if waiting, err := r.backlog.Requests(t.Context(), r.shard); err != nil || len(waiting) != 2*len(requests) { // read twice
		t.Errorf("backlog %+v, %v", waiting, err)
	}
	if _, err := r.dead.Drop(t.Context(), r.decide("not ours")); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if task, err := r.orders.Task(t.Context(), request.Task, id.User{}); err != nil || task == nil || task.Failure != fault.Conflict {
			t.Errorf("task %+v, %v", task, err)
		}
	}
}
