package salestats_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	entorder "seckill/ent/order"
	"seckill/internal/buy/salestats"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func entStatus(s string) entorder.Status { return entorder.Status(s) }

func refusal(why fault.Reason) fault.Refusal { return fault.Refused{Why: why} }

// counts are the results that the clients of a test saw.
type counts struct {
	requests, accepted, replayed, faulted atomic.Int64
	soldOut, limited, path                atomic.Int64
}

// place makes one call of placeOrder and counts the client's result.
func (c *counts) place(r *salestats.Recorder, sale id.Sale) {
	p := salestats.Placement{Sale: sale, Took: time.Duration(rand.IntN(20)+1) * time.Millisecond}
	c.requests.Add(1)
	switch rand.IntN(10) {
	case 0:
		c.replayed.Add(1)
		p.Replayed = true
	case 1:
		c.faulted.Add(1)
		p.Err = errors.New("overload")
	case 2, 3, 4:
		c.soldOut.Add(1)
		p.Err = refusal(fault.SoldOut)
	case 5:
		c.limited.Add(1)
		p.Err = refusal(fault.TooManyTries)
	case 6:
		c.path.Add(1)
		p.Err = refusal(fault.PathInvalid)
	default:
		c.accepted.Add(1)
	}
	r.Placed(p)
}

func (c *counts) compare(t *testing.T, s *salestats.Stats) {
	t.Helper()
	got := map[fault.Reason]int64{}
	for _, r := range s.Refused {
		got[r.Reason] = r.Count
	}
	want := map[fault.Reason]int64{
		fault.SoldOut: c.soldOut.Load(), fault.TooManyTries: c.limited.Load(), fault.PathInvalid: c.path.Load(),
	}
	for reason, n := range want {
		if got[reason] != n {
			t.Errorf("%s: %d, the clients saw %d", reason, got[reason], n)
		}
	}
	if s.Requests != c.requests.Load() || s.Accepted != c.accepted.Load() || s.Replayed != c.replayed.Load() || s.Faulted != c.faulted.Load() {
		t.Errorf("%d requests, %d accepted, %d replayed, %d faulted; the clients saw %d, %d, %d, %d", s.Requests, s.Accepted,
			s.Replayed, s.Faulted, c.requests.Load(), c.accepted.Load(), c.replayed.Load(), c.faulted.Load())
	}
}

func TestTheFiguresOfManyProcessesAreTheSumOfWhatTheClientsSaw(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		var seen counts
		processes := []*salestats.Recorder{e.process(), e.process(), e.process()}
		for range 10 {
			var wg sync.WaitGroup
			for _, r := range processes {
				for range 4 {
					wg.Go(func() {
						for range 100 {
							seen.place(r, e.sale)
						}
					})
				}
				wg.Go(func() { _ = r.Flush(context.Background()) })
			}
			wg.Wait()
			e.clock.Advance(time.Second)
		}
		for _, r := range processes {
			e.flush(r)
			e.flush(r)
		}
		s := e.stats()
		seen.compare(t, s)
		var requests, accepted int64
		for _, p := range s.Series {
			requests, accepted = requests+int64(p.Requests), accepted+int64(p.Accepted)
		}
		if requests != seen.requests.Load() || accepted != seen.accepted.Load() || len(s.Series) != salestats.Window {
			t.Errorf("the series has %d requests and %d accepted in %d points", requests, accepted, len(s.Series))
		}
		if last := s.Series[len(s.Series)-1]; last.Requests != 1200 || s.RequestsPerSecond != 1200 {
			t.Errorf("the last second: %+v, %f", last, s.RequestsPerSecond)
		}
		if s.P50 < 9*time.Millisecond || s.P50 > 14*time.Millisecond || s.P99 < 19*time.Millisecond || s.P99 > 25*time.Millisecond {
			t.Errorf("p50 %s, p99 %s of 1 to 20 ms", s.P50, s.P99)
		}
	})
}

// losing drops every third script call, and the reply of another third.
type losing struct{ n atomic.Int64 }

func (l *losing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	lost := &net.OpError{Op: "read", Err: errors.New("reset")}
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "evalsha") {
			return next(ctx, cmd)
		}
		switch l.n.Add(1) % 3 {
		case 0:
			cmd.SetErr(lost)
			return lost
		case 1:
			_ = next(ctx, cmd)
			cmd.SetErr(lost)
			return lost
		}
		return next(ctx, cmd)
	}
}

