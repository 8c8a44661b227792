package salestats_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func (e *env) feed() *salestats.Feed {
	return salestats.NewFeed(salestats.FeedConfig{Client: e.conn.Cmd, Keys: e.keys, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler)})
}

// follow follows the log; each call of the returned function returns the next event.
func (e *env) follow(f *salestats.Feed, after *string) func() salestats.FeedEvent {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	ch, err := f.Follow(ctx, e.sale, after)
	e.must(err)
	e.t.Cleanup(func() {
		cancel()
		for range ch {
		}
	})
	return func() salestats.FeedEvent {
		e.t.Helper()
		select {
		case ev := <-ch:
			return ev.Value
		case <-time.After(testenv.Wait):
			e.t.Fatal("no event")
		}
		return salestats.FeedEvent{}
	}
}

func (e *env) act(f *salestats.Feed, note string) {
	actor := id.New[id.User]()
	f.Act(e.t.Context(), sale.LogLine{
		Sale: e.sale, Actor: &actor, Act: sale.ActPause, From: sale.Live, To: sale.Paused, Note: note, At: e.clock.Now(),
	})
}

func (e *env) wantLine(ev salestats.FeedEvent, note string) {
	e.t.Helper()
	if ev.Kind != salestats.Update || ev.Line == nil || ev.Line.Note != note || ev.Line.Act != sale.ActPause || ev.Cursor == "" {
		e.t.Errorf("event %+v, want the line %q", ev, note)
	}
}

func TestAFollowerSeesNewLinesAndGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		f := e.feed()
		e.act(f, "before")
		next := e.follow(f, nil)
		first := next()
		if first.Kind != salestats.Snapshot || first.Line != nil {
			t.Fatalf("the first event: %+v", first)
		}
		e.act(f, "one")
		e.act(f, "two")
		one := next()
		e.wantLine(one, "one")
		e.wantLine(next(), "two")
		e.act(f, "three")
		again := e.follow(f, &one.Cursor)
		if ev := again(); ev.Kind != salestats.Snapshot || ev.Cursor != one.Cursor {
			t.Errorf("the first event of a follower that goes on: %+v", ev)
		}
		e.wantLine(again(), "two")
		e.wantLine(again(), "three")
		whole := e.follow(f, new("0-0"))
		whole()
		e.wantLine(whole(), "before")
	})
}

func TestAFollowerLearnsOfAGap(t *testing.T) {
	t.Parallel()
	e := setup(t)
	f := e.feed()
	e.act(f, "one")
	next := e.follow(f, new("0-0"))
	next()
	one := next()
	key := e.keys.Feed(id.ShardOf(e.sale), e.sale)
	e.must(e.conn.Cmd.XTrimMaxLen(t.Context(), key, 0).Err())
	e.act(f, "two")
	late := e.follow(f, &one.Cursor)
	late()
	if ev := late(); ev.Kind != salestats.Gap || ev.Line != nil {
		t.Errorf("history was trimmed: %+v", ev)
	}
	e.wantLine(late(), "two")

	e.must(e.conn.Cmd.Del(t.Context(), key).Err())
	lost := e.follow(f, &one.Cursor)
	lost()
	if ev := lost(); ev.Kind != salestats.Gap {
		t.Errorf("the log is gone: %+v", ev)
	}
	e.act(f, "three")
	e.wantLine(lost(), "three")
}

func TestLinesSayWhatMovedInTheOrderInWhichItDid(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		f := e.feed()
		next := e.follow(f, new("0-0"))
		next()
		one := id.New[id.Order]()
		public := one.Public()
		f.Act(t.Context(), sale.LogLine{Sale: e.sale, Act: sale.ActAdjust, To: sale.Live, Details: `{"item":"itm_x","units":-13}`})
		f.Act(t.Context(), sale.LogLine{Sale: e.sale, Act: sale.ActVoid, To: sale.Live, Details: `{"order":"` + public + `","units":2}`})
		if ev := next(); ev.Line.Units != -13 || ev.Line.Order != nil {
			t.Errorf("a change of stock: %+v", ev.Line)
		}
		if ev := next(); ev.Line.Order == nil || *ev.Line.Order != one || ev.Line.Units != 0 {
			t.Errorf("a void: %+v", ev.Line)
		}
		moves := []order.Status{order.Paid, order.Refunding, order.Refunded, order.Expired, order.Cancelled}
		for _, status := range moves {
			f.Moved(&order.Order{ID: one, Sale: e.sale, Status: status, UpdatedAt: e.clock.Now()})
		}
		f.Flush(t.Context())
		for _, status := range moves {
			if ev := next(); ev.Line.Status != status {
				t.Errorf("a line of %s, want %s", ev.Line.Status, status)
			}
		}
	})
}

