package waitlist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/postgres"
	"seckill/internal/redisconn"
	"seckill/internal/reservation"
	"seckill/internal/stream"
	"seckill/internal/testenv"
	"seckill/internal/waitlist"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var opening = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

var quiet = slog.New(slog.DiscardHandler)

// hall is a sale of one item, sold out unless a test says otherwise.
type hall struct {
	t        testing.TB
	db       *postgres.DB
	conn     *redisconn.Conn
	keys     reservation.Keys
	clock    *clock.Fake
	sale     uuid.UUID
	item     uuid.UUID
	releaser *reservation.Releaser
	reserver *reservation.Reserver
	writer   *order.Writer
	line     *waitlist.Service
	mu       sync.Mutex
	told     map[uuid.UUID]waitlist.Status // guarded by mu
}

func newHall(t testing.TB, units int) *hall {
	t.Helper()
	conn, prefix := testenv.Redis(t)
	h := &hall{
		t: t, db: testenv.Postgres(t), conn: conn, keys: reservation.Keys{Prefix: prefix}, clock: clock.NewFake(opening),
		sale: id.New(), item: id.New(), told: map[uuid.UUID]waitlist.Status{},
	}
	h.releaser = reservation.NewReleaser(conn.Script, h.keys)
	h.reserver = reservation.NewReserver(conn.Script, h.keys, meter{}, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.reserver.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	h.writer = order.NewWriter(order.WriterConfig{DB: h.db, Clock: h.clock, Log: quiet})
	h.line = waitlist.New(waitlist.Config{
		DB: h.db, Releaser: h.releaser, Line: reservation.NewLine(conn.Script, h.keys, quiet), Clock: h.clock, Log: quiet,
		Announce: func(_ context.Context, entries []*waitlist.Entry) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range entries {
				h.told[e.ID] = e.Status
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
		return tx.SaleItem.Create().SetID(h.item).SetSaleID(h.sale).SetGoodsID(id.New()).SetPosition(0).SetPriceMinor(1).
			SetCurrency("EUR").SetTotal(units).SetAvailable(units).Exec(ctx)
	}))
	h.openGate(1, units)
	return h
}

type meter struct{}

func (meter) Batch(int, time.Duration, error) {}
func (meter) Outcome(reservation.Code)        {}

// openGate builds the gate with a stock and nobody who holds anything.
func (h *hall) openGate(epoch int64, stock int) {
	h.t.Helper()
	loader := reservation.NewLoader(h.conn.Script, h.keys)
	_, err := loader.Begin(h.t.Context(), h.sale, h.item, epoch)
	h.must(err)
	_, err = loader.Open(h.t.Context(), reservation.Gate{
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

func (h *hall) attempt(user uuid.UUID) reservation.Attempt {
	h.t.Helper()
	task := id.NewTask(id.ShardOf(h.sale))
	r := order.Requested{
		V: 1, Task: task, User: user, Sale: h.sale, Item: h.item, Quantity: 1, UnitPriceMinor: 1, Currency: "EUR",
		PaymentWindowSeconds: 900, IdempotencyKey: task.String(),
	}
	msg, err := r.Message()
	h.must(err)
	entry, err := stream.Entry(msg)
	h.must(err)
	return reservation.Attempt{
		Task: task, Sale: h.sale, Item: h.item, User: user, Quantity: 1, PathToken: "token", IdempotencyKey: task.String(),
		Record: fmt.Sprintf(`{"id":%q,"status":"SUBMITTED","revision":1`, task), Entry: entry,
	}
}

// reserve tries to buy on open sale.
func (h *hall) reserve(user uuid.UUID) reservation.Outcome {
	h.t.Helper()
	h.must(h.conn.Cmd.Set(h.t.Context(), h.keys.Path(id.ShardOf(h.sale), h.item, user), "1|token", time.Minute).Err())
	o, err := h.reserver.Reserve(h.t.Context(), h.attempt(user))
	h.must(err)
	return o
}

// buy lets a fresh user have an order.
func (h *hall) buy() *order.Order {
	h.t.Helper()
	user := id.New()
	o := h.reserve(user)
	if o.Code != reservation.Accepted {
		h.t.Fatalf("reserve: %+v", o)
	}
	out, err := h.writer.Write(h.t.Context(), order.Requested{
		V: 1, Task: o.Task, User: user, Sale: h.sale, Item: h.item, Quantity: 1, UnitPriceMinor: 1, Currency: "EUR",
		PaymentWindowSeconds: 900, Epoch: 1, SubmittedAtMs: h.clock.Now().UnixMilli(),
	})
	h.must(err)
	return out.Order
}

// cancel ends an order and gives its unit back.
func (h *hall) cancel(o *order.Order) {
	h.t.Helper()
	h.must(h.db.WithTx(h.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := order.Apply(ctx, tx, order.Move{
			Order: o, To: order.Cancelled, At: h.clock.Now(), Entry: order.Entry{By: order.Actor{Kind: order.Clock}, Code: order.CodeCancelled},
		})
		return err
	}))
	_, err := h.releaser.Release(h.t.Context(), reservation.Hold{Sale: h.sale, Item: h.item, User: o.User, Task: o.ID})
	h.must(err)
}

func (h *hall) join(user uuid.UUID) (*waitlist.Entry, fault.Refusal) {
	h.t.Helper()
	e, refusal, err := h.line.Join(h.t.Context(), waitlist.JoinInput{Sale: h.sale, Item: h.item, User: user, Quantity: 1})
	h.must(err)
	return e, refusal
}

// joined lets so many people join.
func (h *hall) joined(n int) []*waitlist.Entry {
	h.t.Helper()
	entries := make([]*waitlist.Entry, n)
	for i := range entries {
		var refusal fault.Refusal
		if entries[i], refusal = h.join(id.New()); refusal != nil {
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
	if told := h.told[e.ID]; now.Version > 1 && told != now.Status {
		h.t.Errorf("place is %s, announced %q", now.Status, told)
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
	f.holders = int(h.conn.Cmd.HLen(h.t.Context(), h.keys.Holders(shard, h.item)).Val())
	f.messages = int(h.conn.Cmd.XLen(h.t.Context(), h.keys.Orders(shard)).Val())
	return f
}

func (h *hall) wantFigures(want figures) {
	h.t.Helper()
	if got := h.figures(); got != want {
		h.t.Errorf("the gate has %+v, want %+v", got, want)
	}
}

func refused(t *testing.T, refusal fault.Refusal, want fault.Reason) {
	t.Helper()
	if refusal == nil || refusal.Reason() != want {
		t.Errorf("refusal %v, want %s", refusal, want)
	}
}

func TestWhoMayJoin(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	_, refusal := h.join(id.New())
	refused(t, refusal, fault.Conflict) // there is one to buy
	o := h.buy()
	_, refusal = h.join(o.User)
	refused(t, refusal, fault.PurchaseLimitReached)
	outlook, err := h.line.Outlook(t.Context(), h.item)
	if err != nil || outlook.Gone() || outlook.Unpaid != 1 || !outlook.NextRelease.Equal(opening.Add(15*time.Minute)) {
		t.Errorf("outlook %+v, %v", outlook, err)
	}
	user := id.New()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[uuid.UUID]bool{}
	for range 20 {
		wg.Go(func() {
			e, refusal := h.join(user)
			mu.Lock()
			defer mu.Unlock()
			if refusal != nil {
				t.Error(refusal)
				return
			}
			seen[e.ID] = true
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("%d places of one person", len(seen))
	}
	h.must(h.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := order.Apply(ctx, tx, order.Move{
			Order: o, To: order.Paid, At: h.clock.Now(), Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid},
		})
		return err
	}))
	_, refusal = h.join(id.New())
	refused(t, refusal, fault.SoldOut) // gone for good
}

// A unit that comes back is the next one's in line, not the fastest clicker's.
func TestAUnitThatComesBackGoesToTheNextInLine(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(3)
	if ahead, err := h.line.Ahead(t.Context(), places[2]); err != nil || ahead != 2 {
		t.Errorf("%d ahead, %v", ahead, err)
	}
	h.step()
	h.cancel(o)
	if got := h.reserve(id.New()); got.Code != reservation.SoldOut {
		t.Errorf("a passer-by got %+v", got)
	}
	h.step()
	first := h.want(places[0], waitlist.Offered)
	h.want(places[1], waitlist.Waiting)
	if !first.OfferExpiresAt.Equal(h.clock.Now().Add(time.Minute)) {
		t.Errorf("offer until %s", first.OfferExpiresAt)
	}
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 1})
	h.clock.Advance(time.Minute + time.Second)
	h.step() // the first did not want it
	h.want(places[0], waitlist.Expired)
	h.want(places[1], waitlist.Offered)
	if _, refusal, err := h.line.Leave(t.Context(), places[1].ID, places[1].User); refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	h.step() // nor the second
	h.want(places[1], waitlist.Left)
	h.want(places[2], waitlist.Offered)
	h.clock.Advance(time.Minute + time.Second)
	h.step() // nobody does
	h.want(places[2], waitlist.Expired)
	h.wantFigures(figures{stock: 1, messages: 1})
	if got := h.reserve(id.New()); got.Code != reservation.Accepted {
		t.Errorf("on open sale again: %+v", got)
	}
}

func (h *hall) redeem(e *waitlist.Entry, a reservation.Attempt) (reservation.Outcome, fault.Refusal) {
	h.t.Helper()
	o, refusal, err := h.line.Redeem(h.t.Context(), e.ID, a)
	h.must(err)
	return o, refusal
}

func TestAnOfferBecomesOneOrderTask(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	places := h.joined(2)
	_, refusal := h.redeem(places[0], h.attempt(places[0].User))
	refused(t, refusal, fault.PathInvalid) // nothing was offered yet
	h.cancel(o)
	h.step()
	_, refusal = h.redeem(places[0], h.attempt(places[1].User))
	refused(t, refusal, fault.PathInvalid) // it is another's
	two := h.attempt(places[0].User)
	two.Quantity = 2
	if got, _ := h.redeem(places[0], two); got.Code != reservation.PathInvalid {
		t.Errorf("two units for an offer of one: %+v", got)
	}
	a := h.attempt(places[0].User)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			got, refusal := h.redeem(places[0], a)
			if refusal != nil || got.Code != reservation.Accepted || got.Task != a.Task {
				t.Errorf("redeem: %+v, %v", got, refusal)
			}
		})
	}
	wg.Wait()
	if e := h.want(places[0], waitlist.Redeemed); e.Task == nil || *e.Task != a.Task {
		t.Errorf("place %+v", e)
	}
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
	if got, _ := h.redeem(places[0], h.attempt(places[0].User)); got.Code != reservation.AlreadyHolding || got.Task != a.Task {
		t.Errorf("redeemed again under another key: %+v", got)
	}
	h.clock.Advance(time.Hour)
	h.step() // the lapse of a redeemed offer is none
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
	record, err := h.conn.Cmd.Get(t.Context(), h.keys.Task(id.ShardOf(h.sale), a.Task)).Bytes()
	h.must(err)
	var task order.Task
	if err := json.Unmarshal(record, &task); err != nil || task.Status != order.Submitted || task.CreatedAt.IsZero() {
		t.Errorf("record %s, %v", record, err)
	}
}

