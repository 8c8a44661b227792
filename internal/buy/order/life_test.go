package order_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderevent"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// entryOf returns a log entry for a move, for tests that do not check the log.
func entryOf(to order.Status) order.Entry {
	code := map[order.Status]order.Code{
		order.Paid: order.CodePaid, order.Cancelled: order.CodeCancelled, order.Expired: order.CodeExpired,
		order.Refunding: order.CodeRefundAsked, order.Refunded: order.CodeRefunded,
	}[to]
	return order.Entry{By: order.Actor{Kind: order.Clock}, Code: code}
}

// try moves an order and returns the conflict, if any.
func (e *env) try(m order.Move) (moved *order.Order, err error) {
	err = e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		var err error
		moved, err = order.Apply(ctx, tx, m)
		return err
	})
	return moved, err
}

func TestTheTableOfMoves(t *testing.T) {
	t.Parallel()
	allowed := map[[2]order.Status]order.Movement{
		{order.PendingPayment, order.Paid}:      order.Sell,
		{order.PendingPayment, order.Cancelled}: order.Release,
		{order.PendingPayment, order.Expired}:   order.Release,
		{order.Expired, order.Paid}:             order.Reacquire,
		{order.Paid, order.Refunding}:           order.NoMovement,
		{order.Refunding, order.Paid}:           order.NoMovement,
		{order.Refunding, order.Refunded}:       order.Restock,
	}
	for _, from := range order.Statuses() {
		for _, to := range order.Statuses() {
			want, ok := allowed[[2]order.Status{from, to}]
			if got, may := order.Allowed(from, to); may != ok || got != want {
				t.Errorf("%s to %s: %q %t, want %q %t", from, to, got, may, want, ok)
			}
		}
	}
	for status, ended := range map[order.Status]bool{
		order.Cancelled: true, order.Refunded: true, order.Expired: false, order.Paid: false,
	} {
		if status.Ended() != ended {
			t.Errorf("%s ended: %t", status, !ended)
		}
	}
}

// model is the expected state of some orders of one item.
type model struct {
	stock  figures
	orders []*modelOrder
}

type modelOrder struct {
	read   []*order.Order // every version that was read, newest last
	status order.Status
	due    bool // the units are not yet returned in Redis
	again  bool // it reacquired its units
}

func (m *modelOrder) last() *order.Order { return m.read[len(m.read)-1] }

func (m *model) live(user id.User) bool {
	return slices.ContainsFunc(m.orders, func(o *modelOrder) bool { return o.last().User == user && o.status.IsLive() })
}

// expect returns the expected result of a move of an order from its version v.
func (m *model) expect(o *modelOrder, v *order.Order, to order.Status) error {
	stock, allowed := order.Allowed(v.Status, to)
	switch {
	case !allowed:
		return errNotAllowed
	case v.Version != o.last().Version, stock == order.Reacquire && o.due:
		return order.ErrMoved
	case stock == order.Reacquire && m.live(v.User):
		return order.ErrOtherLive
	case stock == order.Reacquire && m.stock.available < v.Quantity:
		return order.ErrNoUnit
	}
	return nil
}

var errNotAllowed = errors.New("not in the table")

// apply records a successful move in the model.
func (m *model) apply(o *modelOrder, moved *order.Order, keep bool) {
	stock, _ := order.Allowed(o.status, moved.Status)
	n := moved.Quantity
	switch {
	case stock == order.Sell:
		m.stock.held, m.stock.sold = m.stock.held-n, m.stock.sold+n
	case stock == order.Release:
		m.stock.held, m.stock.available, o.due = m.stock.held-n, m.stock.available+n, true
	case stock == order.Reacquire:
		m.stock.available, m.stock.sold, o.again = m.stock.available-n, m.stock.sold+n, true
	case stock == order.Restock && keep:
		m.stock.sold, m.stock.total, o.due = m.stock.sold-n, m.stock.total-n, true
	case stock == order.Restock:
		m.stock.sold, m.stock.available, o.due = m.stock.sold-n, m.stock.available+n, true
	}
	o.status, o.read = moved.Status, append(o.read, moved)
}

// For any sequence of moves, including moves of outdated versions: orders follow the
// table, units move with them, and the stock invariants hold.
func TestTheLifeOfOrdersFollowsTheTable(t *testing.T) {
	t.Parallel()
	testLife(t, setup(t, stock{limit: 1}))
}

