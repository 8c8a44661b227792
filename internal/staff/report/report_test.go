package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/staff/report"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	stock    = 500
	buyers   = 4000
	expiries = 30
)

// env is a sale that sold out in a rush, some of whose orders expired and whose units
// were resold.
type env struct {
	t      *testing.T
	db     *postgres.DB
	conn   *redisconn.Conn
	keys   reservation.Keys
	sale   id.Sale
	item   id.Item
	opens  time.Time
	src    report.Source
	clock  *clock.Fake
	count  *salestats.Recorder
	random *rand.Rand
}

func setup(t *testing.T) *env {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	keys := reservation.Keys{Prefix: prefix}
	opens := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	e := &env{
		t: t, db: testdb.Postgres(t), conn: conn, keys: keys, sale: id.New[id.Sale](), item: id.New[id.Item](), opens: opens, clock: clock.NewFake(opens),
		random: rand.New(rand.NewPCG(1, 2)),
	}
	e.count = salestats.NewRecorder(salestats.Config{Client: conn.Script, Keys: keys, Clock: e.clock, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler)})
	e.src = report.Source{
		DB: e.db, Sales: sale.NewStore(e.db.Ent), Clock: e.clock,
		Stats: salestats.NewReader(salestats.ReaderConfig{
			DB: e.db, Client: conn.Cmd, Keys: keys, Clock: e.clock, Timeout: testenv.Wait,
			Queue: queue{},
		}),
	}
	e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { return e.write(ctx, tx) }))
	return e
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) write(ctx context.Context, tx *ent.Tx) error {
	goods, ann, carla := id.New[id.Goods](), id.New[id.User](), id.New[id.User]()
	before := e.opens.Add(-24 * time.Hour)
	return errors.Join(
		tx.User.Create().SetID(ann).SetAccount("ann@example.com").SetDisplayName("Ann").SetPasswordHash("x").SetRole("OPERATOR").SetCreatedAt(before).Exec(ctx),
		tx.User.Create().SetID(carla).SetAccount("carla@example.com").SetDisplayName("Carla").SetPasswordHash("x").SetRole("ADMIN").SetCreatedAt(before).Exec(ctx),
		tx.Goods.Create().SetID(goods).SetName("Mechanical keyboard <75%>").SetListPriceMinor(89900).SetCurrency("CNY").SetCreatedAt(before).Exec(ctx),
		tx.Sale.Create().SetID(e.sale).SetSlug("singles-day").SetTitle("双十一 · Singles' Day <flash>").SetStatus(entsale.StatusLIVE).
			SetStartsAt(e.opens).SetEndsAt(e.opens.Add(2*time.Hour)).SetPreheatAt(before).SetPaymentWindowSeconds(900).
			SetPurchaseLimit(1).SetEpoch(1).SetCreatedAt(before).SetCreatedBy(ann).Exec(ctx),
		tx.SaleItem.Create().SetID(e.item).SetSaleID(e.sale).SetGoodsID(goods).SetPosition(0).SetPriceMinor(49900).SetCurrency("CNY").
			SetTotal(stock).SetAvailable(stock).Exec(ctx),
		e.movement(ctx, tx, e.item.UUID(), "OPEN", stock, before),
		sale.LogCreation(ctx, tx, sale.Change{ID: id.New[uuid.UUID](), Sale: e.sale, By: sale.Actor{ID: ann, Role: auth.Operator}, At: before}),
		e.act(ctx, tx, carla, sale.ActSwitch, "fewer permits", `{"permitPerMille":1200}`, e.opens.Add(40*time.Second)),
	)
}

func (e *env) act(ctx context.Context, tx *ent.Tx, by id.User, act sale.Act, note, details string, at time.Time) error {
	return sale.Apply(ctx, tx, sale.Change{
		ID: id.New[uuid.UUID](), Sale: e.sale, From: sale.Live, To: sale.Live, Revision: 1, Act: act,
		By: sale.Actor{ID: by, Role: auth.Admin}, Note: note, Details: details, At: at,
	}, nil)
}

func (e *env) movement(ctx context.Context, tx *ent.Tx, of uuid.UUID, kind string, units int, at time.Time) error {
	return tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(of).SetItemID(e.item).SetKind(stockKind(kind)).
		SetQuantity(units).SetCreatedAt(at).Exec(ctx)
}

