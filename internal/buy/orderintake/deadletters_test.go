package orderintake_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// rig is a sale of one item with the stream and the dead letters of its orders.
type rig struct {
	t       *testing.T
	db      *postgres.DB
	conn    *redisconn.Conn
	clock   *clock.Fake
	store   *deadletter.Store
	letters *stream.DeadLetters
	cache   *order.Cache
	writer  *order.Writer
	orders  *order.Store
	dead    *orderintake.DeadLetters
	backlog *orderintake.Backlog
	keys    reservation.Keys
	shard   int
	key     string // of the stream
	sale    id.Sale
	item    id.Item
}

func setup(t *testing.T) *rig {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	keys := reservation.Keys{Prefix: prefix}
	r := &rig{
		t: t, db: testdb.Postgres(t), conn: conn, clock: clock.NewFake(time.Now()), sale: id.New[id.Sale](), item: id.New[id.Item](), keys: keys,
	}
	r.shard = id.ShardOf(r.sale)
	r.key = keys.Orders(r.shard)
	r.must(r.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		now := r.clock.Now()
		err := tx.Sale.Create().SetID(r.sale).SetSlug(r.sale.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now).SetPaymentWindowSeconds(900).
			SetPurchaseLimit(1).SetEpoch(1).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(r.item).SetSaleID(r.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(1999).SetCurrency("EUR").SetTotal(9).SetAvailable(9).Exec(ctx)
	}))
	r.store = deadletter.NewStore(deadletter.Config{DB: r.db, Clock: r.clock})
	r.letters = stream.NewDeadLetters(stream.DeadLettersConfig{Client: conn.Cmd, Record: r.store, Key: keys.DeadLetters(), Log: quiet})
	r.cache = order.NewCache(conn, keys.Tasks, r.clock)
	r.orders = order.NewStore(order.StoreConfig{DB: r.db, Cache: r.cache, Clock: r.clock, Log: quiet})
	r.writer = order.NewWriter(order.WriterConfig{
		DB: r.db, AfterCommit: order.NewAfterCommit(order.AfterCommitConfig{Cache: r.cache, Timeout: testenv.Wait, Log: quiet}), Clock: r.clock, Timeout: testenv.Wait,
	})
	t.Cleanup(func() { r.must(r.writer.Close(context.Background())) })
	r.dead = orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: r.db, Store: r.store, Letters: r.letters, Orders: r.orders, Writer: r.writer, Clock: r.clock, Log: quiet,
	})
	r.backlog = orderintake.NewBacklog(conn, keys, r.dead)
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// aside appends an order message as the gate does, and makes it a dead letter as the
// router does. It returns the task.
func (r *rig) aside() id.Task {
	r.t.Helper()
	request := order.Request{
		V: 1, Task: id.NewTask(id.ShardOf(r.sale)), User: id.New[id.User](), Sale: r.sale, Item: r.item, Quantity: 1,
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
	r.must(r.letters.Publish("", copied))
	r.must(r.conn.Cmd.XDel(r.t.Context(), r.key, entry).Err()) // acknowledged and trimmed
}

func (r *rig) only() *orderintake.Letter {
	r.t.Helper()
	list, err := r.dead.List(r.t.Context(), "", 10)
	r.must(err)
	if len(list) != 1 {
		r.t.Fatalf("%d letters", len(list))
	}
	return list[0]
}

func (r *rig) status(task id.Task) order.TaskStatus {
	r.t.Helper()
	t, err := r.orders.Task(r.t.Context(), task, id.User{})
	r.must(err)
	if t == nil {
		return ""
	}
	return t.Status
}

func (r *rig) decide(note string) orderintake.Decision {
	return orderintake.Decision{Letter: r.only().ID, Actor: id.New[id.User](), Note: note}
}

func TestALetterWithoutADecisionEndsItsTaskOnceAndStays(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	counts, err := r.dead.Step(t.Context())
	if err != nil || len(counts) != 0 || r.status(task) != "" {
		t.Fatalf("at once: %v %v %s", counts, err, r.status(task))
	}
	r.comesBack(task)
	r.clock.Advance(orderintake.DecisionTimeout + time.Minute)
	for i := range 2 {
		counts, err = r.dead.Step(t.Context())
		if err != nil || counts["given_up"] != 1-i {
			t.Errorf("step %d: %v %v", i, counts, err)
		}
	}
	if r.status(task) != order.Failed || r.only().Task == nil || r.only().Task.Status != order.Failed {
		t.Errorf("task %s, letter %+v", r.status(task), r.only())
	}
	// Its message would find the task ended, so it is not replayed.
	_, err = r.dead.Replay(t.Context(), r.decide("too late"))
	if fault.ReasonOf(err) != fault.Conflict {
		t.Errorf("replay: %v", err)
	}
	if _, err := r.dead.Drop(t.Context(), r.decide("seen")); err != nil {
		t.Errorf("drop: %v", err)
	}
}

func TestADroppedLetterEndsItsTaskAndIsLogged(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	in := r.decide(" poison ")
	l, err := r.dead.Drop(t.Context(), in)
	if err != nil || l.Task == nil || l.Task.Status != order.Failed || l.Task.ID != task {
		t.Fatalf("drop: %+v %v", l, err)
	}
	_, err = r.dead.Drop(t.Context(), in)
	if fault.ReasonOf(err) != fault.Unknown {
		t.Errorf("drop again: %v", err)
	}
	acts, err := r.dead.Acts(t.Context(), orderintake.ActList{Limit: 10})
	if err != nil || len(acts) != 1 || acts[0].Kind != orderintake.Dropped || acts[0].Actor != in.Actor || acts[0].Note != "poison" ||
		acts[0].Task == nil || *acts[0].Task != task {
		t.Errorf("log %+v %v", acts, err)
	}
}

// Two operators with different decisions race with the worker: one end, no letter left.
func TestDecisionsAtOnceAreOneEnd(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	in := r.decide("now")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := r.dead.Replay(t.Context(), in)
			testenv.Refusal(t, err)
		})
		wg.Go(func() {
			_, err := r.dead.Drop(t.Context(), in)
			testenv.Refusal(t, err)
		})
	}
	wg.Wait()
	if list, err := r.dead.List(t.Context(), "", 10); err != nil || len(list) != 0 {
		t.Errorf("letters %v %v", list, err)
	}
	n, err := r.conn.Cmd.XLen(t.Context(), r.key).Result()
	if err != nil || n > 2 { // one original, replayed at most once
		t.Errorf("%d entries, %v", n, err)
	}
	err = stream.Backlog(t.Context(), r.conn.Cmd, r.key, func(msg *stream.Message) {
		requests, err := order.Decode(msg)
		r.must(err)
		r.must(r.writer.Write(t.Context(), requests[0])[0].Err)
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
	l, err := r.dead.Letter(t.Context(), r.only().ID)
	if err != nil || l.Task != nil || len(l.Fields) == 0 {
		t.Fatalf("%+v %v", l, err)
	}
	if waiting, err := r.backlog.Requests(t.Context(), r.shard); err != nil || len(waiting) != 0 {
		t.Errorf("%v %v", waiting, err)
	}
	if _, err := r.dead.Drop(t.Context(), r.decide("garbage")); err != nil {
		t.Error(err)
	}
	for _, note := range []string{"", "  "} {
		if _, err := r.dead.Drop(t.Context(), orderintake.Decision{Letter: "1-0", Note: note}); fault.ReasonOf(err) == "" {
			t.Errorf("no reason: %v", err)
		}
	}
}

// The operator's decision must be final: otherwise the reconciler finds a reservation
// without a message, appends one, and the buyer gets the order after all.
func TestDroppingALetterWithAnUnreadablePayloadFailsItsTask(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.submit()
	r.spoil(stream.NewMessage(task.String(), []byte("not JSON")))
	letter, err := r.dead.Drop(t.Context(), r.decide("garbage"))
	if err != nil {
		t.Fatal(err)
	}
	if letter.Task == nil || letter.Task.Status != order.Failed {
		t.Errorf("task %+v after the drop", letter.Task)
	}
	if n := r.db.Ent.OrderFailure.Query().CountX(t.Context()); n != 1 {
		t.Errorf("%d failures recorded", n)
	}
	if n, err := r.store.Count(t.Context()); err != nil || n != 0 {
		t.Errorf("%d letters left, %v", n, err)
	}
}

// comesBack lets the only dead letter be replayed once, and fail again.
func (r *rig) comesBack(task id.Task) {
	r.t.Helper()
	r.clock.Advance(r.only().At.Add(orderintake.RetryAfter + time.Second).Sub(r.clock.Now()))
	counts, err := r.dead.Step(r.t.Context())
	if r.must(err); counts["retried"] != 1 || counts["given_up"] != 0 {
		r.t.Fatalf("after a minute: %v", counts)
	}
	entries, err := r.conn.Cmd.XRange(r.t.Context(), r.key, "-", "+").Result()
	r.must(err)
	if n, err := r.store.Count(r.t.Context()); err != nil || n != 0 || len(entries) != 1 {
		r.t.Fatalf("%d letters, %d messages, %v", n, len(entries), err)
	}
	msg, ok := stream.FromEntry(entries[0])
	if !ok || msg.UUID != task.String() {
		r.t.Fatalf("replayed %+v", entries[0])
	}
	r.must(r.conn.Cmd.XDel(r.t.Context(), r.key, entries[0].ID).Err())
	r.spoil(msg)
}

func TestADeadLetterWithoutADecisionIsReplayedOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	r.comesBack(task)
	r.clock.Advance(orderintake.RetryAfter + time.Second)
	counts, err := r.dead.Step(t.Context())
	if n, failed := r.store.Count(t.Context()); err != nil || failed != nil || len(counts) != 0 || n != 1 {
		t.Errorf("after its second failure: %v, %v, %d letters", counts, err, n)
	}
}

func TestAllDeadLettersAreReplayedAtOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for range 3 {
		r.aside()
	}
	ended := r.aside()
	r.must(r.writer.FailLostTasks(t.Context(), []order.Task{{
		ID: ended, User: id.New[id.User](), Sale: r.sale, Item: r.item, Quantity: 1, CreatedAt: r.clock.Now(),
	}}, "test")[0].Err)
	if _, err := r.dead.ReplayAll(t.Context(), orderintake.Decision{Note: " "}); fault.ReasonOf(err) == "" {
		t.Errorf("without a reason: %v", err)
	}
	out, err := r.dead.ReplayAll(t.Context(), orderintake.Decision{Actor: id.New[id.User](), Note: "the disk was full"})
	if err != nil || out.Replayed != 3 || out.Refused != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if n, err := r.store.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("%d letters are left, %v", n, err)
	}
	if n := r.conn.Cmd.XLen(t.Context(), r.key).Val(); n != 3 {
		t.Errorf("%d messages are back in the stream", n)
	}
}

// The units of a dead letter are reserved, so a rebuilt gate does not sell them.
func TestDeadLettersBelongToTheBacklog(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	waiting, err := r.backlog.Requests(t.Context(), r.shard)
	if err != nil || len(waiting) == 0 || waiting[0].Task != task {
		t.Errorf("%+v %v", waiting, err)
	}
	if other, err := r.backlog.Requests(t.Context(), (r.shard+1)%id.Shards); err != nil || len(other) != 0 {
		t.Errorf("%+v %v", other, err)
	}
}

