package order_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func TestARequestBecomesAnOrder(t *testing.T) {
	onBoth(t, stock{units: 10, limit: 2}, func(t *testing.T, e *env) {
		r := e.requestOf(id.New[id.User](), 2)
		r.UnitPriceMinor = 1 // the price in the database counts, not the one in the message
		out := e.write(e.writer(nil), r)
		o := out.Order
		if out.Replayed || out.Task.Status != order.Succeeded || out.Task.OrderID != id.Order(r.Task) || out.Task.Revision != 3 {
			t.Errorf("outcome %+v", out)
		}
		if o.ID != id.Order(r.Task) || o.User != r.User || o.TotalMinor() != 2*1999 || o.Currency != "EUR" || o.Version != 1 ||
			o.Status != order.PendingPayment || !o.PaymentDeadline.Equal(opening.Add(900*time.Second)) {
			t.Errorf("order %+v", o)
		}
		if f := e.figures(); f != (figures{8, 2, 0, 10}) {
			t.Errorf("stock %+v", f)
		}
		stored, err := e.store().Reload(t.Context(), id.Order(r.Task))
		e.must(err)
		if *stored.PaymentDeadline != *o.PaymentDeadline || stored.CreatedAt != o.CreatedAt || stored.Number != o.Number {
			t.Errorf("stored %+v, returned %+v", stored, o)
		}
		e.conserved()
	})
}

func TestARequestWrittenAgainIsRecognised(t *testing.T) {
	onBoth(t, stock{units: 10, limit: 1}, func(t *testing.T, e *env) {
		r := e.request()
		first := e.write(e.writer(nil), r)
		again := e.write(e.writer(nil), r)
		if !again.Replayed || again.Order.Number != first.Order.Number || again.Task.Status != order.Succeeded {
			t.Errorf("again %+v", again)
		}
		if f := e.figures(); f.held != 1 {
			t.Errorf("stock %+v", f)
		}
		e.conserved()
	})
}

// Each message is delivered five times, in any order, to three writers concurrently.
func TestRandomRedeliveriesMakeOneOrderEach(t *testing.T) {
	onBoth(t, stock{units: 300, limit: 1}, func(t *testing.T, e *env) {
		const buyers, times = 250, 5
		var deliveries []order.Request
		for _, r := range e.requests(buyers) {
			for range times {
				deliveries = append(deliveries, r)
			}
		}
		rand.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		writers := []*order.Writer{e.writer(nil), e.writer(nil), e.writer(nil)}
		stop := e.watch()
		fresh := e.deliver(writers, deliveries)
		if looks := stop(); looks == 0 {
			t.Error("the stock was never checked")
		}
		if fresh != buyers || e.orders() != buyers || e.figures() != (figures{50, 250, 0, 300}) {
			t.Errorf("%d fresh, %d orders, %+v", fresh, e.orders(), e.figures())
		}
		e.conserved()
	})
}

// deliver writes all requests concurrently, repeating each until it succeeds, as
// redelivery does. It returns how many ended as an order for the first time.
func (e *env) deliver(writers []*order.Writer, requests []order.Request) int {
	e.t.Helper()
	var g errgroup.Group
	var mu sync.Mutex
	fresh := map[id.Task]bool{}
	for i, r := range requests {
		g.Go(func() error {
			for range 20 {
				end := writers[i%len(writers)].Write(e.t.Context(), r)[0]
				if end.Err != nil {
					continue
				}
				if !end.Replayed && end.Order != nil {
					mu.Lock()
					fresh[r.Task] = true
					mu.Unlock()
				}
				return nil
			}
			return errors.New("twenty tries failed")
		})
	}
	e.must(g.Wait())
	return len(fresh)
}