func TestCountsAreAddedOnceThoughAnswersAreLost(t *testing.T) {
	t.Parallel()
	e := setup(t)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURL(t))
	e.must(err)
	t.Cleanup(func() { _ = conn.Close() })
	e.must(conn.Script.ScriptLoad(t.Context(), "return 1").Err())
	conn.Script.AddHook(&losing{})
	e.conn = conn
	r := e.process()
	var seen counts
	failed := 0
	for range 200 {
		for range 5 {
			seen.place(r, e.sale)
		}
		if r.Flush(t.Context()) != nil {
			failed++
		}
	}
	for range 6 {
		_ = r.Flush(t.Context())
	}
	if failed < 50 {
		t.Errorf("only %d flushes failed", failed)
	}
	seen.compare(t, e.stats())
}

func TestRunSendsAndLosesNothingAtTheEnd(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.process()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	var seen counts
	for range 1000 {
		seen.place(r, e.sale)
	}
	cancel()
	e.must(<-done)
	seen.compare(t, e.stats())
}

func TestStatsJoinTheGateTheRecordAndTheQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		now := e.clock.Now()
		for i, status := range []string{"PENDING_PAYMENT", "PENDING_PAYMENT", "PAID", "PAID", "PAID", "EXPIRED", "CANCELLED", "REFUNDED", "REFUNDING"} {
			e.order(status, now.Add(-time.Duration(i)*time.Second))
		}
		e.must(e.db.Ent.SaleItem.UpdateOneID(e.item).SetAvailable(94).SetHeld(2).SetSold(4).Exec(t.Context()))
		e.gate(100, 90, 10)
		s := e.stats()
		if u := s.Units; u.Total != 100 || u.Remaining != 90 || u.Held != 2 || u.Sold != 4 || u.InFlight != 4 || !u.Conserved || !u.Loaded ||
			u.Remaining+u.Pending()+u.Sold != u.Total {
			t.Errorf("units %+v", u)
		}
		if s.Orders != 9 || s.Paid != 3 || s.Unpaid != 2 || s.Expired != 1 || s.Cancelled != 1 || s.Refunded != 2 || s.GMV.Decimal() != "147.00" {
			t.Errorf("%+v", s)
		}
		if s.QueueDepth != 3 || s.QueueAge != 2*time.Second {
			t.Errorf("queue of %d, %s old", s.QueueDepth, s.QueueAge)
		}
		orders := 0
		for _, p := range s.Series {
			orders += p.Orders
			if p.Remaining != 90 {
				t.Fatalf("without samples, what is left now stands for all: %+v", p)
			}
		}
		if orders != 8 || s.OrdersPerSecond != 1 { // the ninth is in the current second
			t.Errorf("%d orders in the series, %f per second", orders, s.OrdersPerSecond)
		}
		e.clock.Advance(time.Second)
		e.gate(100, 89, 10)
		if e.stats().Units.Conserved {
			t.Error("a gate that lost a unit counts as conserved")
		}
		if got, err := e.reader.Stats(t.Context(), id.Sale(uuid.New())); got != nil || err != nil {
			t.Errorf("an unknown sale: %+v %v", got, err)
		}
	})
}

func TestTotalsCountTheOrdersPlacedSinceATime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		now := e.clock.Now()
		for _, status := range []string{"PAID", "PAID", "REFUNDING", "REFUNDED", "EXPIRED"} {
			e.order(status, now)
		}
		e.order("PAID", now.Add(-time.Millisecond))
		for since, want := range map[time.Time]struct {
			orders int
			net    string
		}{
			now:                                  {5, "147.00"},
			now.Add(-time.Millisecond):           {6, "196.00"},
			now.In(time.FixedZone("", -11*3600)): {5, "147.00"},
			now.Add(time.Millisecond):            {0, "0.00"},
		} {
			n, net, err := e.reader.Totals(t.Context(), e.sale, "CNY", since)
			e.must(err)
			if n != want.orders || net.Decimal() != want.net || net.Currency != "CNY" {
				t.Errorf("since %s: %d orders, %s %s; want %+v", since, n, net.Decimal(), net.Currency, want)
			}
		}
	})
}

