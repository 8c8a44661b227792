package payment_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderfacts"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/origin"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// TestMain limits the property tests to a short run; -rapid.checks runs more. A failure prints
// the seed that repeats it, and writes no file beside the source.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": manyLives, "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	testenv.Main(m)
}

var opening = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

const window = 15 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

// shop is a sale of one item with everything that its orders need: database, gate,
// bank, payment service, and the loops, which the tests run step by step.
type shop struct {
	t         testing.TB
	db        *postgres.DB
	books     *sql.DB // connection for counts
	conn      *redisconn.Conn
	keys      reservation.Keys
	clock     *clock.Fake
	sale      id.Sale
	item      id.Item
	orders    *order.Store
	writer    *order.Writer
	releaser  *reservation.Gate
	bank      *sandbox.Bank
	signer    *sandbox.Signer
	flaky     *flaky           // proxy for bank and gate
	provider  payment.Provider // flaky, or what adds a bill to it
	pay       *payment.Service
	returner  periodic.Loop
	door      *httptest.Server
	courier   *sandbox.Courier
	published *published
	roads     atomic.Pointer[func() fate] // fate of call-backs; nil = all arrive
	prompt    atomic.Bool                 // whether the message of an event is delivered immediately
	forged    []int                       // reports of forged call-backs
	settled   []string                    // reports of settled money
	currency  string                      // of the items

	draws      *waitlist.Service     // nil = no sale is a draw
	registerer prometheus.Registerer // of the metrics; nil = none
}

// published records the published orders.
type published struct {
	mu     sync.Mutex
	orders map[id.Order]*order.Order // guarded by mu; the newest version of each
}

func (p *published) publish(_ context.Context, orders []*order.Order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range orders {
		if known := p.orders[o.ID]; known == nil || known.Version < o.Version {
			p.orders[o.ID] = o
		}
	}
	return nil
}

func (p *published) of(id id.Order) *order.Order {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.orders[id]
}

func newShop(t testing.TB, units int) *shop {
	t.Helper()
	url := testdb.UnflushedPostgresURL(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return shopOn(t, db, booksOf(t, url), units)
}

// onBoth runs a test on Postgres and on SQLite.
func onBoth(t *testing.T, units int, test func(t *testing.T, s *shop)) {
	t.Helper()
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newShop(t, units))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db := testdb.SQLite(t)
		test(t, shopOn(t, db, db.SQL, units))
	})
}

func shopOn(t testing.TB, db *postgres.DB, books *sql.DB, units int) *shop {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	s := &shop{
		t: t, db: db, books: books, conn: conn, keys: reservation.Keys{Prefix: prefix}, clock: clock.NewFake(opening),
		published: &published{orders: map[id.Order]*order.Order{}}, currency: "EUR",
	}
	cache := order.NewCache(conn, s.keys.Tasks, s.clock)
	s.orders = order.NewStore(order.StoreConfig{DB: db, Cache: cache, Clock: s.clock, Log: quiet})
	s.writer = order.NewWriter(order.WriterConfig{
		DB: db, AfterCommit: order.NewAfterCommit(order.AfterCommitConfig{Cache: cache, Timeout: testenv.Wait, Log: quiet}), Clock: s.clock, Timeout: testenv.Wait,
	})
	s.releaser = reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: s.keys, Timeout: testenv.Wait})
	s.bank = sandbox.NewBank(db, s.clock)
	var err error
	s.signer, err = sandbox.NewSigner([]byte("a key of the bank"), []byte("the key before it"))
	s.must(err)
	s.door = httptest.NewUnstartedServer(nil)
	s.door.Start()
	t.Cleanup(s.door.Close)
	s.flaky = &flaky{
		Provider: sandbox.NewProvider(s.bank, s.door.URL+"/sandbox", s.signer, s.clock),
		gate:     payment.NewRedisGate(s.releaser, nil),
	}
	s.courier = sandbox.NewCourier(s.bank, s.door.URL+"/webhooks/payments/sandbox", s.signer, quiet)
	s.courier.Timeout = testenv.Wait
	t.Cleanup(s.courier.Close)
	s.restart()
	s.newSale(units)
	t.Cleanup(func() { s.must(s.writer.Close(context.Background())) })
	return s
}