func TestOneUserGetsOneLiveOrder(t *testing.T) {
	onBoth(t, stock{units: 100, limit: 1}, func(t *testing.T, e *env) {
		user := id.New[id.User]()
		requests := make([]order.Request, 50)
		for i := range requests {
			requests[i] = e.requestOf(user, 1)
		}
		if n := e.deliver([]*order.Writer{e.writer(nil), e.writer(nil)}, requests); n != 1 {
			t.Errorf("%d orders", n)
		}
		if e.orders() != 1 || e.failures() != 49 || e.figures().held != 1 {
			t.Errorf("%d orders, %d failures, %+v", e.orders(), e.failures(), e.figures())
		}
		e.conserved()
		for _, row := range e.db.Ent.OrderFailure.Query().AllX(t.Context()) {
			if row.Code != string(fault.AlreadyOrdered) || row.Released {
				t.Fatalf("failure %+v", row)
			}
		}
	})
}

// Redis reserved 30 units; Postgres has 20.
func TestExactlyAsManyAsFitBecomeOrders(t *testing.T) {
	onBoth(t, stock{units: 20, limit: 1}, func(t *testing.T, e *env) {
		requests := e.requests(30)
		for i := range requests {
			requests[i].SubmittedAtMs += int64(i)
		}
		if n := e.deliver([]*order.Writer{e.writer(nil), e.writer(nil)}, requests); n != 20 {
			t.Errorf("%d orders", n)
		}
		if e.figures() != (figures{0, 20, 0, 20}) || e.failures() != 10 {
			t.Errorf("%+v, %d failures", e.figures(), e.failures())
		}
		for _, row := range e.db.Ent.OrderFailure.Query().AllX(t.Context()) {
			if row.Code != string(fault.SoldOut) || row.Released {
				t.Fatalf("failure %+v", row)
			}
		}
		e.conserved()
	})
}

func TestTheOldestReservationsWinWhenTooFewUnitsAreLeft(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 3}, func(t *testing.T, e *env) {
		// In one batch, newest first: 1, 1, 3, 3 units. Of 5 units the oldest request
		// takes 3, the next 3 do not fit, and the two single units do.
		quantities := []int{1, 1, 3, 3}
		requests := make([]order.Request, len(quantities))
		for i, n := range quantities {
			requests[i] = e.requestOf(id.New[id.User](), n)
			requests[i].SubmittedAtMs += int64(len(quantities) - i)
		}
		ends := e.inOneBatch(requests)
		want := []order.TaskStatus{order.Succeeded, order.Succeeded, order.Failed, order.Succeeded}
		for i, r := range requests {
			if got := ends[r.Task].Task.Status; got != want[i] {
				t.Errorf("request %d of %d units: %s, want %s", i, r.Quantity, got, want[i])
			}
		}
		if e.figures() != (figures{0, 5, 0, 5}) {
			t.Errorf("%+v", e.figures())
		}
		e.conserved()
	})
}

// inOneBatch writes requests in one batch.
func (e *env) inOneBatch(requests []order.Request) map[id.Task]order.Result {
	e.t.Helper()
	ends := map[id.Task]order.Result{}
	for i, end := range e.writer(nil).Write(e.t.Context(), requests...) {
		e.must(end.Err)
		ends[requests[i].Task] = end
	}
	return ends
}

func TestRequestsThatCanNeverFitAreRecordedAsFailed(t *testing.T) {
	onBoth(t, stock{units: 10, limit: 2}, func(t *testing.T, e *env) {
		elsewhere, _ := e.addSale(stock{units: 1, limit: 1})
		unknownItem, wrongSale, tooMany := e.request(), e.request(), e.requestOf(id.New[id.User](), 3)
		unknownItem.Item = id.New[id.Item]()
		wrongSale.Sale = elsewhere
		good := e.request()
		want := map[id.Task]fault.Reason{
			unknownItem.Task: fault.Unknown, wrongSale.Task: fault.Unknown, tooMany.Task: fault.PurchaseLimitReached, good.Task: "",
		}
		requests := []order.Request{unknownItem, wrongSale, tooMany, good}
		for task, end := range e.inOneBatch(requests) {
			if end.Task.Failure != want[task] || end.Task.Revision != 3 {
				t.Errorf("got %+v, want failure %q", end.Task, want[task])
			}
		}
		for _, r := range requests { // the same requests again
			if end := e.write(e.writer(nil), r); end.Task.Failure != want[r.Task] || !end.Replayed {
				t.Errorf("again %+v, want failure %q", end, want[r.Task])
			}
		}
		if e.figures().held != 1 || e.failures() != 3 {
			t.Errorf("%+v, %d failures", e.figures(), e.failures())
		}
		e.conserved()
	})
}

