package order_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/buy/order"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// submit writes the record that the reserve script writes.
func (e *env) submit(r order.Request) order.Task {
	e.t.Helper()
	at := time.UnixMilli(r.SubmittedAtMs).UTC()
	task := order.Task{
		ID: r.Task, User: r.User, Sale: r.Sale, Item: r.Item, Quantity: r.Quantity,
		Status: order.Submitted, Revision: 1, CreatedAt: at, UpdatedAt: at,
	}
	e.must(e.cache.Put(e.t.Context(), []order.Task{task}, nil))
	return task
}

func (e *env) task(s *order.Store, taskID id.Task) *order.Task {
	e.t.Helper()
	task, err := s.Task(e.t.Context(), taskID, id.User{})
	e.must(err)
	return task
}

func TestATaskGoesFromSubmittedToItsEnd(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		s, w := e.store(), e.writer(nil)
		won, lost := e.request(), e.request()
		submitted := e.submit(won)
		if got := e.task(s, won.Task); cmp.Diff(&submitted, got) != "" {
			t.Errorf("before %+v", got)
		}
		e.write(w, won)
		e.write(w, lost)
		if got := e.task(s, won.Task); got.Status != order.Succeeded || got.OrderID != id.Order(won.Task) || got.Revision != 3 {
			t.Errorf("won %+v", got)
		}
		if got := e.task(s, lost.Task); got.Status != order.Failed || got.Failure != fault.SoldOut || !got.OrderID.IsZero() {
			t.Errorf("lost %+v", got)
		}
		if got := e.task(s, id.NewTask(3)); got != nil {
			t.Errorf("a task that never was: %+v", got)
		}
		if got := e.task(s, id.Task(uuid.Max)); got != nil {
			t.Errorf("a task of no shard: %+v", got)
		}
	})
}

func TestATaskThatNoWorkerEndsIsDelayed(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 1, limit: 1})
	s, r := e.store(), e.request()
	submitted := e.submit(r)
	e.clock.Advance(order.DelayedAfter - time.Second)
	if got := e.task(s, r.Task); got.Delayed || got.Revision != 1 {
		t.Errorf("in time: %+v", got)
	}
	e.clock.Advance(time.Second)
	if got := e.task(s, r.Task); !got.Delayed || got.Revision != 2 || !got.UpdatedAt.Equal(submitted.CreatedAt.Add(order.DelayedAfter)) {
		t.Errorf("too late: %+v", got)
	}
	e.write(e.writer(nil), r)
	if got := e.task(s, r.Task); got.Status != order.Succeeded || got.Delayed || got.Revision != 3 {
		t.Errorf("written: %+v", got)
	}
}

// A task must not stay "queueing" when the update of Redis about its end was lost.
func TestATaskWhoseNoteWasLostIsFoundInPostgres(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	s, r := e.store(), e.request()
	e.write(order.NewWriter(order.WriterConfig{DB: e.db, Clock: e.clock, Timeout: testenv.Wait}), r) // without a cache, Redis is not updated
	e.submit(r)
	if got := e.task(s, r.Task); got.Status != order.Submitted {
		t.Errorf("at once %+v", got)
	}
	e.clock.Advance(3 * time.Second)
	if got := e.task(s, r.Task); got.Status != order.Succeeded {
		t.Errorf("after three seconds %+v", got)
	}
}

// Late copies of a submitted task and of a fresh order, whose record is packed, hide neither
// the order nor its payment.
func TestARecordNeverGoesBack(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	r := e.request()
	out := e.write(e.writer(nil), r)
	paid := e.move(out.Order, order.Paid)
	e.must(e.cache.Put(t.Context(), nil, []*order.Order{paid}))
	e.submit(r)                                                      // late
	e.must(e.cache.Put(t.Context(), nil, []*order.Order{out.Order})) // late
	s := e.store()
	e.must(e.db.Close()) // any query fails from here on: the records answer
	if got := e.task(s, r.Task); got.Status != order.Succeeded {
		t.Errorf("task %+v", got)
	}
	if got, err := s.Order(t.Context(), id.Order(r.Task)); err != nil || got.Status != order.Paid || got.Version != paid.Version {
		t.Errorf("order %+v, %v", got, err)
	}
}

