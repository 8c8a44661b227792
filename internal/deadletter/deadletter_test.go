package deadletter_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/clock"
	"seckill/internal/deadletter"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/postgres"
	"seckill/internal/redisconn"
	"seckill/internal/reservation"
	"seckill/internal/stream"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// rig is a desk with a sale of one item, and the stream of its orders.
type rig struct {
	t       *testing.T
	db      *postgres.DB
	conn    *redisconn.Conn
	clock   *clock.Fake
	letters *stream.DeadLetters
	cache   *order.Cache
	writer  *order.Writer
	orders  *order.Store
	desk    *deadletter.Queue
	key     string // of the stream
	sale    uuid.UUID
	item    uuid.UUID
}

func setup(t *testing.T) *rig {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	keys := reservation.Keys{Prefix: prefix}
	r := &rig{t: t, db: testenv.Postgres(t), conn: conn, clock: clock.NewFake(time.Now()), sale: id.New(), item: id.New()}
	r.key = keys.Orders(id.ShardOf(r.sale))
	r.must(r.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		now := r.clock.Now()
		err := tx.Sale.Create().SetID(r.sale).SetSlug(r.sale.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now).SetPaymentWindowSeconds(900).
			SetPurchaseLimit(1).SetEpoch(1).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(r.item).SetSaleID(r.sale).SetGoodsID(id.New()).SetPosition(0).
			SetPriceMinor(1999).SetCurrency("EUR").SetTotal(9).SetAvailable(9).Exec(ctx)
	}))
	r.letters = stream.NewDeadLetters(stream.DeadLettersConfig{Client: conn.Cmd, Key: keys.DeadLetters(), Log: quiet})
	r.cache = order.NewCache(conn, keys.Tasks, r.clock)
	r.orders = order.NewStore(order.StoreConfig{DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet})
	r.writer = order.NewWriter(order.WriterConfig{
		DB: r.db, Publisher: order.NewPublisher(order.PublisherConfig{Cache: r.cache, Log: quiet}), Clock: r.clock,
	})
	t.Cleanup(func() { r.must(r.writer.Close(context.Background())) })
	r.desk = deadletter.New(deadletter.Config{
		DB: r.db, Letters: r.letters, Orders: r.orders, Writer: r.writer, Clock: r.clock, Log: quiet,
	})
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// aside appends an order message, as the gate does, and sets it aside, as the
// router does. It returns the task.
func (r *rig) aside() uuid.UUID {
	r.t.Helper()
	request := order.Requested{
		V: 1, Task: id.NewTask(id.ShardOf(r.sale)), User: id.New(), Sale: r.sale, Item: r.item, Quantity: 1,
		UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: r.clock.Now().UnixMilli(),
	}
	msg, err := request.Message()
	r.must(err)
	r.spoil(msg)
	return request.Task
}

func (r *rig) spoil(msg *stream.Message) {
	r.t.Helper()
	fields, err := stream.Entry(msg)
	r.must(err)
	entry, err := r.conn.Cmd.XAdd(r.t.Context(), &redis.XAddArgs{Stream: r.key, Values: fields}).Result()
	r.must(err)
	copied := msg.Copy()
	copied.Metadata.Set("_stream_entry", entry) // as the subscriber does
	copied.Metadata.Set(middleware.PoisonedTopicKey, r.key)
	copied.Metadata.Set(middleware.ReasonForPoisonedKey, "the database refused it")
	r.must(r.letters.Publish(r.letters.Key(), copied))
}

// only returns the only letter.
func (r *rig) only() *deadletter.Letter {
	r.t.Helper()
	list, err := r.desk.List(r.t.Context(), "", 10)
	r.must(err)
	if len(list) != 1 {
		r.t.Fatalf("%d letters", len(list))
	}
	return list[0]
}

func (r *rig) status(task uuid.UUID) order.TaskStatus {
	r.t.Helper()
	t, err := r.orders.Task(r.t.Context(), task)
	r.must(err)
	if t == nil {
		return ""
	}
	return t.Status
}

func (r *rig) decide(note string) deadletter.Decision {
	return deadletter.Decision{Letter: r.only().ID, Actor: id.New(), Note: note}
}

func TestALetterThatNobodyDecidesAboutEndsItsTaskOnceAndStays(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	counts, err := r.desk.Step(t.Context())
	if err != nil || len(counts) != 0 || r.status(task) != "" {
		t.Fatalf("at once: %v %v %s", counts, err, r.status(task))
	}
	r.clock.Advance(deadletter.Patience + time.Minute)
	for i := range 2 {
		counts, err = r.desk.Step(t.Context())
		if err != nil || counts["given_up"] != 1-i {
			t.Errorf("step %d: %v %v", i, counts, err)
		}
	}
	if r.status(task) != order.Failed || r.only().Task == nil || r.only().Task.Status != order.Failed {
		t.Errorf("task %s, letter %+v", r.status(task), r.only())
	}
	// Its message would find the task ended: it is not put back.
	_, refusal, err := r.desk.Replay(t.Context(), r.decide("too late"))
	if err != nil || refusal == nil || refusal.Reason() != fault.Conflict {
		t.Errorf("replay: %v %v", refusal, err)
	}
	if _, refusal, err := r.desk.Drop(t.Context(), r.decide("seen")); err != nil || refusal != nil {
		t.Errorf("drop: %v %v", refusal, err)
	}
}

