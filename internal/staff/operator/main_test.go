package operator_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/access"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderfacts"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/preload"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/staff/operator"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// Users of the tests.
var (
	ann       = sale.Actor{ID: id.New[id.User](), Role: auth.Operator}
	bob       = sale.Actor{ID: id.New[id.User](), Role: auth.Operator}
	carla     = sale.Actor{ID: id.New[id.User](), Role: auth.Admin}
	dora      = sale.Actor{ID: id.New[id.User](), Role: auth.Admin}
	buyer     = sale.Actor{ID: id.New[id.User](), Role: auth.Customer}
	anonymous = sale.Actor{}
)

// env is one process of the admin pages.
type env struct {
	t         *testing.T
	db        *postgres.DB
	conn      *redisconn.Conn
	keys      reservation.Keys
	clock     *clock.Fake
	sales     *sale.Store
	catalog   *sale.Catalog
	orders    *order.Store
	pre       *preload.Preloader
	ops       *operator.Service
	mu        sync.Mutex
	published []*order.Order // guarded by mu
	pays      *payment.Service
	notes     []sale.LogLine // guarded by mu
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
		clock: clock.NewFake(time.Now().Truncate(time.Millisecond)), sales: sale.NewStore(db.Ent),
	}
	log := slog.New(slog.DiscardHandler)
	versions := sale.NewVersions(conn.Cmd, prefix, log)
	e.catalog = sale.NewCatalog(e.sales, e.clock, log).Following(versions)
	e.orders = order.NewStore(order.StoreConfig{DB: db, Clock: e.clock, Log: log})
	e.pays = payment.New(payment.Config{
		DB: db, Orders: e.orders, Timeout: testenv.Wait, Clock: e.clock, Log: log,
		AfterCommit: order.NewAfterCommit(order.AfterCommitConfig{Log: log, Timeout: testenv.Wait, Orders: func(_ context.Context, orders []*order.Order) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.published = append(e.published, orders...)
			return nil
		}}),
	})
	e.pre = preload.New(preload.Config{
		DB: db, Gate: reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: e.keys, Timeout: testenv.Wait}),
		Backlog:  noMessages{},
		Versions: versions, Catalog: e.catalog, NoteTimeout: testenv.Wait, Clock: e.clock, Log: log,
	})
	e.ops = operator.New(e.config(versions))
	return e
}

// Act implements operator.Feed.
func (e *env) Act(_ context.Context, line sale.LogLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, line)
}

func (e *env) config(versions *sale.Versions) operator.Config {
	return operator.Config{
		DB: e.db, Sales: e.sales, Versions: versions, Catalog: e.catalog,
		Gate: reservation.NewGate(reservation.GateConfig{Client: e.conn.Script, Keys: e.keys, Timeout: testenv.Wait}), Orders: e.orders,
		Gates:    e.pre,
		Codes:    access.NewCodes([][]byte{[]byte("a secret of at least 32 bytes, for tests")}),
		Facts:    orderfacts.Outbox{Webhooks: webhook.NewOutbox(e.clock, nil)},
		Outbox:   webhook.NewOutbox(e.clock, nil),
		Payments: e.pays,
		Feed:     e,
		Clock:    e.clock, Log: slog.New(slog.DiscardHandler),
	}
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func price(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "CNY"} }

func (e *env) goods(name string) *sale.Goods {
	e.t.Helper()
	g, err := e.ops.CreateGoods(e.t.Context(), ann, operator.GoodsDraft{Name: name, ListPrice: price(9900)})
	if err != nil {
		e.t.Fatal(err)
	}
	return g
}

// draft returns a sale of one item that begins in an hour.
func (e *env) draft(stock int) operator.SaleDraft {
	e.t.Helper()
	return operator.SaleDraft{
		Title: "Autumn", StartsAt: e.clock.Now().Add(time.Hour), EndsAt: e.clock.Now().Add(2 * time.Hour),
		PaymentWindow: 15 * time.Minute, PurchaseLimit: 1,
		Items: []operator.ItemDraft{{Goods: e.goods("Kettle").ID, Price: price(4900), Stock: stock}},
	}
}

// sale creates a draft by ann.
func (e *env) sale(stock int) *sale.Sale {
	e.t.Helper()
	v, err := e.ops.CreateSale(e.t.Context(), ann, e.draft(stock))
	if err != nil {
		e.t.Fatalf("refused: %+v", err)
	}
	return v
}