// Two processes copy what they have changed, and the earlier copy arrives last. Both copies
// are JSON, unlike that of a fresh order.
func TestALateCopyDoesNotReplaceANewerOne(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	w := e.writer(nil)
	paid := e.move(e.write(w, e.request()).Order, order.Paid)
	refunding := e.move(paid, order.Refunding)
	failing := e.request()
	failed := w.FailTask(t.Context(), failing, "test")
	e.must(failed.Err)
	submitted := failed.Task
	submitted.Status, submitted.Revision, submitted.Failure = order.Submitted, 1, ""
	e.must(e.cache.Put(t.Context(), nil, []*order.Order{refunding}))
	e.must(e.cache.Put(t.Context(), []order.Task{submitted}, []*order.Order{paid})) // late
	s := e.store()
	e.must(e.db.Close()) // any query fails from here on
	if got, err := s.Order(t.Context(), paid.ID); err != nil || got.Status != order.Refunding || got.Version != refunding.Version {
		t.Errorf("order %+v, %v", got, err)
	}
	if got := e.task(s, failing.Task); got.Status != order.Failed {
		t.Errorf("task %+v", got)
	}
}

func TestLookUpsOfANewOrderDoNotTouchTheDatabase(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	out := e.write(e.writer(nil), e.request())
	s := e.store()
	e.must(e.db.Close()) // any query fails from here on
	got, err := s.Order(t.Context(), out.Order.ID)
	e.must(err)
	if d := cmp.Diff(out.Order, got); d != "" {
		t.Error(d)
	}
	if got := e.task(s, id.Task(out.Order.ID)); got.Status != order.Succeeded {
		t.Errorf("task %+v", got)
	}
}

// A process of the former release copies the orders that it reads as JSON, and pays them.
func TestCopiesOfTheFormerReleaseAreReadBesidePackedOnes(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	s := e.store()
	alone := e.write(order.NewWriter(order.WriterConfig{DB: e.db, Clock: e.clock, Timeout: testenv.Wait}), e.request()).Order // without a cache
	both := e.write(e.writer(nil), e.request()).Order
	paid := e.move(both, order.Paid)
	for _, o := range []*order.Order{alone, paid} {
		e.must(order.PutJSON(t.Context(), e.cache, id.ShardOf(e.sale), o, e.clock.Now()))
	}
	e.must(e.cache.Put(t.Context(), nil, []*order.Order{both})) // late
	e.must(e.db.Close())                                        // any query fails from here on
	for _, want := range []*order.Order{alone, paid} {
		got, err := s.Order(t.Context(), want.ID)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
		if got := e.task(s, id.Task(want.ID)); got.Status != order.Succeeded {
			t.Errorf("task %+v", got)
		}
	}
}

func TestACopyOfAnOrderIsBelievedForThreeSeconds(t *testing.T) {
	onBoth(t, stock{units: 10, limit: 1}, func(t *testing.T, e *env) {
		out := e.write(e.writer(nil), e.request())
		s := e.store()
		e.move(out.Order, order.Paid) // and Redis is not updated
		e.clock.Advance(3 * time.Second)
		got, err := s.Order(t.Context(), out.Order.ID)
		e.must(err)
		if got.Status != order.Paid || got.PaidAt == nil || got.PaymentDeadline != nil || got.Version != 2 {
			t.Errorf("order %+v", got)
		}
	})
}