func TestTheLifeOfOrdersFollowsTheTableOnSQLite(t *testing.T) {
	t.Parallel()
	testLife(t, setupSQLite(t, stock{limit: 1}))
}

func testLife(t *testing.T, e *env) {
	rapid.Check(t, func(rt *rapid.T) {
		e.sale, e.item = e.addSale(stock{units: 4, limit: 2})
		m := &model{stock: figures{available: 4, total: 4}}
		users := []id.User{id.New[id.User](), id.New[id.User](), id.New[id.User]()}
		w := e.writer(nil)
		rt.Repeat(map[string]func(*rapid.T){
			"place":  func(rt *rapid.T) { e.place(rt, w, m, rapid.SampledFrom(users).Draw(rt, "user")) },
			"move":   func(rt *rapid.T) { e.tryMove(rt, m) },
			"expire": func(rt *rapid.T) { e.expireAll(rt, m) },
			"give":   func(rt *rapid.T) { e.giveBack(rt, m) },
			"": func(rt *rapid.T) {
				if got := e.figures(); got != m.stock {
					rt.Fatalf("stock %+v, want %+v", got, m.stock)
				}
				e.conserved()
			},
		})
	})
}

func (e *env) place(rt *rapid.T, w *order.Writer, m *model, user id.User) {
	n := rapid.IntRange(1, 2).Draw(rt, "units")
	out := e.write(w, e.requestOf(user, n))
	if want := !m.live(user) && n <= m.stock.available; (out.Order != nil) != want {
		rt.Fatalf("placed %+v, want an order: %t", out, want)
	}
	if out.Order != nil {
		m.stock.available, m.stock.held = m.stock.available-n, m.stock.held+n
		m.orders = append(m.orders, &modelOrder{read: []*order.Order{out.Order}, status: order.PendingPayment})
	}
}

func (e *env) tryMove(rt *rapid.T, m *model) {
	if len(m.orders) == 0 {
		return // no order yet
	}
	o := rapid.SampledFrom(m.orders).Draw(rt, "order")
	v := o.last()
	if rapid.IntRange(0, 3).Draw(rt, "stale") == 0 {
		v = rapid.SampledFrom(o.read).Draw(rt, "version")
	}
	mv := order.Move{
		Order: v, To: rapid.SampledFrom(order.Statuses()).Draw(rt, "to"), At: e.clock.Now(),
		KeepUnits: rapid.Bool().Draw(rt, "keep"),
	}
	mv.Entry = entryOf(mv.To)
	if mv.To == order.Paid && v.Status == order.Expired {
		reserved := id.New[id.Task]()
		mv.NewReservation = &reserved
	}
	want := m.expect(o, v, mv.To)
	moved, err := e.try(mv)
	switch {
	case want == nil && err == nil:
		m.apply(o, moved, mv.KeepUnits)
		if stored, err := e.store().Reload(e.t.Context(), moved.ID); err != nil || cmp.Diff(stored, moved) != "" {
			rt.Fatalf("stored %+v, %v, returned %+v", stored, err, moved)
		}
	case want == nil, err == nil, !errors.Is(want, errNotAllowed) && !errors.Is(err, want):
		rt.Fatalf("%s to %s of version %d, newest %d: %v, want %v", v.Status, mv.To, v.Version, o.last().Version, err, want)
	}
}

func (e *env) expireAll(rt *rapid.T, m *model) {
	var pending []*order.Order
	for _, o := range m.orders {
		pending = append(pending, rapid.SampledFrom(o.read).Draw(rt, "version"))
	}
	expired, err := order.Expire(e.t.Context(), e.db, nil, pending, e.clock.Now())
	if err != nil {
		rt.Fatal(err)
	}
	for _, o := range m.orders {
		i := slices.IndexFunc(expired, func(l *order.Order) bool { return l.ID == o.last().ID })
		stale := !slices.Contains(pending, o.last())
		if want := o.status == order.PendingPayment && !stale; (i >= 0) != want {
			rt.Fatalf("order %s: expired %t, want %t", o.status, i >= 0, want)
		}
		if i >= 0 {
			m.apply(o, expired[i], false)
		}
	}
}

