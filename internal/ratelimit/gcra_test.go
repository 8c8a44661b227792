package ratelimit_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/ratelimit"
)

// In any interval at most burst + elapsed × rate attempts pass, and at least the burst.
func TestNoWindowLetsMoreThrough(t *testing.T) {
	t.Parallel()
	p := ratelimit.Policy{Name: "p", Burst: 10, PerSecond: 10}
	c := clock.NewFake(noon)
	l := ratelimit.NewLocal[int](c, 16)
	var passed []time.Time
	for range 100_000 { // 100 s, an attempt each millisecond
		if l.Allow(p, 1).Allowed {
			passed = append(passed, c.Now())
		}
		c.Advance(time.Millisecond)
	}
	for first, last := 0, 0; last < len(passed); last++ {
		for passed[last].Sub(passed[first]) >= time.Second {
			first++
		}
		if n := last - first + 1; n > p.Burst+10 {
			t.Fatalf("%d passed within a second from %s", n, passed[first])
		}
	}
	if n := len(passed); n < 1000 || n > 1010 {
		t.Errorf("%d passed in 100 s, want 1,000 and the burst", n)
	}
}

// The script and the Go reference return the same results for the same history.
func TestScriptAgreesWithTheReference(t *testing.T) {
	t.Parallel()
	conn, mini := embedded(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := ratelimit.Policy{
			Name:      "p",
			Burst:     rapid.IntRange(1, 20).Draw(rt, "burst"),
			PerSecond: rapid.Float64Range(0.01, 5000).Draw(rt, "rate"),
		}
		c := clock.NewFake(noon)
		who := ratelimit.User(id.New[id.User]())
		reference := ratelimit.NewLocal[ratelimit.Subject](c, 16)
		for range rapid.IntRange(1, 60).Draw(rt, "tries") {
			mini.SetTime(c.Advance(time.Duration(rapid.IntRange(0, 300_000).Draw(rt, "pause")) * time.Microsecond))
			// A new limiter for each attempt has no local state, so that the script
			// decides.
			script := ratelimit.New(ratelimit.Config{Client: conn.Script, Prefix: "t:", Clock: c})
			got, err := script.Allow(t.Context(), p, who)
			if err != nil {
				rt.Fatal(err)
			}
			if want := reference.Allow(p, who); got != want {
				rt.Fatalf("script %+v, reference %+v", got, want)
			}
		}
	})
}

func TestLocalCounterForgetsWhoWasLongestSilent(t *testing.T) {
	t.Parallel()
	l := ratelimit.NewLocal[uuid.UUID](clock.NewFake(noon), 64)
	who := id.New[uuid.UUID]()
	drain := func() (passed int) {
		for range 100 {
			if l.Allow(slow, who).Allowed {
				passed++
			}
		}
		return passed
	}
	if n := drain(); n != slow.Burst {
		t.Errorf("%d passed, want %d", n, slow.Burst)
	}
	for range 100_000 { // more than it can remember
		l.Allow(slow, id.New[uuid.UUID]())
	}
	if n := drain(); n != slow.Burst {
		t.Errorf("%d passed after 100,000 others; a bounded counter has forgotten and gives %d again", n, slow.Burst)
	}
}

func BenchmarkLocalAllow(b *testing.B) {
	l := ratelimit.NewLocal[uuid.UUID](clock.System{}, 0)
	p := ratelimit.Policy{Name: "place_order", Burst: 5, PerSecond: 1}
	who := id.New[uuid.UUID]()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Allow(p, who)
		}
	})
}