func TestWithoutRedisLookUpsReadPostgres(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	server := testenv.RedisServer(t)
	conn, err := redisconn.Open(t.Context(), server.URL())
	e.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	e.cache = order.NewCache(conn, e.keys.Tasks, e.clock)
	out := e.write(e.writer(nil), e.request())
	server.Kill()
	s := e.store()
	if got := e.task(s, id.Task(out.Order.ID)); got.Status != order.Succeeded {
		t.Errorf("task %+v", got)
	}
	got, err := s.Order(t.Context(), out.Order.ID)
	if err != nil || got == nil {
		t.Errorf("order %+v, %v", got, err)
	}
	// It may be SUBMITTED: the state is unknown.
	if task, err := s.Task(t.Context(), id.NewTask(1), id.User{}); err == nil {
		t.Errorf("an unknown task without Redis: %+v", task)
	}
	if out := e.write(e.writer(nil), e.request()); out.Order == nil {
		t.Errorf("writing without Redis: %+v", out)
	}
}

// An order lookup by id checks the owner.
func TestAnotherUsersOrderIsNotFound(t *testing.T) {
	t.Parallel()
	e := setup(t, stock{units: 10, limit: 1})
	r := e.request()
	e.write(e.writer(nil), r)
	s := e.store()
	for _, c := range []struct {
		user     id.User
		operator bool
		seen     bool
	}{{r.User, false, true}, {id.New[id.User](), false, false}, {id.New[id.User](), true, true}} {
		got, err := s.OrderFor(t.Context(), id.Order(r.Task), c.user, c.operator)
		if err != nil || (got != nil) != c.seen {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	if got, err := s.OrderFor(t.Context(), id.NewIn[id.Order](2), r.User, true); got != nil || err != nil {
		t.Errorf("no such order: %+v, %v", got, err)
	}
}

func TestPagesCoverAListOnceInBothDirections(t *testing.T) {
	onBoth(t, stock{units: 100, limit: 1}, func(t *testing.T, e *env) {
		user, other := id.New[id.User](), id.New[id.User]()
		w, s := e.writer(nil), e.store()
		var want []id.Task // oldest first
		for i := range 23 {
			if i%3 == 0 {
				e.clock.Advance(time.Microsecond) // some have the same creation time
			}
			r := e.requestOf(user, 1)
			if i%2 == 0 {
				r.Item = e.addItem(e.sale, 1, i+1)
			} else {
				e.sale, e.item = e.addSale(stock{units: 2, limit: 1})
				r = e.requestOf(user, 1)
			}
			e.write(w, r)
			e.write(w, e.requestOf(other, 1))
			want = append(want, r.Task)
		}
		rows := e.db.Ent.Order.Query().Where(entorder.UserID(user)).
			Order(ent.Desc(entorder.FieldCreatedAt, entorder.FieldID)).IDsX(t.Context())
		if len(rows) != len(want) {
			t.Fatalf("%d rows", len(rows))
		}
		for _, backward := range []bool{false, true} {
			if got := e.pages(s, user, backward); !slices.Equal(got, rows) {
				t.Errorf("backward %t:\n%v\nwant\n%v", backward, got, rows)
			}
		}
		n, err := s.Count(t.Context(), order.Filter{User: user})
		if err != nil || n != len(want) {
			t.Errorf("count %d, %v", n, err)
		}
	})
}

// pages reads a user's list in pages of five and returns it newest first.
func (e *env) pages(s *order.Store, user id.User, backward bool) []id.Order {
	e.t.Helper()
	var ids []id.Order
	in := order.ListInput{Limit: 5, Backward: backward}
	for range 10 {
		page, err := s.ListByUser(e.t.Context(), user, in)
		e.must(err)
		var these []id.Order
		for _, o := range page.Orders {
			these = append(these, o.ID)
		}
		if backward {
			ids = append(these, ids...)
		} else {
			ids = append(ids, these...)
		}
		more, turned := page.HasNext, page.HasPrevious
		edge := page.Orders[len(page.Orders)-1]
		if backward {
			more, turned = page.HasPrevious, page.HasNext
			edge = page.Orders[0]
		}
		if first := in.After == nil && in.Before == nil; turned == first {
			e.t.Errorf("page %v: there is something before it: %t", these, turned)
		}
		if !more {
			break
		}
		text := order.CursorOf(edge).String()
		position, err := cursor.Parse(&text, cursor.ParsePosition)
		e.must(err)
		if in.After = position; backward {
			in.After, in.Before = nil, position
		}
	}
	return ids
}

func TestListsAreFilteredBySaleAndState(t *testing.T) {
	onBoth(t, stock{units: 100, limit: 1}, func(t *testing.T, e *env) {
		w, s := e.writer(nil), e.store()
		user := id.New[id.User]()
		cancelled := e.move(e.write(w, e.requestOf(user, 1)).Order, order.Cancelled)
		pending := e.write(w, e.requestOf(user, 1)).Order
		first := e.sale
		e.sale, e.item = e.addSale(stock{units: 1, limit: 1})
		elsewhere := e.write(w, e.requestOf(user, 1)).Order
		for _, c := range []struct {
			filter order.Filter
			want   []*order.Order
		}{
			{order.Filter{User: user}, []*order.Order{cancelled, pending, elsewhere}},
			{order.Filter{User: user, Sale: first}, []*order.Order{cancelled, pending}},
			{order.Filter{Sale: e.sale}, []*order.Order{elsewhere}},
			{order.Filter{User: user, Statuses: []order.Status{order.PendingPayment}}, []*order.Order{pending, elsewhere}},
			{order.Filter{Sale: first, Statuses: []order.Status{order.Cancelled, order.Paid}}, []*order.Order{cancelled}},
			{order.Filter{User: user, Statuses: []order.Status{}}, nil},
			{order.Filter{User: id.New[id.User]()}, nil},
		} {
			page, err := s.List(t.Context(), order.ListInput{Filter: c.filter, Limit: 10})
			e.must(err)
			if len(page.Orders) != len(c.want) || page.HasNext || page.HasPrevious {
				t.Errorf("%+v: %d orders, want %d", c.filter, len(page.Orders), len(c.want))
			}
			for _, o := range c.want {
				if !slices.ContainsFunc(page.Orders, func(got *order.Order) bool { return got.ID == o.ID }) {
					t.Errorf("%+v: order %s is missing", c.filter, o.ID)
				}
			}
		}
		if _, err := s.List(t.Context(), order.ListInput{Limit: 0}); err == nil {
			t.Error("a page of 0")
		}
	})
}

// Published messages carry the ends of a batch's tasks, after the commit.
func TestTheEndsOfABatchArePublishedAfterTheCommit(t *testing.T) {
	onBoth(t, stock{units: 1, limit: 1}, func(t *testing.T, e *env) {
		var heard []order.Task
		w := e.writer(func(ctx context.Context, tasks []order.Task) error {
			for _, task := range tasks {
				stored, err := order.NewStore(order.StoreConfig{DB: e.db, Log: slog.New(slog.DiscardHandler)}).Task(ctx, task.ID, id.User{})
				if err != nil || stored == nil || stored.Status != task.Status {
					t.Errorf("published %+v, stored %+v, %v", task, stored, err)
				}
			}
			heard = append(heard, tasks...)
			return nil
		})
		won, lost := e.request(), e.request()
		e.write(w, won)
		e.write(w, lost)
		e.write(w, won) // redelivered: published again for subscribers that missed the first
		e.must(w.Close(t.Context()))
		var got []order.TaskStatus
		for _, task := range heard {
			got = append(got, task.Status)
		}
		if !slices.Equal(got, []order.TaskStatus{order.Succeeded, order.Failed, order.Succeeded}) {
			t.Errorf("heard %v", got)
		}
		if _, err := json.Marshal(heard); err != nil {
			t.Error(err)
		}
	})
}