// put moves a sale of ann's into a status through the regular operations.
func (e *env) put(status sale.Status, stock int) *sale.Sale {
	e.t.Helper()
	v := e.sale(stock)
	in := func(by sale.Actor) operator.ActInput { return operator.ActInput{By: by, Sale: v.ID, Note: "because"} }
	ctx := e.t.Context()
	steps := map[sale.Status][]func(){}
	run := func(f func() (*sale.Sale, error)) func() {
		return func() {
			_, err := f()
			if err != nil {
				e.t.Fatalf("on the way to %s: %+v", status, err)
			}
		}
	}
	submit := run(func() (*sale.Sale, error) { return e.ops.Submit(ctx, in(ann)) })
	approve := run(func() (*sale.Sale, error) { return e.ops.Approve(ctx, in(carla)) })
	reject := run(func() (*sale.Sale, error) { return e.ops.Reject(ctx, in(carla)) })
	schedule := run(func() (*sale.Sale, error) {
		done, err := e.ops.Schedule(ctx, operator.ScheduleInput{By: ann, Sale: v.ID})
		return done.Sale, err
	})
	preheat := run(func() (*sale.Sale, error) { return e.ops.Preheat(ctx, in(ann)) })
	open := func() { e.clock.Advance(time.Hour + time.Second); e.step() }
	pause := run(func() (*sale.Sale, error) { return e.ops.Pause(ctx, in(ann)) })
	end := run(func() (*sale.Sale, error) { return e.ops.End(ctx, in(carla)) })
	steps[sale.PendingApproval] = []func(){submit}
	steps[sale.Rejected] = []func(){submit, reject}
	steps[sale.Approved] = []func(){submit, approve}
	steps[sale.Scheduled] = slices.Concat(steps[sale.Approved], []func(){schedule})
	steps[sale.Preheated] = slices.Concat(steps[sale.Scheduled], []func(){preheat})
	steps[sale.Live] = slices.Concat(steps[sale.Preheated], []func(){open})
	steps[sale.Paused] = slices.Concat(steps[sale.Live], []func(){pause})
	steps[sale.Ended] = slices.Concat(steps[sale.Live], []func(){end})
	steps[sale.Cancelled] = []func(){end}
	for _, step := range steps[status] {
		step()
	}
	got := e.read(v.ID)
	if got.Status != status {
		e.t.Fatalf("the sale is %s, want %s", got.Status, status)
	}
	return got
}

// second confirms what was requested by ann as a second person, and returns the sale.
func (e *env) second(asked operator.Changed, err error) (*sale.Sale, error) {
	e.t.Helper()
	if err != nil {
		return nil, err
	}
	if asked.Intervention == nil || asked.Intervention.State != operator.Requested {
		e.t.Errorf("no second person is needed: %+v", asked.Intervention)
		return asked.Sale, nil
	}
	if _, err := e.ops.Decide(e.t.Context(), operator.DecideInput{By: dora, Intervention: asked.Intervention.ID, Confirm: true}); err != nil {
		return nil, err
	}
	return e.read(asked.ID), nil
}

func (e *env) read(saleID id.Sale) *sale.Sale {
	e.t.Helper()
	v, err := e.sales.ByID(e.t.Context(), saleID)
	e.must(err)
	return v
}

// step runs the scheduler once.
func (e *env) step() {
	e.t.Helper()
	_, err := e.pre.Step(e.t.Context())
	e.must(err)
}

// gate returns the gate of a sale's first item in Redis.
func (e *env) gate(v *sale.Sale) map[string]string {
	e.t.Helper()
	g, err := e.conn.Cmd.HGetAll(e.t.Context(), e.keys.Item(id.ShardOf(v.ID), v.Items[0].ID)).Result()
	e.must(err)
	return g
}

// figures are the counts of an item in Postgres and in Redis.
type figures struct{ total, available, held, sold, gateTotal, stock, reserved int }

func (e *env) figures(v *sale.Sale) figures {
	e.t.Helper()
	row, err := e.db.Ent.SaleItem.Get(e.t.Context(), v.Items[0].ID)
	e.must(err)
	g := e.gate(v)
	n := func(field string) int {
		i, _ := strconv.Atoi(g[field])
		return i
	}
	return figures{row.Total, row.Available, row.Held, row.Sold, n("total"), n("stock"), n("reserved")}
}

