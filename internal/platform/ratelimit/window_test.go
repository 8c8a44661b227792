package ratelimit_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// "5 in 5 s" means that no window of five seconds has more than five, at any time it begins,
// and that an attempt is allowed as soon as its window has room.
func TestNoWindowLetsMoreThrough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := ratelimit.Policy{Name: "p", Burst: rapid.IntRange(1, 12).Draw(rt, "burst"), PerSecond: rapid.Float64Range(0.1, 20).Draw(rt, "rate")}
		c := clock.NewFake(noon)
		l := ratelimit.NewLocal[int](c, 16)
		var passed []time.Time
		for n := range rapid.IntRange(1, 400).Draw(rt, "tries") {
			now, inWindow := c.Now(), 0
			for _, at := range passed {
				if now.Sub(at) < p.Window() {
					inWindow++
				}
			}
			d := l.Allow(p, 1)
			if d.Allowed != (inWindow < p.Burst) {
				rt.Fatalf("attempt %d with %d others in its window of %s: %+v", n, inWindow, p.Window(), d)
			}
			if d.Allowed {
				passed = append(passed, now)
			} else if oldest := passed[len(passed)-p.Burst]; !oldest.Add(p.Window()).Equal(now.Add(d.RetryAfter)) {
				rt.Fatalf("attempt %d has to wait %s, want until %s", n, d.RetryAfter, oldest.Add(p.Window()))
			}
			c.Advance(time.Duration(rapid.IntRange(0, 2_000_000/p.Burst).Draw(rt, "pause")) * time.Microsecond)
		}
	})
}

func TestFiveInFiveSecondsAreFive(t *testing.T) {
	t.Parallel()
	p := ratelimit.Policy{Name: "p", Burst: 5, PerSecond: 1}
	conn, mini := embedded(t)
	c := clock.NewFake(noon)
	local := ratelimit.NewLocal[int](c, 16)
	limiter := ratelimit.New(ratelimit.Config{Client: conn.Script, Prefix: "t:", Clock: c})
	for name, allow := range map[string]func() bool{
		"local": func() bool { return local.Allow(p, 1).Allowed },
		"limiter": func() bool {
			d, err := limiter.Allow(t.Context(), p, "u:x")
			return err == nil && d.Allowed
		},
	} {
		passed := 0
		for range 100 { // 4.95 s
			if allow() {
				passed++
			}
			mini.SetTime(c.Advance(50 * time.Millisecond))
		}
		if passed != 5 {
			t.Errorf("%s: %d pass in 4.95 s, want 5", name, passed)
		}
		if !allow() {
			t.Errorf("%s: none passes after 5 s", name)
		}
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

var triesScript = redis.NewScript(ratelimit.TriesLua + `
local time = redis.call('TIME')
local tries = new_tries(KEYS[1], tonumber(ARGV[2]), tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
for i = 3, #ARGV do tries.asking[#tries.asking + 1] = ARGV[i] end
read_tries(tries)
local waits = {}
for i = 3, #ARGV do waits[#waits + 1] = take_try(tries, ARGV[i], tonumber(ARGV[1])) end
write_tries(tries)
return waits`)

// No window has more attempts of a subject than its limit, and none waits longer than needed,
// whatever subjects share a call.
func TestTriesOfABatchAreCountedInAnyWindow(t *testing.T) {
	t.Parallel()
	conn, mini := embedded(t)
	rapid.Check(t, func(rt *rapid.T) {
		most, window := rapid.IntRange(1, 8).Draw(rt, "most"), rapid.IntRange(1, 3000).Draw(rt, "window, ms")
		c, key, passed := clock.NewFake(noon), "t:"+uuid.NewString(), map[int][]int64{}
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			mini.SetTime(c.Advance(time.Duration(rapid.IntRange(0, 2*window/most+1).Draw(rt, "pause, ms")) * time.Millisecond))
			subjects := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 12).Draw(rt, "subjects")
			args := []any{most, window}
			for _, s := range subjects {
				args = append(args, s)
			}
			waits, err := triesScript.Run(t.Context(), conn.Script, []string{key}, args...).Int64Slice()
			if err != nil {
				rt.Fatal(err)
			}
			for i, s := range subjects {
				now, want := c.Now().UnixMilli(), int64(0)
				if n := len(passed[s]); n >= most {
					want = max(0, passed[s][n-most]+int64(window)-now)
				}
				if waits[i] != want {
					rt.Fatalf("attempt %d of %v has to wait %d ms, want %d", i, subjects, waits[i], want)
				}
				if want == 0 {
					passed[s] = append(passed[s], now)
				}
			}
		}
	})
}

// A clock that was set back by more than a window holds no client back for longer than that.
func TestAClockSetBackHoldsNoClientBack(t *testing.T) {
	t.Parallel()
	p := ratelimit.Policy{Name: "p", Burst: 5, PerSecond: 1}
	conn, mini := embedded(t)
	c := clock.NewFake(noon)
	for range p.Burst {
		l := ratelimit.New(ratelimit.Config{Client: conn.Script, Prefix: "t:", Clock: c})
		mini.SetTime(c.Now())
		if d, err := l.Allow(t.Context(), p, "u:x"); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	mini.SetTime(c.Now().Add(-2 * time.Minute))
	l := ratelimit.New(ratelimit.Config{Client: conn.Script, Prefix: "t:", Clock: c})
	if d, err := l.Allow(t.Context(), p, "u:x"); err != nil || !d.Allowed {
		t.Errorf("after the clock was set back by two minutes: %+v, %v", d, err)
	}
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