func TestATaskThatFailedStaysFailedWhenStockComesBack(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		w := e.writer(nil)
		first, late := e.request(), e.request()
		winner := e.write(w, first).Order
		if out := e.write(w, late); out.Task.Failure != fault.SoldOut {
			t.Fatalf("late %+v", out)
		}
		e.move(winner, order.Cancelled)
		if out := e.write(w, late); out.Task.Status != order.Failed || !out.Replayed {
			t.Errorf("late again %+v", out)
		}
		if e.figures() != (figures{1, 0, 0, 1}) {
			t.Errorf("%+v", e.figures())
		}
		e.conserved()
	})
}

func TestACancelledBuyerMayBuyAgain(t *testing.T) {
	onBoth(t, stock{units: 2, limit: 1}, func(t *testing.T, e *env) {
		w, user := e.writer(nil), id.New[id.User]()
		e.move(e.write(w, e.requestOf(user, 1)).Order, order.Cancelled)
		if out := e.write(w, e.requestOf(user, 1)); out.Task.Status != order.Succeeded {
			t.Errorf("second try %+v", out)
		}
		e.conserved()
	})
}

// move moves an order directly, without a use case.
func (e *env) move(o *order.Order, to order.Status) *order.Order {
	e.t.Helper()
	var moved *order.Order
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		var err error
		moved, err = order.Apply(ctx, tx, order.Move{Order: o, To: to, At: e.clock.Now(), Entry: entryOf(to)})
		return err
	}))
	return moved
}

func TestATakenNumberIsReplacedByALongerOne(t *testing.T) {
	onBoth(t, stock{units: 10, limit: 1}, func(t *testing.T, e *env) {
		w, wanted := e.writer(nil), e.request()
		number := order.Number(id.Order(wanted.Task), e.clock.Now(), 0)
		squatter := e.write(w, e.request()).Order
		e.must(e.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE orders SET number = $1 WHERE id = $2`, number, squatter.ID)
			return err
		}))
		out := e.write(w, wanted)
		if out.Order == nil || out.Order.Number != order.Number(id.Order(wanted.Task), e.clock.Now(), 1) {
			t.Fatalf("order %+v", out.Order)
		}
		if n := e.db.Ent.Order.Query().Where(entorder.Number(out.Order.Number)).CountX(t.Context()); n != 1 {
			t.Errorf("%d rows with the new number", n)
		}
		e.conserved()
	})
}

func TestSeveralItemsInOneBatch(t *testing.T) {
	onBoth(t, stock{units: 30, limit: 1}, func(t *testing.T, e *env) {
		items := []id.Item{e.item, e.addItem(e.sale, 30, 1), e.addItem(e.sale, 30, 2)}
		var requests []order.Request
		for _, item := range items {
			for range 30 {
				r := e.request()
				r.Item = item
				requests = append(requests, r)
			}
		}
		rand.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		if n := e.deliver([]*order.Writer{e.writer(nil), e.writer(nil)}, requests); n != 90 {
			t.Errorf("%d orders", n)
		}
		for _, item := range items {
			e.item = item
			if e.figures() != (figures{0, 30, 0, 30}) {
				t.Errorf("item %s: %+v", item, e.figures())
			}
		}
		e.conserved()
	})
}

func TestAClosedWriterRefusesAndFinishesWhatItHas(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	gate, entered := make(chan struct{}), make(chan struct{}, 1)
	w := e.writer(func(context.Context, []order.Task) error {
		entered <- struct{}{}
		<-gate
		return nil
	})
	var g errgroup.Group
	g.Go(func() error { return w.Write(t.Context(), e.request())[0].Err })
	<-entered
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := w.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close with an order under way: %v", err)
	}
	if end := w.Write(t.Context(), e.request())[0]; !errors.Is(end.Err, batch.ErrClosed) {
		t.Errorf("write after close: %v", end.Err)
	}
	close(gate)
	e.must(w.Close(t.Context()))
	e.must(g.Wait())
	if e.orders() != 1 {
		t.Errorf("%d orders", e.orders())
	}
}
