package order_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

var silent = slog.New(slog.DiscardHandler)

// given returns all reservations immediately.
func given(context.Context, []order.Reservation) ([]id.Item, error) { return nil, nil }

func TestAReturnIsMadeAgainUntilItIsNoted(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.move(e.write(e.writer(nil), e.request()).Order, order.Cancelled)
		var given []id.Task
		away := true
		r := order.OrderReturns(e.db, func(_ context.Context, reservations []order.Reservation) ([]id.Item, error) {
			for _, c := range reservations {
				given = append(given, c.Name)
			}
			if away {
				return nil, errors.New("redis is away")
			}
			return nil, nil
		}, e.clock, silent)
		if _, err := r.Step(t.Context()); err == nil {
			t.Error("a failing return is no error")
		}
		away = false
		for i, want := range []map[string]int{{"orders": 1, "units": 1}, nil} {
			got, err := r.Step(t.Context())
			if err != nil || got["orders"] != want["orders"] || got["units"] != want["units"] {
				t.Errorf("step %d: %v, %v, want %v", i, got, err, want)
			}
		}
		if len(given) != 2 || given[0] != id.Task(o.ID) || given[1] != id.Task(o.ID) {
			t.Errorf("given %v", given)
		}
	})
}

func TestFailedTasksAreReleasedAndThenMarked(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		requests := e.requests(12)
		e.deliver([]*order.Writer{e.writer(nil)}, requests)
		if e.failures() != 7 {
			t.Fatalf("%d failures", e.failures())
		}
		users := map[id.Task]id.User{} // by task
		for _, r := range requests {
			users[r.Task] = r.User
		}
		down := true
		released := map[id.Task]int{}
		r := order.TaskReturns(e.db, func(_ context.Context, reservations []order.Reservation) ([]id.Item, error) {
			for _, c := range reservations {
				if want := (order.Reservation{Name: c.Name, Order: id.Order(c.Name), Sale: e.sale, Item: e.item, User: users[c.Name], Quantity: 1, Oversold: true}); c != want {
					t.Errorf("reservation %+v, want %+v", c, want)
				}
				released[c.Name]++
			}
			if down {
				return nil, errors.New("redis is away")
			}
			return nil, nil
		}, silent)
		if _, err := r.Step(t.Context()); err == nil {
			t.Error("a failing release is no error")
		}
		down = false
		if counts, err := r.Step(t.Context()); err != nil || counts["tasks"] != 7 || counts["units"] != 7 {
			t.Errorf("second step %v, %v", counts, err)
		}
		if counts, err := r.Step(t.Context()); err != nil || len(counts) != 0 {
			t.Errorf("third step %v, %v", counts, err)
		}
		if len(released) != 7 {
			t.Errorf("%d released", len(released))
		}
		for task, n := range released {
			if n != 2 {
				t.Errorf("task %s was offered %d times, want 2", task, n)
			}
		}
	})
}

func TestLoopsOfManyProcessesMarkEachFailureOnce(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 1, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(51))
	var mu sync.Mutex
	var wg sync.WaitGroup
	marked := 0
	for range 4 {
		r := order.TaskReturns(e.db, given, silent)
		wg.Go(func() {
			counts, err := r.Step(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			marked += counts["tasks"]
		})
	}
	wg.Wait()
	if marked != 50 {
		t.Errorf("%d marked", marked)
	}
}

// A slow returner must not mark the return of a later reservation: while it was
// working, the order reacquired its units under another name and ended again.
func TestASlowReturnerDoesNotNoteAReturnThatItDidNotMake(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		o := e.move(e.write(e.writer(nil), e.request()).Order, order.Expired)
		quick := order.OrderReturns(e.db, given, e.clock, silent)
		slow := order.OrderReturns(e.db, func(ctx context.Context, reservations []order.Reservation) ([]id.Item, error) {
			if _, err := quick.Step(ctx); err != nil {
				return nil, err
			}
			reserved := id.New[id.Task]()
			paid, err := e.try(order.Move{Order: o, To: order.Paid, NewReservation: &reserved, At: e.clock.Now(), Entry: entryOf(order.Paid)})
			if err != nil {
				return nil, err
			}
			e.move(e.move(paid, order.Refunding), order.Refunded)
			return nil, nil
		}, e.clock, silent)
		if _, err := slow.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := e.db.Ent.Order.Query().Where(entorder.ReturnDue(true)).CountX(t.Context()); n != 1 {
			t.Errorf("%d returns due: the second one is lost", n)
		}
	})
}

// many is more than one batch of reservations.
const many = 501

func TestReturnsToAGateThatIsBeingBuiltWaitAndHoldUpNoOther(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: many, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(many))
	overdue, err := e.store().Overdue(t.Context(), e.clock.Now().Add(time.Hour), nil, many)
	e.must(err)
	_, err = order.Expire(t.Context(), e.db, nil, overdue, e.clock.Now())
	e.must(err)
	built := e.item
	e.item = e.addItem(e.sale, 1, 1)
	e.move(e.write(e.writer(nil), e.request()).Order, order.Cancelled)
	e.holdsUpNoOther(func(db *postgres.DB, give order.ReturnReservations, log *slog.Logger) periodic.Loop {
		return order.OrderReturns(db, give, e.clock, log)
	}, built, "orders")
}

