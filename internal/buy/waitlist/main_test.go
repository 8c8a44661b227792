package waitlist_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var opening = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

var quiet = slog.New(slog.DiscardHandler)

// hall is a sale of one item, sold out by default.
type hall struct {
	t         testing.TB
	db        *postgres.DB
	conn      *redisconn.Conn
	keys      reservation.Keys
	clock     *clock.Fake
	sale      id.Sale
	item      id.Item
	gate      *reservation.Gate
	writer    *order.Writer
	line      *waitlist.Service
	mu        sync.Mutex
	published map[id.Waitlist]waitlist.Status // guarded by mu
}

func newHall(t testing.TB, units int) *hall {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	h := &hall{
		t: t, db: testdb.Postgres(t), conn: conn, keys: reservation.Keys{Prefix: prefix}, clock: clock.NewFake(opening),
		sale: id.New[id.Sale](), item: id.New[id.Item](), published: map[id.Waitlist]waitlist.Status{},
	}
	h.gate = reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: h.keys, Timeout: testenv.Wait, Log: quiet})
	h.writer = order.NewWriter(order.WriterConfig{DB: h.db, Timeout: testenv.Wait, Clock: h.clock})
	h.line = waitlist.New(waitlist.Config{
		DB: h.db, Gate: h.gate, Timeout: testenv.Wait, Clock: h.clock, Log: quiet,
		Publish: func(_ context.Context, entries []*waitlist.Entry) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range entries {
				h.published[e.ID] = e.Status
			}
			return nil
		},
	})
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(h.sale).SetSlug(h.sale.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(opening).SetEndsAt(opening.Add(time.Hour)).SetPreheatAt(opening).SetPaymentWindowSeconds(900).
			SetPurchaseLimit(2).SetEpoch(1).SetCreatedAt(opening).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(h.item).SetSaleID(h.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(0).SetPriceMinor(1).
			SetCurrency("EUR").SetTotal(units).SetAvailable(units).Exec(ctx)
	}))
	h.openGate(1, units)
	return h
}

// openGate builds an open gate with a stock and no reservations.
func (h *hall) openGate(epoch int64, stock int) {
	h.t.Helper()
	_, err := h.gate.Begin(h.t.Context(), h.sale, h.item, epoch)
	h.must(err)
	_, err = h.gate.Open(h.t.Context(), reservation.Contents{
		Sale: h.sale, Item: h.item, State: reservation.GateOpen, Epoch: epoch, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 2, Total: stock, Stock: stock, Revision: 1,
	})
	h.must(err)
}

func (h *hall) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *hall) attempt(user id.User) reservation.Attempt {
	h.t.Helper()
	task := id.NewTask(id.ShardOf(h.sale))
	r := order.Request{
		V: 1, Task: task, User: user, Sale: h.sale, Item: h.item, Quantity: 1, UnitPriceMinor: 1, Currency: "EUR",
		PaymentWindowSeconds: 900, IdempotencyKey: task.String(),
	}
	terms, err := r.ItemTerms()
	h.must(err)
	return reservation.Attempt{
		Task: task, Sale: h.sale, Item: h.item, User: user, Quantity: 1, Permit: permit, IdempotencyKey: task.String(),
		Terms: terms,
	}
}

// permit is what the path tokens of these tests prove.
var permit = reservation.Permit{Epoch: 1, Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}

// reserve attempts to buy without an offer.
func (h *hall) reserve(user id.User) reservation.Outcome {
	h.t.Helper()
	member := redis.Z{Score: float64(permit.Until.UnixMilli()), Member: user.String()}
	h.must(h.conn.Cmd.ZAdd(h.t.Context(), h.keys.Permits(id.ShardOf(h.sale), h.item), member).Err())
	o, err := h.gate.Reserve(h.t.Context(), h.attempt(user))
	h.must(err)
	return o
}

// buy creates an order of a new user.
func (h *hall) buy() *order.Order {
	h.t.Helper()
	user := id.New[id.User]()
	o := h.reserve(user)
	if o.Code != reservation.Accepted {
		h.t.Fatalf("reserve: %+v", o)
	}
	end := h.writer.Write(h.t.Context(), order.Request{
		V: 1, Task: o.Task, User: user, Sale: h.sale, Item: h.item, Quantity: 1, UnitPriceMinor: 1, Currency: "EUR",
		PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: h.clock.Now().UnixMilli(),
	})[0]
	h.must(end.Err)
	return end.Order
}

// cancel cancels an order and releases its unit.
func (h *hall) cancel(o *order.Order) {
	h.t.Helper()
	h.must(h.db.WithTx(h.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := order.Apply(ctx, tx, order.Move{
			Order: o, To: order.Cancelled, At: h.clock.Now(), Entry: order.Entry{By: order.Actor{Kind: order.Clock}, Code: order.CodeCancelled},
		})
		return err
	}))
	_, err := h.gate.Release(h.t.Context(), reservation.Ref{Sale: h.sale, Item: h.item, User: o.User, Task: id.Task(o.ID)})
	h.must(err)
}

func (h *hall) join(user id.User) (*waitlist.Entry, fault.Refusal) {
	h.t.Helper()
	e, err := h.line.Join(h.t.Context(), waitlist.JoinInput{Sale: h.sale, Item: h.item, User: user, Quantity: 1, Waived: true})
	return e, testenv.Refusal(h.t, err)
}

// joined adds n new users to the waitlist.
func (h *hall) joined(n int) []*waitlist.Entry {
	h.t.Helper()
	entries := make([]*waitlist.Entry, n)
	for i := range entries {
		var refusal fault.Refusal
		if entries[i], refusal = h.join(id.New[id.User]()); refusal != nil {
			h.t.Fatal(refusal)
		}
	}
	return entries
}

func (h *hall) step() {
	h.t.Helper()
	_, err := h.line.Step(h.t.Context())
	h.must(err)
}

func (h *hall) want(e *waitlist.Entry, want waitlist.Status) *waitlist.Entry {
	h.t.Helper()
	now, err := h.line.Entry(h.t.Context(), e.ID)
	h.must(err)
	if now.Status != want {
		h.t.Errorf("place is %s, want %s", now.Status, want)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if published := h.published[e.ID]; now.Version > 1 && published != now.Status {
		h.t.Errorf("place is %s, published %q", now.Status, published)
	}
	return now
}

type figures struct{ stock, reserved, holders, messages int }

func (h *hall) figures() figures {
	h.t.Helper()
	shard := id.ShardOf(h.sale)
	hash, err := h.conn.Cmd.HGetAll(h.t.Context(), h.keys.Item(shard, h.item)).Result()
	h.must(err)
	var f figures
	f.stock, _ = strconv.Atoi(hash["stock"])
	f.reserved, _ = strconv.Atoi(hash["reserved"])
	f.holders = int(h.conn.Cmd.HLen(h.t.Context(), h.keys.Reservations(shard, h.item)).Val())
	f.messages = int(h.conn.Cmd.XLen(h.t.Context(), h.keys.Orders(shard)).Val())
	return f
}

func (h *hall) wantFigures(want figures) {
	h.t.Helper()
	if got := h.figures(); got != want {
		h.t.Errorf("the gate has %+v, want %+v", got, want)
	}
}

func refused(t *testing.T, err error, want fault.Reason) {
	t.Helper()
	if fault.ReasonOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