func TestADroppedLetterEndsItsTaskAndIsLogged(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	in := r.decide(" poison ")
	l, refusal, err := r.desk.Drop(t.Context(), in)
	if err != nil || refusal != nil || l.Task == nil || l.Task.Status != order.Failed || l.Task.ID != task {
		t.Fatalf("drop: %+v %v %v", l, refusal, err)
	}
	_, refusal, err = r.desk.Drop(t.Context(), in)
	if err != nil || refusal == nil || refusal.Reason() != fault.Unknown {
		t.Errorf("drop again: %v %v", refusal, err)
	}
	acts, err := r.desk.Acts(t.Context())
	if err != nil || len(acts) != 1 || acts[0].Kind != deadletter.Dropped || acts[0].Actor != in.Actor || acts[0].Note != "poison" ||
		acts[0].Task == nil || *acts[0].Task != task {
		t.Errorf("log %+v %v", acts, err)
	}
}

// Two operators at once, one of each mind, and the worker: one end, no letter left.
func TestDecisionsAtOnceAreOneEnd(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	in := r.decide("now")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, _, err := r.desk.Replay(t.Context(), in); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, _, err := r.desk.Drop(t.Context(), in); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := r.desk.List(t.Context(), "", 10); err != nil || len(list) != 0 {
		t.Errorf("letters %v %v", list, err)
	}
	n, err := r.conn.Cmd.XLen(t.Context(), r.key).Result()
	if err != nil || n > 2 { // as it came, and put back at most once
		t.Errorf("%d entries, %v", n, err)
	}
	err = stream.Backlog(t.Context(), r.conn.Cmd, r.key, func(msg *stream.Message) {
		request, err := order.Decode(msg)
		r.must(err)
		_, err = r.writer.Write(t.Context(), request)
		r.must(err)
	})
	if status := r.status(task); err != nil || (status != order.Failed && status != order.Succeeded) {
		t.Errorf("task %s, %v", status, err)
	}
	row, err := r.db.Ent.SaleItem.Get(t.Context(), r.item)
	if err != nil || row.Available+row.Held != 9 {
		t.Errorf("stock %+v, %v", row, err)
	}
}

func TestALetterThatCannotBeReadIsShownAndDropped(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.spoil(stream.NewMessage(uuid.NewString(), []byte("not JSON")))
	l, err := r.desk.Letter(t.Context(), r.only().ID)
	if err != nil || l.Task != nil || len(l.Fields) == 0 {
		t.Fatalf("%+v %v", l, err)
	}
	if waiting, err := r.desk.Waiting(t.Context(), r.key); err != nil || len(waiting) != 0 {
		t.Errorf("%v %v", waiting, err)
	}
	if _, refusal, err := r.desk.Drop(t.Context(), r.decide("garbage")); err != nil || refusal != nil {
		t.Errorf("%v %v", refusal, err)
	}
	for _, note := range []string{"", "  "} {
		if _, refusal, err := r.desk.Drop(t.Context(), deadletter.Decision{Letter: "1-0", Note: note}); err != nil || refusal == nil {
			t.Errorf("no reason: %v %v", refusal, err)
		}
	}
}

// What waits at the desk is held: a gate that is built anew leaves its units out.
func TestLettersOfAStreamWait(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	waiting, err := r.desk.Waiting(t.Context(), r.key)
	if err != nil || len(waiting) != 1 || waiting[0].Task != task {
		t.Errorf("%+v %v", waiting, err)
	}
	if other, err := r.desk.Waiting(t.Context(), "another stream"); err != nil || len(other) != 0 {
		t.Errorf("%+v %v", other, err)
	}
}

// When the gate is lost, only its letter stands for a task that was set aside. The
// desk says so without asking about the task, which would ask the desk again.
func TestATaskInDoubtIsAliveWhileItsLetterWaits(t *testing.T) {
	t.Parallel()
	r := setup(t)
	asked := 0
	orders := order.NewStore(order.StoreConfig{DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet, Losses: &order.Losses{
		Alive: func(ctx context.Context, task *order.Task) (bool, error) {
			if asked++; asked > 10 {
				return false, errors.New("asked again and again")
			}
			waiting, err := r.desk.Waiting(ctx, r.key)
			return slices.ContainsFunc(waiting, func(w order.Requested) bool { return w.Task == task.ID }), err
		},
	}})
	r.desk = deadletter.New(deadletter.Config{
		DB: r.db, Letters: r.letters, Orders: orders, Writer: r.writer, Clock: r.clock, Log: quiet,
	})
	task, at := r.aside(), r.clock.Now()
	r.must(r.cache.Put(t.Context(), []order.Task{{
		ID: task, Sale: r.sale, Item: r.item, Status: order.Submitted, Revision: 1, CreatedAt: at, UpdatedAt: at,
	}}, nil))
	r.clock.Advance(time.Minute)
	if waiting, err := r.desk.Waiting(t.Context(), r.key); err != nil || len(waiting) != 1 || asked != 0 {
		t.Errorf("waiting %+v %v, and %d times asked about the task", waiting, err, asked)
	}
	asked = 0
	if l := r.only(); l.Task == nil || l.Task.Status != order.Submitted || asked != 1 {
		t.Errorf("letter of %+v after %d questions", l.Task, asked)
	}
	r.clock.Advance(deadletter.Patience)
	if counts, err := r.desk.Step(t.Context()); err != nil || counts["given_up"] != 1 || r.status(task) != order.Failed {
		t.Errorf("given up: %v %v, task %s", counts, err, r.status(task))
	}
}