func TestReleasesAtAGateThatIsBeingBuiltWaitAndHoldUpNoOther(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 0, limit: 1})
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(many))
	built := e.item
	e.item = e.addItem(e.sale, 0, 1)
	e.deliver([]*order.Writer{e.writer(nil)}, e.requests(1))
	e.holdsUpNoOther(order.TaskReturns, built, "tasks")
}

// holdsUpNoOther checks that a reservation of one item is returned, however many
// reservations of another item wait for their gate.
func (e *env) holdsUpNoOther(loop func(*postgres.DB, order.ReturnReservations, *slog.Logger) periodic.Loop, built id.Item, what string) {
	e.t.Helper()
	waits := true
	r := loop(e.db, func(context.Context, []order.Reservation) ([]id.Item, error) {
		if waits {
			return []id.Item{built}, nil
		}
		return nil, nil
	}, silent)
	for i, want := range []int{1, 0, 500, 1} {
		waits = i < 2
		if counts, err := r.Step(e.t.Context()); err != nil || counts[what] != want || counts["units"] != want {
			e.t.Errorf("step %d: %v %v, want %d %s", i, counts, err, want, what)
		}
	}
}

// Only the unit of an item that is sold out is worth an accomplice's timing. It returns once its moment
// has come by the clock that chose the moment.
func TestUnitsWaitForAMomentOnlyWhenAllAreTaken(t *testing.T) {
	onBoth(t, stock{units: 3, limit: 1}, func(t *testing.T, e *env) {
		orders := []*order.Order{e.write(e.writer(nil), e.request()).Order, e.write(e.writer(nil), e.request()).Order}
		cancel := func(o *order.Order) (waits bool) {
			e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
				_, err := order.Apply(ctx, tx, order.Move{Order: o, To: order.Cancelled, At: e.clock.Now(), ReturnAfter: time.Hour, Entry: entryOf(order.Cancelled)})
				return err
			}))
			return e.db.Ent.Order.GetX(t.Context(), o.ID).ReturnAt != nil
		}
		if cancel(orders[0]) {
			t.Error("a unit waits although another is on sale")
		}
		last := []*order.Order{orders[1], e.write(e.writer(nil), e.request()).Order, e.write(e.writer(nil), e.request()).Order}
		for i, o := range last {
			if !cancel(o) {
				t.Errorf("unit %d of a sold-out item returns at once", i+1)
			}
		}
		loop := order.OrderReturns(e.db, given, e.clock, silent)
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {time.Hour - time.Second, 0}, {time.Second, 3}} {
			e.clock.Advance(step.after)
			if counts, err := loop.Step(t.Context()); err != nil || counts["orders"] != step.want {
				t.Errorf("after %s: %v returned, %v, want %d", step.after, counts, err, step.want)
			}
		}
	})
}

// A row of an order names one refund at a time. If a second refund moved before the units of the first were back,
// the loop would return both, also units that left the sale.
func TestARefundMovesOnceTheUnitsOfTheOneBeforeAreBack(t *testing.T) {
	onBoth(t, stock{units: 3, limit: 3}, func(t *testing.T, e *env) {
		paid := e.move(e.write(e.writer(nil), e.requestOf(id.New[id.User](), 3)).Order, order.Paid)
		refund := func(o *order.Order, keep bool) (*order.Order, error) {
			return e.try(order.Move{
				Order: o, To: order.Paid, At: e.clock.Now(), KeepUnits: keep,
				Part: &order.Part{Refund: id.New[id.Refund](), Units: 1}, Entry: entryOf(order.Refunded),
			})
		}
		var returned []order.Reservation
		loop := order.OrderReturns(e.db, func(_ context.Context, reservations []order.Reservation) ([]id.Item, error) {
			returned = append(returned, reservations...)
			return nil, nil
		}, e.clock, silent)
		once, err := refund(e.move(paid, order.Refunding), true)
		e.must(err)
		again := e.move(once, order.Refunding)
		if _, err := refund(again, false); !errors.Is(err, order.ErrMoved) {
			t.Fatalf("the second refund moves while the unit of the first is due: %v", err)
		}
		_, err = loop.Step(t.Context())
		e.must(err)
		_, err = refund(again, false)
		e.must(err)
		_, err = loop.Step(t.Context())
		e.must(err)
		for i, want := range []order.Reservation{{Quantity: 1, Keep: 2, Withdrawn: true}, {Quantity: 1, Keep: 1}} {
			if got := returned[i]; got.Quantity != want.Quantity || got.Keep != want.Keep || got.Withdrawn != want.Withdrawn {
				t.Errorf("return %d: %+v, want %+v", i, got, want)
			}
		}
		if got, want := e.figures(), (figures{available: 1, sold: 1, total: 2}); got != want {
			t.Errorf("stock %+v, want %+v", got, want)
		}
		e.conserved()
	})
}