// emptyRedis deletes all keys of the test.
func (r *rig) emptyRedis() {
	r.t.Helper()
	keys, err := r.conn.Cmd.Keys(r.t.Context(), r.keys.Prefix+"*").Result()
	r.must(err)
	r.must(r.conn.Cmd.Del(r.t.Context(), append(keys, r.key)...).Err())
}

func TestDeadLettersOutliveRedis(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	r.emptyRedis()
	if waiting, err := r.backlog.Requests(t.Context(), r.shard); err != nil || len(waiting) == 0 || waiting[0].Task != task {
		t.Errorf("waiting %+v %v", waiting, err)
	}
	if _, err := r.dead.Replay(t.Context(), r.decide("Redis is back")); err != nil {
		t.Fatal(err)
	}
	entries, err := r.conn.Cmd.XRange(t.Context(), r.key, "-", "+").Result()
	r.must(err)
	if msg, ok := stream.FromEntry(entries[0]); len(entries) != 1 || !ok || msg.UUID != task.String() {
		t.Errorf("replayed %+v", entries)
	}
	// The only retry is remembered too.
	r.must(r.conn.Cmd.Del(t.Context(), r.key).Err())
	retried := r.aside()
	r.comesBack(retried)
	r.emptyRedis()
	r.clock.Advance(orderintake.RetryAfter + time.Second)
	if counts, err := r.dead.Step(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("after its second failure: %v, %v", counts, err)
	}
	if _, err := r.dead.Drop(t.Context(), r.decide("poison")); err != nil || r.status(retried) != order.Failed {
		t.Errorf("drop: %v, task %s", err, r.status(retried))
	}
}