func (e *env) want(v *sale.Sale, want figures) {
	e.t.Helper()
	if got := e.figures(v); got != want {
		e.t.Errorf("figures %+v, want %+v", got, want)
	}
}

// order writes an unpaid order of one unit, as the writer and the reserve script do.
func (e *env) order(v *sale.Sale) *order.Order { return e.orderOf(v, 1) }

// orderOf writes an unpaid order of some units, as gate and writer do.
func (e *env) orderOf(v *sale.Sale, units int) *order.Order {
	e.t.Helper()
	task, now, user := id.NewIn[id.Order](id.ShardOf(v.ID)), e.clock.Now(), id.New[id.User]()
	item := v.Items[0].ID
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return errFirst(
			tx.Order.Create().SetID(task).SetNumber(order.Number(task, now, 0)).SetSaleID(v.ID).SetItemID(item).SetUserID(user).
				SetQuantity(units).SetUnitPriceMinor(4900).SetCurrency("CNY").SetEpoch(v.Epoch).
				SetReservedAt(now).SetCreatedAt(now).SetUpdatedAt(now).SetPaymentDeadline(now.Add(time.Hour)).Exec(ctx),
			tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(task.UUID()).SetItemID(item).SetKind("HOLD").
				SetQuantity(units).SetCreatedAt(now).Exec(ctx),
			tx.SaleItem.UpdateOneID(item).AddAvailable(-units).AddHeld(units).Exec(ctx))
	}))
	shard := id.ShardOf(v.ID)
	e.must(e.conn.Cmd.HSet(e.t.Context(), e.keys.Reservations(shard, item), user.String(),
		fmt.Sprintf("%s|%d|%d|key", task, units, now.UnixMilli())).Err())
	e.must(e.conn.Cmd.HIncrBy(e.t.Context(), e.keys.Item(shard, item), "stock", int64(-units)).Err())
	e.must(e.conn.Cmd.HIncrBy(e.t.Context(), e.keys.Item(shard, item), "reserved", int64(units)).Err())
	o, err := e.orders.Reload(e.t.Context(), task)
	e.must(err)
	return o
}

// pay pays an order as package payment does.
func (e *env) pay(o *order.Order) *order.Order {
	e.t.Helper()
	var paid *order.Order
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
		now := e.clock.Now()
		err = tx.Payment.Create().SetID(id.New[id.Payment]()).SetOrderID(o.ID).SetUserID(o.User).SetProvider("SANDBOX").
			SetIdempotencyKey(uuid.NewString()).SetStatus("SUCCEEDED").SetAmountMinor(o.TotalMinor()).SetCurrency(o.Currency).
			SetExpiresAt(now).SetCheckAt(now).SetCreatedAt(now).SetUpdatedAt(now).SetPaidAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		paid, err = order.Apply(ctx, tx, order.Move{
			Order: o, To: order.Paid, At: e.clock.Now(),
			Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid},
		})
		return err
	}))
	return paid
}

// returned releases the units of ended orders in Redis, as the loop does.
func (e *env) returned() {
	e.t.Helper()
	releaser := reservation.NewGate(reservation.GateConfig{Client: e.conn.Script, Keys: e.keys, Timeout: testenv.Wait})
	give := func(ctx context.Context, reservations []order.Reservation) ([]id.Item, error) {
		for _, c := range reservations {
			if _, err := releaser.Release(ctx, reservation.Ref{Sale: c.Sale, Item: c.Item, User: c.User, Task: c.Name}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	_, err := order.OrderReturns(e.db, give, e.clock, slog.New(slog.DiscardHandler)).Step(e.t.Context())
	e.must(err)
}

func errFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// another returns the catalogue of another process.
func (e *env) another() *sale.Catalog {
	log := slog.New(slog.DiscardHandler)
	return sale.NewCatalog(e.sales, e.clock, log).Following(sale.NewVersions(e.conn.Cmd, e.keys.Prefix, log))
}

func nan() *float64 { n := math.NaN(); return &n }

func neg() *int { n := -1; return &n }

// noMessages is a backlog without messages.
type noMessages struct{}

func (noMessages) Requests(context.Context, int) ([]order.Request, error)  { return nil, nil }
func (noMessages) Unhandled(context.Context, int) ([]order.Request, error) { return nil, nil }