// restart replaces the processes of the shop: their memory is lost.
func (s *shop) restart() {
	publisher := order.NewAfterCommit(order.AfterCommitConfig{
		Cache: order.NewCache(s.conn, s.keys.Tasks, s.clock), Orders: s.published.publish, Timeout: testenv.Wait, Log: quiet,
	})
	s.pay = payment.New(payment.Config{
		DB: s.db, Orders: s.orders, AfterCommit: publisher, Facts: orderfacts.Outbox{Webhooks: webhook.NewOutbox(s.clock, nil)}, Outbox: webhook.NewOutbox(s.clock, nil), Gate: s.flaky, Draws: s.draws, Providers: []payment.Provider{cmp.Or(s.provider, payment.Provider(s.flaky))},
		Timeout: testenv.Wait, Patience: testenv.Wait, Clock: s.clock, Registerer: s.registerer, Log: quiet, Security: s, Events: s, Returns: origin.NewSet("https://store.example"),
		Persons: person.NewHasher([][]byte{[]byte("a secret of at least 32 bytes, for tests")}),
	})
	s.returner = order.OrderReturns(s.db, func(ctx context.Context, reservations []order.Reservation) (building []id.Item, err error) {
		for _, c := range reservations {
			done, err := s.flaky.Return(ctx, c)
			if err != nil {
				return nil, err
			}
			if !done {
				building = append(building, c.Item)
			}
		}
		return building, nil
	}, s.clock, quiet)
	s.door.Config.Handler = s.road(s.pay.Webhooks())
}

// Publish implements payment.Events: a prompt shop handles the event at once.
func (s *shop) Publish(ctx context.Context, event id.Held) error {
	if !s.prompt.Load() {
		return errLost
	}
	return s.pay.Settle(ctx, event)
}

// road is the network path of call-backs; it may lose them.
func (s *shop) road(shop http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		became := fine
		if post := s.roads.Load(); post != nil {
			became = (*post)()
		}
		switch became {
		case replyLost:
			shop.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "timed out", http.StatusGatewayTimeout)
		case unsent:
			http.Error(w, "timed out", http.StatusGatewayTimeout)
		default:
			shop.ServeHTTP(w, r)
		}
	})
}

// product is the name of what the sales sell.
const product = "Lamp <1> 灯"

// newSale adds a sale of one item to the database and opens its gate.
func (s *shop) newSale(units int) {
	s.t.Helper()
	s.sale, s.item = id.New[id.Sale](), id.New[id.Item]()
	s.must(s.db.WithTx(s.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(s.sale).SetSlug(s.sale.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(opening).SetEndsAt(opening.Add(time.Hour)).SetPreheatAt(opening.Add(-time.Hour)).
			SetPaymentWindowSeconds(int(window / time.Second)).SetPurchaseLimit(3).SetEpoch(1).SetCreatedAt(opening).Exec(ctx)
		if err != nil {
			return err
		}
		goods := id.New[id.Goods]()
		err = tx.Goods.Create().SetID(goods).SetName(product).SetListPriceMinor(1999).SetCurrency(s.currency).SetCreatedAt(opening).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(s.item).SetSaleID(s.sale).SetGoodsID(goods).SetPosition(0).
			SetPriceMinor(1999).SetCurrency(s.currency).SetTotal(units).SetAvailable(units).Exec(ctx)
	}))
	loader := reservation.NewGate(reservation.GateConfig{Client: s.conn.Script, Keys: s.keys, Timeout: testenv.Wait})
	_, err := loader.Begin(s.t.Context(), s.sale, s.item, 1)
	s.must(err)
	_, err = loader.Open(s.t.Context(), reservation.Contents{
		Sale: s.sale, Item: s.item, State: reservation.GateOpen, Epoch: 1, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 3, Total: units, Stock: units, Revision: 1,
	})
	s.must(err)
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// place places an order for a user through the gate and the writer. It returns nil when
// the gate refuses.
func (s *shop) place(user id.User, quantity int) *order.Order {
	s.t.Helper()
	task := id.NewTask(id.ShardOf(s.sale))
	take := reservation.Reacquire{Ref: reservation.Ref{Sale: s.sale, Item: s.item, User: user, Task: task}, Quantity: quantity}
	r, err := patiently(func() (reservation.ReacquireOutcome, error) { return s.releaser.Reacquire(s.t.Context(), take) })
	s.must(err)
	if r.Code != reservation.Reacquired && r.Code != reservation.ReacquiredBefore {
		return nil
	}
	request := order.Request{
		V: 1, Task: task, User: user, Sale: s.sale, Item: s.item, Quantity: quantity, UnitPriceMinor: 1999, Currency: s.currency,
		PaymentWindowSeconds: int(window / time.Second), Epoch: 1, SubmittedAtMs: s.clock.Now().UnixMilli(),
	}
	out, err := patiently(func() (order.Result, error) {
		end := s.writer.Write(s.t.Context(), request)[0]
		return end, end.Err
	})
	s.must(err)
	if out.Order == nil {
		s.t.Fatalf("the gate let a task through that failed: %+v", out.Task)
	}
	return out.Order
}

// buy places an order for a new user.
func (s *shop) buy() *order.Order {
	s.t.Helper()
	o := s.place(id.New[id.User](), 1)
	if o == nil {
		s.t.Fatal("nothing left")
	}
	return o
}

func (s *shop) begin(o *order.Order, key string) *payment.Payment {
	s.t.Helper()
	p, err := s.pay.Pay(s.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: key})
	if err != nil {
		s.t.Fatalf("pay: %v", err)
	}
	return p.Payment
}

