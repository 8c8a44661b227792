package order_test

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// TestMain limits the property tests to a short run; -rapid.checks runs more.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	testenv.Main(m)
}

// opening is the start of all sales in the tests; the fake clocks begin there.
var opening = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

// env is a database with one sale of one item, and the components under test.
type env struct {
	t     testing.TB
	db    *postgres.DB
	conn  *redisconn.Conn
	keys  reservation.Keys
	cache *order.Cache
	clock *clock.Fake
	sale  id.Sale
	item  id.Item
}

type stock struct{ units, limit int }

// setup returns an env on Postgres and Redis.
func setup(t testing.TB, s stock) *env {
	t.Helper()
	return setupOn(t, testdb.Postgres(t), s)
}

// setupSQLite returns an env on SQLite and Redis.
func setupSQLite(t testing.TB, s stock) *env {
	t.Helper()
	return setupOn(t, testdb.SQLite(t), s)
}

// onBoth runs a test on Postgres and on SQLite.
func onBoth(t *testing.T, s stock, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, setup(t, s))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, setupSQLite(t, s))
	})
}

func setupOn(t testing.TB, db *postgres.DB, s stock) *env {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	e := &env{t: t, db: db, conn: conn, keys: reservation.Keys{Prefix: prefix}, clock: clock.NewFake(opening)}
	e.cache = order.NewCache(conn, e.keys.Tasks, e.clock)
	e.sale, e.item = e.addSale(s)
	return e
}

func (e *env) addSale(s stock) (saleID id.Sale, itemID id.Item) {
	e.t.Helper()
	saleID = id.New[id.Sale]()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.Create().SetID(saleID).SetSlug(saleID.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(opening).SetEndsAt(opening.Add(time.Hour)).SetPreheatAt(opening.Add(-time.Hour)).
			SetPaymentWindowSeconds(900).SetPurchaseLimit(s.limit).SetEpoch(1).SetCreatedAt(opening).Exec(ctx)
	}))
	return saleID, e.addItem(saleID, s.units, 0)
}

func (e *env) addItem(saleID id.Sale, units, position int) id.Item {
	e.t.Helper()
	item := id.New[id.Item]()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.Create().SetID(item).SetSaleID(saleID).SetGoodsID(id.New[id.Goods]()).SetPosition(position).
			SetPriceMinor(1999).SetCurrency("EUR").SetTotal(units).SetAvailable(units).Exec(ctx)
	}))
	return item
}

// request returns a request of a new buyer.
func (e *env) request() order.Request { return e.requestOf(id.New[id.User](), 1) }

func (e *env) requestOf(user id.User, quantity int) order.Request {
	return order.Request{
		V: 1, Task: id.NewTask(id.ShardOf(e.sale)), User: user, Sale: e.sale, Item: e.item, Quantity: quantity,
		UnitPriceMinor: 1999, Currency: "EUR", PaymentWindowSeconds: 900, IdempotencyKey: "key-of-sixteen-bytes",
		Epoch: 1, SubmittedAtMs: e.clock.Now().UnixMilli(),
	}
}

func (e *env) requests(n int) []order.Request {
	rs := make([]order.Request, n)
	for i := range rs {
		rs[i] = e.request()
	}
	return rs
}

func (e *env) afterCommit(cfg order.AfterCommitConfig) *order.AfterCommit {
	cfg.Log, cfg.Timeout = slog.New(slog.DiscardHandler), testenv.Wait
	return order.NewAfterCommit(cfg)
}

func (e *env) writer(publish order.PublishTasks, change ...func(*order.WriterConfig)) *order.Writer {
	e.t.Helper()
	cfg := order.WriterConfig{
		DB: e.db, AfterCommit: e.afterCommit(order.AfterCommitConfig{Cache: e.cache, Tasks: publish}), Clock: e.clock, Timeout: testenv.Wait,
	}
	for _, f := range change {
		f(&cfg)
	}
	w := order.NewWriter(cfg)
	e.t.Cleanup(func() { e.must(w.Close(context.Background())) })
	return w
}

func (e *env) store() *order.Store {
	return order.NewStore(order.StoreConfig{DB: e.db, Cache: e.cache, Clock: e.clock, Log: slog.New(slog.DiscardHandler)})
}

func (e *env) write(w *order.Writer, r order.Request) order.Result {
	e.t.Helper()
	end := w.Write(e.t.Context(), r)[0]
	e.must(end.Err)
	return end
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// figures are the stock columns of an item.
type figures struct{ available, held, sold, total int }

func (e *env) figures() figures {
	e.t.Helper()
	row, err := e.db.Ent.SaleItem.Get(e.t.Context(), e.item)
	e.must(err)
	return figures{row.Available, row.Held, row.Sold, row.Total}
}

func (e *env) orders() int {
	e.t.Helper()
	n, err := e.db.Ent.Order.Query().Where(entorder.ItemID(e.item)).Count(e.t.Context())
	e.must(err)
	return n
}

func (e *env) failures() int {
	e.t.Helper()
	n, err := e.db.Ent.OrderFailure.Query().Count(e.t.Context())
	e.must(err)
	return n
}

// broken counts violated invariants in one statement, and so in one snapshot: the
// columns against each other, the orders and the ledger; tasks that ended twice; users
// with two live orders.
const broken = `
SELECT (SELECT count(*) FROM sale_items i WHERE available + held + sold <> total OR available < 0
     OR held <> (SELECT COALESCE(sum(quantity), 0) FROM orders o WHERE o.item_id = i.id AND status = 'PENDING_PAYMENT')
     OR held <> (SELECT COALESCE(sum(CASE kind WHEN 'HOLD' THEN quantity WHEN 'SELL' THEN -quantity WHEN 'RELEASE' THEN -quantity ELSE 0 END), 0)
                 FROM stock_movements m WHERE m.item_id = i.id)
     OR sold <> (SELECT COALESCE(sum(CASE kind WHEN 'SELL' THEN quantity WHEN 'RETAKE' THEN quantity WHEN 'RESTOCK' THEN -quantity WHEN 'WITHDRAW' THEN -quantity ELSE 0 END), 0)
                 FROM stock_movements m WHERE m.item_id = i.id))
     + (SELECT count(*) FROM orders o JOIN order_failures f ON f.id = o.id)
     + (SELECT count(*) FROM (SELECT 1 FROM orders WHERE status IN ('PENDING_PAYMENT', 'PAID', 'REFUNDING')
        GROUP BY item_id, user_id HAVING count(*) > 1) twice)`

// conserved fails the test when a stock invariant is violated.
func (e *env) conserved() {
	e.t.Helper()
	var n int
	e.must(e.db.SQL.QueryRowContext(e.t.Context(), broken).Scan(&n))
	if n != 0 {
		e.t.Fatalf("%d things do not add up: %+v", n, e.figures())
	}
}

// watch checks the invariants continuously until the returned function is called, which
// returns the number of checks.
func (e *env) watch() (stop func() int) {
	ctx, cancel := context.WithCancel(e.t.Context())
	looked := make(chan int)
	go func() {
		n := 0
		defer func() { looked <- n }()
		for ctx.Err() == nil {
			var wrong int
			if err := e.db.SQL.QueryRowContext(ctx, broken).Scan(&wrong); err == nil && wrong != 0 {
				e.t.Errorf("look %d: %d things do not add up", n, wrong)
			}
			n++
		}
	}()
	return func() int { cancel(); return <-looked }
}
