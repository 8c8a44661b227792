package preload_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/preload"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type fixture struct {
	db      *postgres.DB
	redis   *redisconn.Conn
	keys    reservation.Keys
	clock   *clock.Fake
	pending []order.Request
	handled []order.Request // acknowledged, and still in the stream
	broken  error           // of the backlog
	// meanwhile is called by the next read of the backlog: after a build has begun.
	meanwhile func()
	// comparing is called by the next comparison, before it reads the backlog.
	comparing func()
	sale      id.Sale
	item      id.Item
}

func setup(t *testing.T) *fixture { return setupOn(t, testdb.Postgres(t)) }

func setupOn(t *testing.T, db *postgres.DB) *fixture {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	f := &fixture{
		db: db, redis: conn, keys: reservation.Keys{Prefix: prefix},
		clock: clock.NewFake(time.Now().Truncate(time.Second)), sale: id.New[id.Sale](), item: id.New[id.Item](),
	}
	now, goods := f.clock.Now(), id.New[id.Goods]()
	err := f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Goods.Create().SetID(goods).SetName("Kettle").SetListPriceMinor(9900).SetCurrency("CNY").SetCreatedAt(now).Exec(ctx); err != nil {
			return err
		}
		if err := tx.Sale.Create().SetID(f.sale).SetSlug("s").SetTitle("S").SetStatus(entsale.StatusSCHEDULED).
			SetStartsAt(now.Add(time.Minute)).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now.Add(5 * time.Second)).
			SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(now).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(f.item).SetSaleID(f.sale).SetGoodsID(goods).SetPosition(0).
			SetPriceMinor(4900).SetCurrency("CNY").SetTotal(10).SetAvailable(10).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Unhandled implements preload.Backlog.
func (f *fixture) Unhandled(context.Context, int) ([]order.Request, error) {
	if do := f.comparing; do != nil {
		f.comparing = nil
		do()
	}
	return f.pending, f.broken
}

// Requests implements preload.Backlog.
func (f *fixture) Requests(context.Context, int) ([]order.Request, error) {
	if do := f.meanwhile; do != nil {
		f.meanwhile = nil
		do()
	}
	return slices.Concat(f.pending, f.handled), f.broken
}

func (f *fixture) preloader() *preload.Preloader {
	return preload.New(preload.Config{
		DB: f.db, Gate: reservation.NewGate(reservation.GateConfig{Client: f.redis.Script, Keys: f.keys, Timeout: testenv.Wait}),
		Backlog:     f,
		NoteTimeout: testenv.Wait,
		Clock:       f.clock, Log: slog.New(slog.DiscardHandler),
	})
}