func (e *env) giveBack(rt *rapid.T, m *model) {
	want := map[id.Task]bool{}
	for _, o := range m.orders {
		if o.due {
			want[o.last().Reservation().Name] = o.again
			o.due = false
		}
	}
	got := map[id.Task]bool{}
	_, err := order.OrderReturns(e.db, func(_ context.Context, reservations []order.Reservation) ([]id.Item, error) {
		for _, c := range reservations {
			if c.Item == e.item {
				got[c.Name] = c.Name != id.Task(c.Order)
			}
		}
		return nil, nil
	}, e.clock, slog.New(slog.DiscardHandler)).Step(e.t.Context())
	if err != nil || cmp.Diff(want, got) != "" {
		rt.Fatalf("given back, %v:\n%s", err, cmp.Diff(want, got))
	}
}

// Pay, expire, cancel and void race for one row: exactly one succeeds.
func TestFourWayRacesHaveOneWinner(t *testing.T) {
	onBoth(t, stock{units: 400, limit: 1}, func(t *testing.T, e *env) {
		w := e.writer(nil)
		const races = 100
		won := map[order.Status]int{}
		for range races {
			o := e.write(w, e.request()).Order
			var wg sync.WaitGroup
			var mu sync.Mutex
			winners := 0
			note := func(moved *order.Order) {
				mu.Lock()
				defer mu.Unlock()
				winners++
				won[moved.Status]++
			}
			for _, to := range []order.Status{order.Paid, order.Cancelled, order.Cancelled} {
				wg.Go(func() {
					moved, err := e.try(order.Move{Order: o, To: to, At: e.clock.Now(), Entry: entryOf(to)})
					switch {
					case err == nil:
						note(moved)
					case !errors.Is(err, order.ErrMoved):
						t.Error(err)
					}
				})
			}
			for range 2 {
				wg.Go(func() {
					expired, err := order.Expire(t.Context(), e.db, nil, []*order.Order{o}, e.clock.Now())
					if err != nil {
						t.Error(err)
					}
					for _, moved := range expired {
						note(moved)
					}
				})
			}
			wg.Wait()
			if winners != 1 {
				t.Fatalf("%d winners", winners)
			}
		}
		e.conserved()
		f := e.figures()
		if f.held != 0 || f.sold != won[order.Paid] || f.available != 400-f.sold {
			t.Errorf("stock %+v after %v", f, won)
		}
	})
}

func TestSweepersOfManyProcessesExpireEachOrderOnce(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 500, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(500))
	e.clock.Advance(16 * time.Minute)
	overdue, err := e.store().Overdue(t.Context(), e.clock.Now(), nil, 1000)
	e.must(err)
	var wg sync.WaitGroup
	var expired atomic.Int64
	for range 4 {
		wg.Go(func() {
			for part := range slices.Chunk(overdue, 200) {
				done, err := order.Expire(t.Context(), e.db, nil, part, e.clock.Now())
				if err != nil {
					t.Error(err)
				}
				expired.Add(int64(len(done)))
			}
		})
	}
	wg.Wait()
	if expired.Load() != 500 || e.figures() != (figures{500, 0, 0, 500}) {
		t.Errorf("%d expired, %+v", expired.Load(), e.figures())
	}
	e.conserved()
	if n := e.db.Ent.Order.Query().Where(entorder.ReturnDue(true)).CountX(t.Context()); n != 500 {
		t.Errorf("%d returns due", n)
	}
}

func TestALongTimelineKeepsItsNewestEntries(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.write(e.writer(nil), e.request()).Order
		const many = 60
		for i := range many {
			e.must(e.db.Ent.OrderEvent.Create().SetID(id.New[uuid.UUID]()).SetOrderID(o.ID).SetStatus(orderevent.Status(o.Status)).SetVersion(o.Version).
				SetActor(orderevent.Actor(order.Operator)).SetCode(orderevent.Code(order.CodePaid)).SetNote(fmt.Sprint(i)).SetCreatedAt(e.clock.Now()).Exec(t.Context()))
		}
		got, err := e.store().Timeline(t.Context(), o)
		e.must(err)
		if len(got) != 50 || got[0].Code != "" || got[1].Note != fmt.Sprint(many-49) || got[49].Note != fmt.Sprint(many-1) {
			t.Errorf("%d entries, from %+v to %+v", len(got), got[0], got[len(got)-1])
		}
	})
}