// rush sells the stock in about three seconds, lets some orders expire after fifteen
// minutes, and sells their units again.
func (e *env) rush() {
	e.t.Helper()
	var orders []*order.Order
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		orders = nil
		for i := range stock {
			at := e.opens.Add(time.Duration(3000*float64(i)/stock+e.random.Float64()*40) * time.Millisecond)
			lag := time.Duration(8+e.random.ExpFloat64()*20+float64(i)/12) * time.Millisecond
			o, err := e.order(ctx, tx, at, lag)
			if err != nil {
				return err
			}
			orders = append(orders, o)
		}
		return nil
	}))
	for i, o := range orders {
		if i < expiries {
			e.move(o, order.Expired, order.CodeExpired, o.PaymentDeadline.Add(time.Second))
		} else {
			e.move(o, order.Paid, order.CodePaid, o.CreatedAt.Add(2*time.Minute))
		}
	}
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		for i := range expiries - 10 {
			at := e.opens.Add(15*time.Minute + time.Duration(20+8*i)*time.Second)
			if _, err := e.order(ctx, tx, at, 9*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}))
	e.place()
}

func (e *env) order(ctx context.Context, tx *ent.Tx, at time.Time, lag time.Duration) (*order.Order, error) {
	return e.orderOf(ctx, tx, id.New[id.User](), at, lag)
}

func (e *env) orderOf(ctx context.Context, tx *ent.Tx, user id.User, at time.Time, lag time.Duration) (*order.Order, error) {
	task, written := id.NewIn[id.Order](id.ShardOf(e.sale)), at.Add(lag)
	err := errors.Join(
		tx.Order.Create().SetID(task).SetNumber(order.Number(task, at, 1)).SetSaleID(e.sale).SetItemID(e.item).SetUserID(user).
			SetQuantity(1).SetUnitPriceMinor(49900).SetCurrency("CNY").SetEpoch(1).SetReservedAt(at).
			SetCreatedAt(written).SetUpdatedAt(written).SetPaymentDeadline(written.Add(15*time.Minute)).Exec(ctx),
		e.movement(ctx, tx, task.UUID(), "HOLD", 1, written),
		tx.SaleItem.UpdateOneID(e.item).AddAvailable(-1).AddHeld(1).Exec(ctx))
	if err != nil {
		return nil, err
	}
	row, err := tx.Order.Get(ctx, task)
	if err != nil {
		return nil, err
	}
	return order.FromRow(row), nil
}

func (e *env) move(o *order.Order, to order.Status, code order.Code, at time.Time) {
	e.t.Helper()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := order.Apply(ctx, tx, order.Move{
			Order: o, To: to, At: at, Entry: order.Entry{By: order.Actor{Kind: order.Clock}, Code: code},
		})
		return err
	}))
}

// place counts the requests of the buyers in the rush.
func (e *env) place() {
	e.t.Helper()
	left := stock
	for tenth := range 120 {
		e.clock.Advance(100 * time.Millisecond)
		n := buyers / 40
		if tenth > 40 {
			n = max(0, n-tenth/2)
		}
		for range n {
			p := salestats.Placement{Sale: e.sale, Took: time.Duration(1e6 * (1 + e.random.ExpFloat64()*6))}
			switch r := e.random.IntN(20); {
			case r == 0:
				p.Err = fault.Refused{Why: fault.PathInvalid}
			case r == 1:
				p.Err = fault.Throttled{}
			case r == 2 && tenth%7 == 0:
				p.Err = errors.New("overload")
			case left == 0:
				p.Err = fault.Refused{Why: fault.SoldOut}
			default:
				left--
			}
			e.count.Placed(p)
		}
	}
	e.must(e.count.Flush(e.t.Context()))
	e.clock.Advance(30 * time.Minute)
}

func (e *env) build() *report.Report {
	e.t.Helper()
	r, err := e.src.Build(e.t.Context(), e.sale)
	e.must(err)
	return r
}

func TestAReportShowsHowTheSaleWent(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	r := e.build()
	if !r.Conserved || len(r.Findings) != 0 {
		t.Errorf("findings %q", r.Findings)
	}
	want := report.Units{Total: stock, Remaining: 10, Held: 20, Sold: stock - expiries, Expired: expiries, Returned: expiries, Resold: 20}
	if r.Units != want {
		t.Errorf("units %+v, want %+v", r.Units, want)
	}
	if s := r.Sale; s.FirstMs > 100 || s.HalfMs < 1400 || s.HalfMs > 1700 || s.NinetyMs < 2600 || s.SoldOutMs < 2900 || s.SoldOutMs > 3100 {
		t.Errorf("selling %+v", s)
	}
	if o := r.Orders; o.Written != stock+20 || o.Paid != stock-expiries || o.Expired != expiries || o.Unpaid != 20 || o.GMV != "234530.00" {
		t.Errorf("orders %+v", o)
	}
	if q := r.Requests; q.Accepted != stock || q.Total < 2000 || len(q.Refused) != 3 || q.Refused[0].Reason != fault.SoldOut || q.P50Ms <= 0 || q.P99Ms <= q.P50Ms {
		t.Errorf("requests %+v", q)
	}
	if r.Lag.P50Ms < 15 || r.Lag.P50Ms > 80 || r.Lag.P99Ms <= r.Lag.P50Ms || r.Lag.MaxMs < r.Lag.P99Ms || len(r.LagCurve) < 2 {
		t.Errorf("lag %+v, %d points", r.Lag, len(r.LagCurve))
	}
	if first, last := r.Curve[0], r.Curve[len(r.Curve)-1]; first.Left != stock || last.Left != 10 {
		t.Errorf("the curve goes from %+v to %+v", first, last)
	}
	orders := 0
	for _, s := range r.Series {
		orders += s.Orders
	}
	if orders != stock+20 {
		t.Errorf("the series has %d orders", orders)
	}
	if len(r.Acts) != 2 || r.Acts[0].Act != "CREATE" || r.Acts[0].Name != "Ann" || r.Acts[1].Name != "Carla" || r.Acts[1].Note != "fewer permits" {
		t.Errorf("acts %+v", r.Acts)
	}
}