// The process is killed after it appended the message, and before it ended the letter.
func TestAReplayCutInTheMiddleIsFinished(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(r *rig){
		"by the next": func(r *rig) {
			_, err := r.dead.Replay(t.Context(), r.decide("again"))
			r.must(err)
		},
		"when its order exists": func(r *rig) {
			r.must(stream.Backlog(t.Context(), r.conn.Cmd, r.key, func(msg *stream.Message) {
				requests, err := order.Decode(msg)
				r.must(err)
				r.must(r.writer.Write(t.Context(), requests[0])[0].Err)
			}))
			r.clock.Advance(orderintake.RetryAfter + time.Second)
			if counts, err := r.dead.Step(t.Context()); err != nil || len(counts) != 0 {
				t.Errorf("%v, %v", counts, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.aside()
			letter, err := r.store.Letter(t.Context(), r.only().ID)
			r.must(err)
			if ok, err := r.letters.Replay(t.Context(), *letter); !ok || err != nil {
				t.Fatal(ok, err)
			}
			finish(r)
			if n, err := r.store.Count(t.Context()); err != nil || n != 0 {
				t.Errorf("%d letters, %v", n, err)
			}
			if n := r.conn.Cmd.XLen(t.Context(), r.key).Val(); n != 1 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// A rebuild of a gate right after the update counts them.
func TestLettersOfAnOlderReleaseAreInTheBacklog(t *testing.T) {
	t.Parallel()
	r := setup(t)
	task := r.aside()
	letter, err := r.store.Letter(t.Context(), r.only().ID)
	r.must(err)
	fields, err := json.Marshal(letter.Fields)
	r.must(err)
	r.must(r.db.Ent.DeadLetter.DeleteOneID(uuid.MustParse(letter.ID)).Exec(t.Context()))
	r.must(r.conn.Cmd.XAdd(t.Context(), &redis.XAddArgs{Stream: r.keys.DeadLetters(), Values: []string{
		"stream", r.key, "entry", letter.Entry, "message", letter.MessageID, "fields", string(fields),
	}}).Err())
	if waiting, err := r.backlog.Requests(t.Context(), r.shard); err != nil || len(waiting) == 0 || waiting[0].Task != task {
		t.Errorf("%+v %v", waiting, err)
	}
	if r.only().MessageID != task.String() {
		t.Errorf("%+v", r.only())
	}
}
