package order_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill/internal/fault"
	"seckill/internal/order"
)

// suspicious returns a store that finds lost tasks by what the test says of them.
func (e *env) suspicious(w *order.Writer, alive func() (bool, error)) *order.Store {
	return order.NewStore(order.StoreConfig{
		DB: e.db, Cache: e.cache, Clock: e.clock, Log: slog.New(slog.DiscardHandler),
		Losses: &order.Losses{
			Alive: func(context.Context, *order.Task) (bool, error) { return alive() },
			Lost: func(ctx context.Context, t *order.Task) (*order.Task, error) {
				end, err := w.FailLostTask(ctx, t, "lost")
				return &end.Task, err
			},
		},
	})
}

// Defect 8: never "queueing" for ever when a message is lost.
func TestATaskOfWhichNothingIsLeftEndsAsFailed(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		w, r := e.writer(nil), e.request()
		alive, away := true, error(nil)
		s := e.suspicious(w, func() (bool, error) { return alive, away })
		e.submit(r)
		still := func(when string) {
			t.Helper()
			if got := e.task(s, r.Task); got == nil || got.Status != order.Submitted {
				t.Errorf("%s: %+v", when, got)
			}
		}
		still("at once")
		e.clock.Advance(time.Minute)
		still("its units are held")
		alive = false
		still("nothing is left, just now")
		e.clock.Advance(5 * time.Second)
		alive = true
		still("a gate was built anew")
		alive = false
		still("nothing is left again")
		e.clock.Advance(10 * time.Second)
		away = errors.New("redis is away")
		still("nobody knows")
		away = nil
		got := e.task(s, r.Task)
		if got.Status != order.Failed || got.Failure != fault.Conflict {
			t.Errorf("lost: %+v", got)
		}
		if e.failures() != 1 || e.figures().available != 5 {
			t.Errorf("%d failures, %+v", e.failures(), e.figures())
		}
	})
}

// The record goes with Redis: who has seen the task hears of its end all the same.
func TestATaskWhoseRecordIsGoneTooEndsAsFailedForThoseWhoSawIt(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		w, r, other := e.writer(nil), e.request(), e.request()
		gone := func() (bool, error) { return false, nil }
		saw, late := e.suspicious(w, gone), e.suspicious(w, gone)
		e.submit(r)
		e.task(saw, r.Task)
		e.must(e.conn.Cmd.Del(t.Context(), e.keys.Tasks(shardOf(r), r.Task)).Err())
		e.clock.Advance(time.Minute)
		if got := e.task(late, r.Task); got != nil {
			t.Errorf("nobody knows it, and %+v", got)
		}
		if got := e.task(saw, r.Task); got == nil || got.Status != order.Submitted {
			t.Errorf("at first: %+v", got)
		}
		e.clock.Advance(10 * time.Second)
		if got := e.task(saw, r.Task); got == nil || got.Status != order.Failed {
			t.Errorf("in the end: %+v", got)
		}
		if got := e.task(late, r.Task); got == nil || got.Status != order.Failed {
			t.Errorf("for everybody then: %+v", got)
		}
		// A task that was written meanwhile is found as an order.
		e.submit(other)
		e.task(saw, other.Task)
		e.write(w, other)
		e.must(e.conn.Cmd.Del(t.Context(), e.keys.Tasks(shardOf(other), other.Task)).Err())
		if got := e.task(saw, other.Task); got == nil || got.Status != order.Succeeded {
			t.Errorf("written: %+v", got)
		}
	})
}

func shardOf(r order.Requested) int { return int(r.Task[15]) }