func TestOrdersThatAppearLateAreCountedInTheirSecond(t *testing.T) {
	t.Parallel()
	e := setup(t)
	at := e.clock.Now()
	e.order("PAID", at)
	e.clock.Advance(15 * time.Second)
	e.stats()
	e.order("PAID", at) // committed long after its time, by a worker that retried
	for range 4 {
		e.clock.Advance(4 * time.Second)
		e.stats()
	}
	n := 0
	for _, p := range e.stats().Series {
		if p.At.Equal(at) {
			n = p.Orders
		}
	}
	if n != 2 {
		t.Errorf("%d orders in the second, want 2", n)
	}
}

func TestSamplesFillTheSeries(t *testing.T) {
	t.Parallel()
	e := setup(t)
	var left atomic.Int64
	left.Store(80)
	r := salestats.NewRecorder(salestats.Config{
		Client: e.conn.Script, Keys: e.keys, Clock: e.clock, Timeout: testenv.Wait, Log: slog.New(slog.DiscardHandler),
		Remaining: unitsOf{e.sale, &left},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	began := e.clock.Now()
	series := func(n int64) {
		left.Store(n)
		e.clock.Advance(time.Second)
		testenv.Eventually(t, testenv.Wait, func() bool {
			var values []string
			for _, at := range []int64{began.Unix() / 300, began.Unix()/300 + 1} {
				values = append(values, e.conn.Cmd.HVals(t.Context(), e.keys.Series(id.ShardOf(e.sale), e.sale, at)).Val()...)
			}
			return slices.Contains(values, strconv.FormatInt(n, 10))
		}, "the sample")
	}
	series(70)
	series(60)
	cancel()
	e.must(<-done)
	e.clock.Advance(time.Second)
	s := e.stats()
	tail := s.Series[len(s.Series)-3:]
	if tail[0].Remaining != 70 || tail[1].Remaining != 60 || tail[2].Remaining != 60 {
		t.Errorf("the last seconds: %+v", tail)
	}
}

func TestFiguresAreKeptForGood(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		var seen counts
		r := e.process()
		for range 3 {
			for range 50 {
				seen.place(r, e.sale)
			}
			e.clock.Advance(time.Second)
		}
		e.flush(r)
		e.must(e.reader.Keep(t.Context(), e.sale))
		e.must(e.reader.Keep(t.Context(), e.sale))
		for _, key := range e.conn.Cmd.Keys(t.Context(), e.keys.Prefix+"*").Val() {
			e.must(e.conn.Cmd.Del(t.Context(), key).Err())
		}
		e.must(e.reader.Keep(t.Context(), e.sale)) // nothing to store: the stored figures remain
		seen.compare(t, e.stats())
		kept, err := e.reader.Kept(t.Context(), e.sale)
		if err != nil || kept == nil || len(kept.Series) != 3 || kept.Series[1].Requests != 50 || kept.Step != 1 {
			t.Fatalf("%+v %v", kept, err)
		}
		seen.compare(t, kept.Stats())
	})
}

func TestManyWatchersShareOneReadingPerSecond(t *testing.T) {
	t.Parallel()
	e := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	var first *salestats.Stats
	channels := make([]<-chan notifier.State[*salestats.Stats], 20)
	for i := range channels {
		ch, err := e.reader.Watch(ctx, e.sale)
		e.must(err)
		channels[i] = ch
		got := <-ch
		if first == nil {
			first = got.Value
		}
		if got.Value != first || !got.Snapshot { // the clock does not advance
			t.Error("two watchers read for themselves")
		}
	}
	if again := <-channels[0]; again.Value == nil || again.Snapshot {
		t.Error("no second event")
	}
	cancel()
	for _, ch := range channels {
		for range ch {
		}
	}
	if ch, err := e.reader.Watch(t.Context(), id.Sale(uuid.New())); ch != nil || err != nil {
		t.Errorf("an unknown sale: %v %v", ch, err)
	}
}

// unitsOf are the units left in one sale.
type unitsOf struct {
	sale id.Sale
	left *atomic.Int64
}

func (u unitsOf) UnitsLeft() map[id.Sale]int { return map[id.Sale]int{u.sale: int(u.left.Load())} }