func (f *fixture) step(t *testing.T) map[string]int {
	t.Helper()
	counts, err := f.preloader().Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func (f *fixture) row(t *testing.T) *ent.Sale {
	t.Helper()
	row, err := f.db.Ent.Sale.Get(t.Context(), f.sale)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func (f *fixture) gate(t *testing.T) map[string]string {
	t.Helper()
	return f.redis.Cmd.HGetAll(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item)).Val()
}

// sell writes an order of one unit as the writer does.
func (f *fixture) sell(t *testing.T) id.Order {
	t.Helper()
	task, now := id.NewIn[id.Order](id.ShardOf(f.sale)), f.clock.Now()
	err := f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Order.Create().SetID(task).SetNumber(task.String()[:20]).SetSaleID(f.sale).SetItemID(f.item).SetUserID(id.New[id.User]()).
			SetStatus(entorder.StatusPENDING_PAYMENT).SetQuantity(1).SetUnitPriceMinor(4900).SetCurrency("CNY").
			SetEpoch(1).SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx); err != nil {
			return err
		}
		if err := tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(task.UUID()).SetItemID(f.item).SetKind(stockmovement.KindHOLD).
			SetQuantity(1).SetCreatedAt(now).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleItem.Update().Where(saleitem.ID(f.item)).AddAvailable(-1).AddHeld(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func (f *fixture) wantGate(t *testing.T, epoch, stock, reserved string) {
	t.Helper()
	g := f.gate(t)
	if g["epoch"] != epoch || g["stock"] != stock || g["reserved"] != reserved || g["gate"] != reservation.GateOpen {
		t.Errorf("gate %v, want epoch %s, stock %s, reserved %s, open", g, epoch, stock, reserved)
	}
}

func TestASaleIsLoadedWhenItIsDueAndOnlyOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if counts := f.step(t); len(counts) != 0 || len(f.gate(t)) != 0 {
		t.Errorf("before it is due: %v, gate %v", counts, f.gate(t))
	}
	f.clock.Advance(6 * time.Second)
	if counts := f.step(t); counts["loaded"] != 1 {
		t.Errorf("when due: %v", counts)
	}
	f.wantGate(t, "1", "10", "0")
	if counts := f.step(t); len(counts) != 0 {
		t.Errorf("loaded again: %v", counts)
	}
}

func TestStatusFollowsTheClock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	for _, want := range []struct {
		after  time.Duration
		status entsale.Status
	}{{0, entsale.StatusPREHEATED}, {time.Minute, entsale.StatusLIVE}, {time.Hour, entsale.StatusENDED}} {
		f.clock.Advance(want.after)
		f.step(t)
		if got := f.row(t).Status; got != want.status {
			t.Errorf("after %s: %s, want %s", want.after, got, want.status)
		}
	}
}

func TestALostGateIsRebuiltFromTheRecordAndTheStream(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	written := f.sell(t)
	message := func(task id.Task) order.Request {
		return order.Request{V: 1, Task: task, User: id.New[id.User](), Sale: f.sale, Item: f.item, Quantity: 1, SubmittedAtMs: f.clock.Now().UnixMilli()}
	}
	// One message is already written; the other waits and is in the stream twice.
	waiting := message(id.NewTask(id.ShardOf(f.sale)))
	f.pending = []order.Request{message(id.Task(written)), waiting, waiting}
	f.clock.Advance(5 * time.Second)
	f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), f.keys.Reservations(id.ShardOf(f.sale), f.item))
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Fatalf("step: %v", counts)
	}
	f.wantGate(t, "2", "8", "2")
	if n := f.redis.Cmd.HLen(t.Context(), f.keys.Reservations(id.ShardOf(f.sale), f.item)).Val(); n != 2 {
		t.Errorf("%d holders, want 2", n)
	}
}

// A buyer whose task was thought lost may have bought again before its message was back: one of the two
// becomes an order. A reservation of each would leave the unit of the other one unsold.
func TestABuildCountsOneReservationOfABuyer(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		f := setupOn(t, db)
		f.clock.Advance(6 * time.Second)
		f.step(t)
		twice := id.New[id.User]()
		request := func(user id.User, age time.Duration) order.Request {
			at := f.clock.Now().Add(-age).UnixMilli()
			return order.Request{V: 1, Task: id.NewTask(id.ShardOf(f.sale)), User: user, Sale: f.sale, Item: f.item, Quantity: 1, SubmittedAtMs: at}
		}
		live, err := f.db.Ent.Order.Get(t.Context(), f.sell(t))
		f.must(t, err)
		younger, older := request(twice, time.Second), request(twice, time.Minute)
		f.pending = []order.Request{younger, older, request(live.UserID, time.Minute)}
		f.clock.Advance(5 * time.Second)
		f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), f.keys.Reservations(id.ShardOf(f.sale), f.item))
		if counts := f.step(t); counts["rebuilt"] != 1 {
			t.Fatalf("step: %v", counts)
		}
		f.wantGate(t, "2", "8", "2")
		if differs, err := f.preloader().Differs(t.Context(), f.sale, f.item); err != nil || differs {
			t.Errorf("differs %t, %v", differs, err)
		}
		gate := reservation.NewGate(reservation.GateConfig{Client: f.redis.Script, Keys: f.keys, Timeout: testenv.Wait})
		tasks, err := gate.ReservationTasks(t.Context(), f.sale, f.item, []id.User{twice})
		if err != nil || tasks[twice] != older.Task {
			t.Errorf("the reservation is of %s, want the older task %s: %v", tasks[twice], older.Task, err)
		}
	})
}