func TestTheTimelineShowsWhatHappened(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.write(e.writer(nil), e.request()).Order
		operator := order.Actor{Kind: order.Operator, User: id.New[id.User]()}
		var want []order.LogEntry
		add := func(entry order.Entry, status order.Status) {
			want = append(want, order.LogEntry{Entry: entry, At: e.clock.Now(), Status: status})
		}
		add(order.Entry{By: order.Actor{Kind: order.Buyer, User: o.User}}, order.PendingPayment)
		for _, step := range []struct {
			to    order.Status
			entry order.Entry
		}{
			{order.Paid, order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid}},
			{order.Refunding, order.Entry{By: order.Actor{Kind: order.Buyer, User: o.User}, Code: order.CodeRefundAsked, Note: "too small"}},
			{order.Refunded, order.Entry{By: operator, Code: order.CodeRefunded, Note: "as you wish"}},
		} {
			e.clock.Advance(time.Minute)
			var err error
			o, err = e.try(order.Move{Order: o, To: step.to, At: e.clock.Now(), Entry: step.entry})
			e.must(err)
			add(step.entry, step.to)
		}
		got, err := e.store().Timeline(t.Context(), o)
		e.must(err)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestActionsFollowStateAndClock(t *testing.T) {
	t.Parallel()
	deadline := opening.Add(time.Minute)
	for _, c := range []struct {
		status order.Status
		at     time.Time
		want   []order.Action
	}{
		{order.PendingPayment, opening, []order.Action{order.ActionPay, order.ActionCancel}},
		{order.PendingPayment, deadline, []order.Action{order.ActionCancel}},
		{order.Paid, opening, []order.Action{order.ActionRefund}},
		{order.Cancelled, opening, nil}, {order.Expired, opening, nil}, {order.Refunding, opening, nil}, {order.Refunded, opening, nil},
	} {
		o := order.Order{Status: c.status, PaymentDeadline: &deadline}
		if got := o.Actions(c.at); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.status, got, c.want)
		}
	}
}

func TestPublishingOrdersMayFail(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 1, limit: 1})
	o := e.write(e.writer(nil), e.request()).Order
	paid := e.move(o, order.Paid)
	var heard []*order.Order
	e.afterCommit(order.AfterCommitConfig{Cache: e.cache, Orders: func(_ context.Context, orders []*order.Order) error {
		heard = append(heard, orders...)
		return errors.New("the bus is away")
	}}).Publish(t.Context(), paid)
	if len(heard) != 1 || heard[0].Status != order.Paid {
		t.Errorf("heard %+v", heard)
	}
	e.must(e.db.Close()) // from here on only the copy exists
	if got, err := e.store().Order(t.Context(), o.ID); err != nil || got.Status != order.Paid {
		t.Errorf("copy %+v, %v", got, err)
	}
	away := testenv.RedisServer(t)
	conn := away.Conn()
	away.Kill()
	e.afterCommit(order.AfterCommitConfig{Cache: order.NewCache(conn, e.keys.Tasks, e.clock)}).Publish(t.Context(), paid)
}

// The buyer's payment was declined after the order was read: its version grew, its status did
// not. Expired with the old version, it would be published with a revision that its buyer
// has already seen.
func TestAnOrderThatChangedSinceItWasReadIsNotExpired(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.write(e.writer(nil), e.request()).Order
		var noted *order.Order
		e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) (err error) {
			noted, err = order.Note(ctx, tx, o, e.clock.Now(), order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaymentDeclined})
			return err
		}))
		if _, err := e.try(order.Move{Order: o, To: order.Paid, At: e.clock.Now(), Entry: entryOf(order.Paid)}); !errors.Is(err, order.ErrMoved) {
			t.Errorf("paid as it was read before: %v", err)
		}
		expired, err := order.Expire(t.Context(), e.db, nil, []*order.Order{o}, e.clock.Now())
		if err != nil || len(expired) != 0 {
			t.Errorf("as it was read before: %+v, %v", expired, err)
		}
		expired, err = order.Expire(t.Context(), e.db, nil, []*order.Order{noted}, e.clock.Now())
		if err != nil || len(expired) != 1 {
			t.Fatalf("as it is: %+v, %v", expired, err)
		}
		if stored, err := e.store().Reload(t.Context(), o.ID); err != nil || stored.Version != expired[0].Version || stored.Version != noted.Version+1 {
			t.Errorf("published version %d, stored %+v, %v", expired[0].Version, stored, err)
		}
		e.conserved()
	})
}
