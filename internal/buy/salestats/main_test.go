package salestats_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"seckill/ent"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// env is a sale of one item with recorders and a reader of its figures.
type env struct {
	t      *testing.T
	db     *postgres.DB
	conn   *redisconn.Conn
	keys   reservation.Keys
	clock  *clock.Fake
	sale   id.Sale
	item   id.Item
	reader *salestats.Reader
}

func setup(t *testing.T) *env {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	return newEnv(t, testdb.Postgres(t), conn, prefix)
}

// onBoth runs a test on Postgres and Redis, and on the embedded services of the demo.
func onBoth(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Run("services", func(t *testing.T) {
		t.Parallel()
		test(t, setup(t))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		server := miniredis.RunT(t)
		conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(server.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		test(t, newEnv(t, testdb.SQLite(t), conn, "t:"))
	})
}

func newEnv(t *testing.T, db *postgres.DB, conn *redisconn.Conn, prefix string) *env {
	t.Helper()
	e := &env{
		t: t, db: db, conn: conn, keys: reservation.Keys{Prefix: prefix},
		clock: clock.NewFake(time.Now().Truncate(time.Second)), sale: id.New[id.Sale](), item: id.New[id.Item](),
	}
	now := e.clock.Now()
	e.must(db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Sale.Create().SetID(e.sale).SetSlug("s").SetTitle("S").SetStatus("LIVE").SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).
			SetPreheatAt(now).SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetEpoch(1).SetCreatedAt(now).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(e.item).SetSaleID(e.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(4900).SetCurrency("CNY").SetTotal(100).SetAvailable(100).Exec(ctx)
	}))
	e.reader = salestats.NewReader(salestats.ReaderConfig{
		DB: db, Client: conn.Cmd, Keys: e.keys, Clock: e.clock, Timeout: testenv.Wait,
		Queue: queue{3, 2 * time.Second},
	})
	return e
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// process returns the Recorder of one process.
func (e *env) process() *salestats.Recorder {
	return salestats.NewRecorder(salestats.Config{
		Client: e.conn.Script, Keys: e.keys, Clock: e.clock, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler),
	})
}

func (e *env) flush(r *salestats.Recorder) {
	e.t.Helper()
	e.must(r.Flush(e.t.Context()))
}

func (e *env) stats() *salestats.Stats {
	e.t.Helper()
	s, err := e.reader.Stats(e.t.Context(), e.sale)
	e.must(err)
	return s
}

// gate writes the gate of the item.
func (e *env) gate(total, stock, reserved int) {
	e.t.Helper()
	e.must(e.conn.Cmd.HSet(e.t.Context(), e.keys.Item(id.ShardOf(e.sale), e.item),
		"gate", "open", "total", total, "stock", stock, "reserved", reserved).Err())
}

// order writes an order of one unit with a status.
func (e *env) order(status string, at time.Time) id.Order {
	e.t.Helper()
	task := id.NewIn[id.Order](id.ShardOf(e.sale))
	e.must(e.db.Ent.Order.Create().SetID(task).SetNumber(task.String()[4:36]).SetSaleID(e.sale).SetItemID(e.item).SetUserID(id.New[id.User]()).
		SetStatus(entStatus(status)).SetQuantity(1).SetUnitPriceMinor(4900).SetCurrency("CNY").SetEpoch(1).
		SetReservedAt(at).SetCreatedAt(at).SetUpdatedAt(at).Exec(e.t.Context()))
	return task
}

// queue is that of a test.
type queue struct {
	depth int
	age   time.Duration
}

func (q queue) Depth(context.Context, int) (int, time.Duration, error) { return q.depth, q.age, nil }