// The build raises the fence of the writer: an order of the lost gate that the build did not
// count takes no unit without a reservation in the new gate.
func TestABuildFencesOffTheOrdersOfTheGateBefore(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		f := setupOn(t, db)
		f.clock.Advance(6 * time.Second)
		f.step(t)
		w := order.NewWriter(order.WriterConfig{DB: f.db, Clock: f.clock, Timeout: testenv.Wait})
		t.Cleanup(func() { f.must(t, w.Close(context.Background())) })
		request := func(epoch int64) order.Request {
			return order.Request{
				V: 1, Task: id.NewTask(id.ShardOf(f.sale)), User: id.New[id.User](), Sale: f.sale, Item: f.item, Quantity: 1, Epoch: epoch,
				UnitPriceMinor: 4900, Currency: "CNY", PaymentWindowSeconds: 900, SubmittedAtMs: f.clock.Now().UnixMilli(),
			}
		}
		f.must(t, w.Write(t.Context(), request(1))[0].Err)
		uncounted := request(1)
		f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), f.keys.Reservations(id.ShardOf(f.sale), f.item))
		f.clock.Advance(5 * time.Second)
		if counts := f.step(t); counts["rebuilt"] != 1 {
			t.Fatalf("step: %v", counts)
		}
		if err := w.Write(t.Context(), uncounted)[0].Err; !errors.Is(err, order.ErrSuperseded) {
			t.Errorf("an order of the lost gate: %v", err)
		}
		f.must(t, w.Write(t.Context(), request(2))[0].Err)
	})
}

// The message of a task that failed is in the stream until it is trimmed: its unit is for sale.
func TestABuildDoesNotCountFailedTasks(t *testing.T) {
	t.Parallel()
	testdb.OnDatabases(t, func(t *testing.T, db *postgres.DB) {
		f := setupOn(t, db)
		f.clock.Advance(6 * time.Second)
		f.step(t)
		f.pending = f.reserve(t, 3, 7)
		f.fail(t, fault.Conflict, f.pending[0])
		f.wantGate(t, "1", "8", "2")
		if differs, err := f.preloader().Differs(t.Context(), f.sale, f.item); err != nil || differs {
			t.Errorf("before the loss: differs %t, %v", differs, err)
		}
		f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), f.keys.Reservations(id.ShardOf(f.sale), f.item))
		f.clock.Advance(5 * time.Second)
		if counts := f.step(t); counts["rebuilt"] != 1 {
			t.Fatalf("step: %v", counts)
		}
		f.wantGate(t, "2", "8", "2")
		if differs, err := f.preloader().Differs(t.Context(), f.sale, f.item); err != nil || differs {
			t.Errorf("after the build: differs %t, %v", differs, err)
		}
	})
}

// A client drops a revision lower than one it has seen.
func TestRevisionsRiseOverARebuildHoweverFewLinesTheLedgerHas(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const units = 1500 // more than a new epoch adds
	f.must(t, f.db.Ent.SaleItem.UpdateOneID(f.item).SetTotal(units).SetAvailable(units).Exec(t.Context()))
	f.clock.Advance(6 * time.Second)
	f.step(t)
	item := f.keys.Item(id.ShardOf(f.sale), f.item)
	shown := f.redis.Cmd.HIncrBy(t.Context(), item, "rev", units).Val() // one for each unit taken
	f.must(t, f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return errors.Join(
			tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(id.New[uuid.UUID]()).SetItemID(f.item).SetKind(stockmovement.KindHOLD).
				SetQuantity(units).SetCreatedAt(f.clock.Now()).Exec(ctx),
			tx.SaleItem.UpdateOneID(f.item).AddAvailable(-units).AddHeld(units).Exec(ctx))
	}))
	f.redis.Cmd.Del(t.Context(), item)
	f.clock.Advance(5 * time.Second)
	f.step(t)
	f.wantGate(t, "2", "0", "0")
	if rev, err := strconv.ParseInt(f.gate(t)["rev"], 10, 64); err != nil || rev <= shown {
		t.Errorf("revision %d (%v) after %d", rev, err, shown)
	}
}