// charge returns the bank's charge of a payment.
func (s *shop) charge(p *payment.Payment) *sandbox.Charge {
	s.t.Helper()
	c, err := s.bank.ByMerchant(s.t.Context(), p.ID)
	s.must(err)
	return c
}

func (s *shop) approve(p *payment.Payment, habit sandbox.Habit) {
	s.t.Helper()
	s.must(s.bank.Approve(s.t.Context(), s.charge(p).ID, habit))
}

// work runs every loop once.
func (s *shop) work() {
	s.t.Helper()
	s.step(s.courier.Step)
	s.step(s.pay.RetryEvents)
	s.step(s.refund)
	s.step(s.pay.ExpireOverdue)
	s.step(s.returner.Step)
	s.step(s.check)
}

// check queries the bank for open payments.
func (s *shop) check(ctx context.Context) (map[string]int, error) {
	return s.pay.CheckOpen(ctx, s.flaky.Name())
}

// refund sends refunds to the bank.
func (s *shop) refund(ctx context.Context) (map[string]int, error) {
	return s.pay.SendRefunds(ctx, s.flaky.Name())
}

func (s *shop) step(step func(context.Context) (map[string]int, error)) {
	s.t.Helper()
	_, err := step(s.t.Context())
	if err != nil && strings.Contains(err.Error(), "panic: "+errDied.Error()) {
		panic(errDied) // the step continued; our process crashes
	}
	if err != nil && !errors.Is(err, errLost) && !stream.IsRetryable(err) {
		s.t.Fatal(err)
	}
}

// settleDown advances the clock and runs the loops until no work is left.
func (s *shop) settleDown() {
	s.t.Helper()
	for range 12 {
		s.clock.Advance(5 * time.Second)
		s.work()
	}
}

// expirePayments advances the clock past the payment window.
func (s *shop) expirePayments() {
	s.t.Helper()
	s.clock.Advance(window + 2*time.Second)
	s.step(s.pay.ExpireOverdue)
	s.step(s.returner.Step)
}

func (s *shop) order(o *order.Order) *order.Order {
	s.t.Helper()
	now, err := s.orders.Reload(s.t.Context(), o.ID)
	s.must(err)
	return now
}

func (s *shop) wantOrder(o *order.Order, want order.Status) *order.Order {
	s.t.Helper()
	now := s.order(o)
	if now.Status != want {
		s.t.Errorf("order is %s, want %s", now.Status, want)
	}
	if heard := s.published.of(o.ID); now.Version > 1 && (heard == nil || heard.Version != now.Version) {
		s.t.Errorf("order of version %d, published %+v", now.Version, heard)
	}
	return now
}

func (s *shop) wantPayment(p *payment.Payment, want payment.Status) {
	s.t.Helper()
	now, err := s.pay.Payment(s.t.Context(), p.ID)
	s.must(err)
	if now.Status != want {
		s.t.Errorf("payment is %s, want %s", now.Status, want)
	}
}

func (s *shop) wantRefused(err error, want fault.Reason) {
	s.t.Helper()
	if fault.ReasonOf(err) != want {
		s.t.Errorf("got %v, want %s", err, want)
	}
}
