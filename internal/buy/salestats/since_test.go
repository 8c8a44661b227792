package salestats_test

import (
	"testing"
	"time"

	"seckill/internal/buy/salestats"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestFiguresSaySinceWhenTheyCountAfterRedisLostThem(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	e := newEnv(t, testdb.Postgres(t), server.Conn(), "t:")
	opening := e.clock.Now()
	if s := e.stats(); !s.CountedSince.IsZero() || s.CountedLate(opening) != nil {
		t.Errorf("before any count: since %s", s.CountedSince)
	}
	counting := func(r *salestats.Recorder, after time.Duration) *salestats.Stats {
		e.clock.Advance(after)
		r.Placed(salestats.Placement{Sale: e.sale, Took: time.Millisecond})
		e.flush(r)
		e.clock.Advance(time.Second)
		return e.stats()
	}
	one, other := e.process(), e.process()
	first := counting(one, time.Second).CountedSince
	s := counting(other, time.Minute)
	if !first.Equal(opening.Add(time.Second)) || !s.CountedSince.Equal(first) || s.CountedLate(opening) != nil || s.Requests != 2 {
		t.Errorf("%d requests since %s, then since %s; opened %s", s.Requests, first, s.CountedSince, opening)
	}
	server.FlushAll()
	lost := e.clock.Now()
	counting(one, time.Second)
	s = counting(other, time.Minute)
	since := s.CountedLate(opening)
	if since == nil || !since.Equal(lost.Add(time.Second)) || s.Requests != 2 {
		t.Errorf("%d requests since %v; lost %s", s.Requests, since, lost)
	}
}

// Counters of version 0.1 do not say when they began.
func TestOlderCountersGetNoBeginning(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.must(e.conn.Cmd.HSet(t.Context(), e.keys.Stats(id.ShardOf(e.sale), e.sale), "requests", 5).Err())
	r := e.process()
	r.Placed(salestats.Placement{Sale: e.sale, Took: time.Millisecond})
	e.flush(r)
	if s := e.stats(); s.Requests != 6 || !s.CountedSince.IsZero() {
		t.Errorf("%d requests since %s", s.Requests, s.CountedSince)
	}
}