func (f *fixture) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stepAtOnce lets eight processes handle the sale at the same time, and fails the test
// unless exactly one of them made the change.
func (f *fixture) stepAtOnce(t *testing.T, change string) {
	t.Helper()
	var wg sync.WaitGroup
	var made atomic.Int64
	begin := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			<-begin
			counts, err := f.preloader().Step(context.Background())
			if err != nil {
				t.Error(err)
			}
			made.Add(int64(counts[change]))
		})
	}
	close(begin)
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("%s %d times by 8 processes, want once", change, made.Load())
	}
}

func TestTwoProcessesThatLoadAtOnceLeaveOneGate(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.stepAtOnce(t, "loaded")
	f.step(t) // the next step completes the work of a process that lost a race
	g := f.gate(t)
	if g["stock"] != "10" || g["reserved"] != "0" || g["gate"] != reservation.GateOpen {
		t.Errorf("gate %v", g)
	}
}

func TestABuildThatDiedHalfWayIsBegunAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	row := f.row(t)
	loader := reservation.NewGate(reservation.GateConfig{Client: f.redis.Script, Keys: f.keys, Timeout: testenv.Wait})
	if begun, err := loader.Begin(t.Context(), f.sale, f.item, row.Epoch+1); err != nil || !begun {
		t.Fatal(begun, err)
	}
	if err := f.db.Ent.Sale.UpdateOneID(f.sale).SetEpoch(row.Epoch + 1).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := loader.State(t.Context(), f.sale, f.item)
	if err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(state.Since.Add(6 * time.Second).Sub(f.clock.Now())) // Since is by the clock of Redis
	f.step(t)
	if g := f.gate(t); g["gate"] != reservation.GateLoading {
		t.Errorf("a build that may still go on is left alone, got %v", g)
	}
	f.clock.Advance(30 * time.Second)
	f.step(t)
	f.wantGate(t, "3", "10", "0")
}

func TestABuildThatFailedIsBegunAgainAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	p := f.preloader()
	f.broken = errors.New("no connection")
	if _, err := p.Step(t.Context()); !errors.Is(err, f.broken) {
		t.Fatal(err)
	}
	if g := f.gate(t); g["gate"] != reservation.GateLoading {
		t.Errorf("gate %v", g)
	}
	f.broken = nil
	if _, err := p.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantGate(t, "2", "10", "0")
}

// The scheduler runs Step in a loop: the status of a sale changes when it opens and ends.
func TestStatusChangesAtTheTimesOfTheSale(t *testing.T) {
	t.Parallel()
	f := setup(t)
	p := f.preloader()
	step := func() {
		t.Helper()
		if _, err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Load(t.Context(), f.sale); err != nil {
		t.Fatal(err)
	}
	step()
	for _, want := range []entsale.Status{entsale.StatusLIVE, entsale.StatusENDED} {
		due, ok := p.Due()
		if !ok {
			t.Fatalf("nothing is due before the sale is %s", want)
		}
		f.clock.Advance(due)
		step()
		if status := f.row(t).Status; status != want {
			t.Errorf("the status is %s after the step that was due, want %s", status, want)
		}
	}
	if due, ok := p.Due(); ok {
		t.Errorf("%s after the end something is due", due)
	}
}