func TestALogIsTrimmedAndABeginnerLearnsIt(t *testing.T) {
	t.Parallel()
	e := setup(t)
	f := e.feed()
	key := e.keys.Feed(id.ShardOf(e.sale), e.sale)
	_, err := e.conn.Cmd.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 6000 {
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: []any{"line", fmt.Sprintf(`{"kind":"ACT","act":"PAUSE","note":"%d"}`, i)}})
		}
		return nil
	})
	e.must(err)
	e.act(f, "last")
	if n := e.conn.Cmd.XLen(t.Context(), key).Val(); n > 5200 {
		t.Errorf("%d lines are kept", n)
	}
	next := e.follow(f, new("0-0"))
	next()
	if ev := next(); ev.Kind != salestats.Gap {
		t.Errorf("a beginner: %+v", ev)
	}
	seen := 0
	for {
		ev := next()
		if seen++; ev.Line.Note == "last" {
			break
		}
	}
	if n := e.conn.Cmd.XLen(t.Context(), key).Val(); int64(seen) != n {
		t.Errorf("%d lines of %d", seen, n)
	}
}

func TestManyOrdersAreOneLine(t *testing.T) {
	t.Parallel()
	e := setup(t)
	f := e.feed()
	task := func(status order.TaskStatus, failure fault.Reason) order.Task {
		return order.Task{ID: id.New[id.Task](), Sale: e.sale, Status: status, Failure: failure, UpdatedAt: e.clock.Now()}
	}
	single := task(order.Succeeded, "")
	f.Ended([]order.Task{single})
	f.Flush(t.Context())
	tasks := make([]order.Task, 500)
	for i := range tasks {
		tasks[i] = task(order.Succeeded, "")
	}
	f.Ended(tasks)
	f.Flush(t.Context())
	f.Ended([]order.Task{task(order.Failed, "SOLD_OUT"), task(order.Failed, "SOLD_OUT")})
	f.Flush(t.Context())
	paid := &order.Order{ID: id.New[id.Order](), Sale: e.sale, Status: order.Paid, UpdatedAt: e.clock.Now()}
	f.Moved(paid)
	f.Flush(t.Context())
	expired := make([]*order.Order, 300)
	for i := range expired {
		expired[i] = &order.Order{ID: id.New[id.Order](), Sale: e.sale, Status: order.Expired, UpdatedAt: e.clock.Now()}
	}
	f.Moved(expired...)
	f.Flush(t.Context())
	next := e.follow(f, new("0-0"))
	next()
	if l := next().Line; l.Kind != salestats.LineOrders || l.Count != 1 || *l.Order != id.Order(single.ID) {
		t.Errorf("one order: %+v", l)
	}
	if l := next().Line; l.Kind != salestats.LineOrders || l.Count != 500 || l.Order != nil {
		t.Errorf("many orders: %+v", l)
	}
	if l := next().Line; l.Kind != salestats.LineFailed || l.Count != 2 || l.Reason != "SOLD_OUT" {
		t.Errorf("failures: %+v", l)
	}
	if l := next().Line; l.Kind != salestats.LineMoved || *l.Order != paid.ID || l.Status != order.Paid {
		t.Errorf("an order that moved: %+v", l)
	}
	if l := next().Line; l.Count != 300 || l.Order != nil || l.Status != order.Expired {
		t.Errorf("many orders that moved: %+v", l)
	}
}

func TestAMalformedCursorIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for _, cursor := range []string{"", "x", "1", "1-", "1-1-1", "-", "+", "9999999999999999-0"} {
		if _, err := e.feed().Follow(t.Context(), e.sale, &cursor); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}