// The gate is built anew while offers are out: they are held again, or go back
// into the line when their unit is gone.
func TestOffersSurviveANewGate(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2)
	orders := []*order.Order{h.buy(), h.buy()}
	places := h.joined(2)
	h.cancel(orders[0])
	h.cancel(orders[1])
	h.step()
	h.want(places[1], waitlist.Offered)
	h.openGate(2, 1)
	h.step()
	h.want(places[0], waitlist.Offered)
	h.want(places[1], waitlist.Waiting)
	h.wantFigures(figures{reserved: 1, holders: 1, messages: 2})
}

// People come, go and dither, units come back, several processes work at once:
// no unit is lost, none is held for somebody who has left.
func TestNoUnitIsStuckInTheLine(t *testing.T) {
	t.Parallel()
	const units, people = 10, 40
	h := newHall(t, units)
	var orders []*order.Order
	for range units {
		orders = append(orders, h.buy())
	}
	places := h.joined(people)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 12 {
				if _, err := h.line.Step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for _, o := range orders {
			h.cancel(o)
		}
	})
	for _, e := range places {
		wg.Go(func() {
			for range rand.IntN(6) {
				if rand.IntN(3) == 0 {
					if _, _, err := h.line.Leave(t.Context(), e.ID, e.User); err != nil {
						t.Error(err)
					}
				}
				if _, _, err := h.line.Redeem(t.Context(), e.ID, h.attempt(e.User)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	h.step()
	h.step()
	open, err := waitlist.Holds(t.Context(), h.db.Ent.WaitlistEntry, h.item)
	h.must(err)
	redeemed := h.figures().messages - units
	if f := h.figures(); f.stock+f.reserved != units || f.reserved != len(open)+redeemed || f.holders != f.reserved {
		t.Errorf("the gate has %+v, %d offers, %d redeemed", f, len(open), redeemed)
	}
	h.clock.Advance(time.Minute + time.Second)
	for range 1 + people/units {
		h.step()
		h.clock.Advance(time.Minute + time.Second)
	}
	h.step()
	if f := h.figures(); f.stock != units-redeemed || f.reserved != redeemed {
		t.Errorf("in the end the gate has %+v, %d redeemed", f, redeemed)
	}
}

// If nobody keeps the line any more, what is there is on open sale.
func TestUnitsAreKeptForTheLineOnlyWhileSomebodyKeepsIt(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	o := h.buy()
	h.joined(1)
	h.cancel(o)
	key := h.keys.Item(id.ShardOf(h.sale), h.item)
	until, err := h.conn.Cmd.HGet(t.Context(), key, "line").Int64()
	now := h.conn.Cmd.Time(t.Context()).Val()
	if err != nil || until <= now.UnixMilli() || until > now.Add(3*time.Second).UnixMilli() {
		t.Errorf("kept until %d, now %d, %v", until, now.UnixMilli(), err)
	}
	if got := h.reserve(id.New()); got.Code != reservation.SoldOut {
		t.Errorf("while it is kept: %+v", got)
	}
	h.must(h.conn.Cmd.HSet(t.Context(), key, "line", now.UnixMilli()-1).Err())
	if got := h.reserve(id.New()); got.Code != reservation.Accepted {
		t.Errorf("afterwards: %+v", got)
	}
}

func TestOnlyOnesOwnPlaceIsLeft(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	h.buy()
	e := h.joined(1)[0]
	_, refusal, err := h.line.Leave(t.Context(), e.ID, id.New())
	h.must(err)
	refused(t, refusal, fault.Unknown)
	for range 2 {
		if got, refusal, err := h.line.Leave(t.Context(), e.ID, e.User); err != nil || refusal != nil || got.Status != waitlist.Left {
			t.Errorf("leave: %+v, %v, %v", got, refusal, err)
		}
	}
	if again, refusal := h.join(e.User); refusal != nil || again.ID == e.ID {
		t.Errorf("join again: %+v, %v", again, refusal)
	}
}