func TestAReportIsTheSameFromKeptFigures(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	before := e.build()
	e.must(e.src.Stats.Keep(t.Context(), e.sale))
	conn, prefix := testenv.Redis(t) // another, empty key prefix of Redis
	e.src.Stats = salestats.NewReader(salestats.ReaderConfig{
		DB: e.db, Client: conn.Cmd, Keys: reservation.Keys{Prefix: prefix}, Clock: e.clock, Timeout: testenv.Wait,
		Queue: queue{},
	})
	after := e.build()
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(after)
	if !bytes.Equal(a, b) {
		t.Errorf("before %s\nafter  %s", a, b)
	}
}

func TestAReportSaysWhatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	e.must(e.db.Ent.SaleItem.UpdateOneID(e.item).AddHeld(-1).AddSold(1).Exec(t.Context()))
	r := e.build()
	if r.Conserved || len(r.Findings) < 3 {
		t.Errorf("findings %q", r.Findings)
	}
	var page, text bytes.Buffer
	e.must(r.HTML(&page, report.Reader{}))
	e.must(r.Text(&text))
	if !strings.Contains(page.String(), "Something does not add up") || !strings.Contains(text.String(), "DOES NOT ADD UP") {
		t.Error("neither page nor text says so")
	}
}

func TestASaleWithoutVisitorsHasAReportToo(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.build()
	var page bytes.Buffer
	e.must(r.HTML(&page, report.Reader{}))
	if !r.Conserved || r.Sale.SoldOutMs != -1 || !strings.Contains(page.String(), "No attempt was refused") {
		t.Errorf("%+v", r)
	}
	if _, err := e.src.Build(t.Context(), id.Sale(uuid.New())); !errors.Is(err, report.ErrUnknownSale) {
		t.Errorf("an unknown sale: %v", err)
	}
}

func TestThePageNeedsNothingBesideItself(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.rush()
	r := e.build()
	var page, text, program bytes.Buffer
	e.must(r.HTML(&page, report.Reader{}))
	e.must(r.Text(&text))
	e.must(r.JSON(&program))
	html := page.String()
	for _, foreign := range []string{"<script", "<link", "<img", "http://", "https://", "url(", "@import", "<75%>", "<flash>", "ZgotmplZ", "NaN", "Inf"} {
		if strings.Contains(html, foreign) {
			t.Errorf("the page has %q in it", foreign)
		}
	}
	if n := strings.Count(html, `role="img"`); n != 7 {
		t.Errorf("%d plots, want 7", n)
	}
	if len(html) > 300_000 {
		t.Errorf("the page has %d bytes", len(html))
	}
	var back report.Report
	if err := json.Unmarshal(program.Bytes(), &back); err != nil || back.Units != r.Units {
		t.Errorf("JSON: %v", err)
	}
	if !strings.Contains(text.String(), "everything adds up") || !strings.Contains(text.String(), "470 of 500 units") {
		t.Errorf("text: %s", &text)
	}
	text.Reset()
	r.Requests.P50Ms, r.Requests.P99Ms = 0.0042, 7.257 // refusals in memory take microseconds
	e.must(r.Text(&text))
	if !strings.Contains(text.String(), "p50 0.01 ms, p99 7.26 ms") {
		t.Errorf("short times: %s", &text)
	}
}

func TestWhatTheClockDidIsNotCountedAsAnOperators(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	r := report.Report{Acts: []report.Act{{Actor: "usr_1", Name: "Ann"}, {Name: "the clock"}, {Name: "the clock"}}}
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "operators  1 acts; the system 2") {
		t.Errorf("report:\n%s", text.String())
	}
}

// queue is that of a test.
type queue struct {
	depth int
	age   time.Duration
}

func (q queue) Depth(context.Context, int) (int, time.Duration, error) { return q.depth, q.age, nil }
