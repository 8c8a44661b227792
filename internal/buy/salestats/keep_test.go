package salestats_test

import (
	"testing"
	"time"

	"seckill/internal/buy/salestats"
	"seckill/internal/platform/id"
)

// kept counts for three seconds and stores the figures, as at the end of a sale.
func (e *env) kept(r *salestats.Recorder, seen *counts) {
	e.t.Helper()
	for range 3 {
		for range 50 {
			seen.place(r, e.sale)
		}
		e.clock.Advance(time.Second)
	}
	e.flush(r)
	e.must(e.reader.Keep(e.t.Context(), e.sale))
}

// forget deletes keys of the sale: the series, and the counters too if all.
func (e *env) forget(all bool) {
	e.t.Helper()
	shard, at := id.ShardOf(e.sale), e.clock.Now().Unix()
	keys := []string{e.keys.Series(shard, e.sale, at/300-1), e.keys.Series(shard, e.sale, at/300)}
	if all {
		keys = append(keys, e.keys.Stats(shard, e.sale))
	}
	e.must(e.conn.Cmd.Del(e.t.Context(), keys...).Err())
}

// late requests a captcha for the ended sale, which any client can do.
func (e *env) late(r *salestats.Recorder) {
	e.t.Helper()
	e.clock.Advance(2 * time.Second)
	r.Stepped(e.sale, salestats.StepCaptcha, 1)
	e.flush(r)
}

// wantSeries expects the three seconds of kept in the history and, after another Keep, in
// Postgres.
func (e *env) wantSeries(seen *counts) {
	e.t.Helper()
	now := e.clock.Now()
	for _, read := range []func() (*salestats.Kept, error){
		func() (*salestats.Kept, error) {
			return e.reader.History(e.t.Context(), e.sale, now.Add(-time.Hour), now)
		},
		func() (*salestats.Kept, error) {
			e.must(e.reader.Keep(e.t.Context(), e.sale))
			return e.reader.Kept(e.t.Context(), e.sale)
		},
	} {
		kept, err := read()
		if err != nil || kept == nil || len(kept.Series) < 3 || kept.Series[0].Requests != 50 || kept.Series[2].Requests != 50 || kept.Step != 1 {
			e.t.Fatalf("%+v %v", kept, err)
		}
		seen.compare(e.t, kept.Stats())
	}
}

func TestALateCountLeavesWhatWasKept(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		var seen counts
		r := e.process()
		e.kept(r, &seen)
		e.forget(true) // a week without calls, or a Redis that was flushed
		e.late(r)
		e.clock.Advance(2 * time.Second)
		seen.compare(t, e.stats())
		e.wantSeries(&seen)
		seen.compare(t, e.stats())
	})
}

func TestTheKeptSeriesOutlivesTheSecondsInRedis(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		var seen counts
		r := e.process()
		e.kept(r, &seen)
		e.late(r)
		seen.place(r, e.sale)
		e.flush(r)
		e.wantSeries(&seen) // Redis has more than was stored: the late order is stored too
		e.forget(false)     // series expire after two days, counters after seven
		e.wantSeries(&seen)
		e.clock.Advance(2 * time.Second)
		seen.place(r, e.sale)
		e.flush(r)
		e.wantSeries(&seen)
		e.clock.Advance(time.Second)
		if s := e.stats(); s.Captchas != 1 {
			t.Errorf("%d captchas, want the late one", s.Captchas)
		} else {
			seen.compare(t, s)
		}
	})
}
