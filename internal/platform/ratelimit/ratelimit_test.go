package ratelimit_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// slow refills nothing during a test.
var slow = ratelimit.Policy{Name: "slow", Burst: 5, PerSecond: 0.001}

func onBoth(t *testing.T, test func(t *testing.T, conn *redisconn.Conn, prefix string)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		conn, prefix := testenv.Redis(t)
		test(t, conn, prefix)
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		conn, _ := embedded(t)
		test(t, conn, "t:")
	})
}

func embedded(t *testing.T) (*redisconn.Conn, *miniredis.Miniredis) {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(mini.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, mini
}

func limiter(conn *redisconn.Conn, prefix string) *ratelimit.Limiter {
	return ratelimit.New(ratelimit.Config{Client: conn.Script, Prefix: prefix, Clock: clock.System{}})
}

// flood makes n concurrent attempts, spread over the limiters, and counts those that
// pass.
func flood(t *testing.T, n int, p ratelimit.Policy, who ratelimit.Subject, limiters ...*ratelimit.Limiter) int {
	t.Helper()
	var passed atomic.Int32
	var all sync.WaitGroup
	gate := make(chan struct{}, 24) // below the size of the connection pool
	for i := range n {
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			d, err := limiters[i%len(limiters)].Allow(t.Context(), p, who)
			if err != nil {
				t.Errorf("try %d: %v", i, err)
			}
			if d.Allowed {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	return int(passed.Load())
}

func TestExactlyTheBurstPassesWhateverTheNumberOfProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		a, b, c := limiter(conn, prefix), limiter(conn, prefix), limiter(conn, prefix)
		if n := flood(t, 300, slow, ratelimit.User(id.New[id.User]()), a, b, c); n != slow.Burst {
			t.Errorf("%d of 200 passed, want %d", n, slow.Burst)
		}
		if n := flood(t, 20, slow, ratelimit.User(id.New[id.User]()), a, b, c); n != slow.Burst {
			t.Errorf("another person: %d passed, want a limit of their own with %d", n, slow.Burst)
		}
		other := slow
		other.Name = "other"
		who := ratelimit.User(id.New[id.User]())
		if n := flood(t, 20, slow, who, a) + flood(t, 20, other, who, a); n != 2*slow.Burst {
			t.Errorf("two operations: %d passed, want %d", n, 2*slow.Burst)
		}
	})
}

func TestRefusalSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		p := ratelimit.Policy{Name: "quick", Burst: 2, PerSecond: 1} // in any two seconds
		l := limiter(conn, prefix)
	again:
		who, began := ratelimit.User(id.New[id.User]()), time.Now()
		for range p.Burst {
			d, err := l.Allow(t.Context(), p, who)
			if time.Since(began) >= 2*time.Second {
				goto again // on a busy machine, the window may have passed
			}
			if err != nil || !d.Allowed || d.Refusal() != nil {
				t.Fatalf("got %+v, %v; want allowed", d, err)
			}
		}
		d, err := l.Allow(t.Context(), p, who)
		if time.Since(began) >= 2*time.Second {
			goto again
		}
		if err != nil || d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Second {
			t.Fatalf("got %+v, %v; want refused for at most 2 s", d, err)
		}
		refusal, ok := errors.AsType[fault.Throttled](d.Refusal("input"))
		if !ok || refusal.RetryAfter != d.RetryAfter || refusal.Reason() != fault.TooManyTries {
			t.Errorf("refusal %+v", d.Refusal("input"))
		}
		testenv.Eventually(t, testenv.Wait, func() bool {
			d, err := l.Allow(t.Context(), p, who)
			return err == nil && d.Allowed
		}, "passes after the wait")
	})
}

func TestFloodIsRefusedWithoutARoundTrip(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	shown := prometheus.NewRegistry()
	l := ratelimit.New(ratelimit.Config{Client: conn.Script, Prefix: prefix, Clock: clock.System{}, Registerer: shown})
	flood(t, 2000, slow, "a:flooder", l)
	counted := tries(t, shown)
	here := counted[ratelimit.RefusedHere]
	if there := 2000 - here; there > slow.Burst || here+counted[ratelimit.Passed]+counted[ratelimit.RefusedThere] != 2000 {
		t.Errorf("%d tries reached Redis, %d were refused in the process: %v", there, here, counted)
	}
}

func TestProcessDoesNotPunishForWhatOthersRefused(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	p := ratelimit.Policy{Name: "p", Burst: 5, PerSecond: 20}
	busy, idle, who := limiter(conn, prefix), limiter(conn, prefix), ratelimit.Subject("a:x")
	flood(t, p.Burst, p, who, busy)
	for range 50 {
		if _, err := idle.Allow(t.Context(), p, who); err != nil {
			t.Fatal(err)
		}
	}
	d, err := idle.Allow(t.Context(), p, who)
	if err != nil || d.RetryAfter > p.Window() {
		t.Errorf("after 50 refused tries: %+v, %v; want to wait for the window at most", d, err)
	}
}

func TestWithoutRedisClosedRefusesAndOpenLimitsAlone(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	l := limiter(server.Conn(), "t:")
	server.Kill()
	closed, open := slow, slow
	closed.Mode, open.Mode = ratelimit.FailClosed, ratelimit.FailOpen
	closed.Name, open.Name = "closed", "open"
	for range 2 {
		if d, err := l.Allow(t.Context(), closed, "a:x"); d.Allowed || fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("fail closed: %+v, %v; want UNAVAILABLE", d, err)
		}
	}
	if n := flood(t, 50, open, "a:x", l); n != open.Burst {
		t.Errorf("fail open: %d passed, want the %d of this process", n, open.Burst)
	}
	server.Restart()
	testenv.Eventually(t, testenv.Wait, func() bool {
		d, err := l.Allow(t.Context(), closed, "a:x")
		return err == nil && d.Allowed
	}, "counts again")
}

func TestOffAndUnlimitedLetEverythingThrough(t *testing.T) {
	t.Parallel()
	off := ratelimit.New(ratelimit.Config{Clock: clock.System{}, Off: true}) // without a client
	on := ratelimit.New(ratelimit.Config{Clock: clock.System{}})
	local := ratelimit.NewLocalOff[uuid.UUID]()
	for range 100 {
		a, errA := off.Allow(t.Context(), slow, ratelimit.All)
		b, errB := on.Allow(t.Context(), ratelimit.Policy{Name: "none"}, ratelimit.All)
		c := local.Allow(slow, uuid.Nil)
		if errA != nil || errB != nil || !a.Allowed || !b.Allowed || !c.Allowed {
			t.Fatalf("%v %v %v %v %v", a, errA, b, errB, c)
		}
	}
}

func TestWiderIPv6NetworksHaveBoundsOfTheirOwn(t *testing.T) {
	t.Parallel()
	// passes counts how many of 200 attempts pass, each from a different address.
	passes := func(allow func(ip netip.Addr) bool, at func(n int) [16]byte) (passed int) {
		for n := range 200 {
			if allow(netip.AddrFrom16(at(n))) {
				passed++
			}
		}
		return passed
	}
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		l, budget := limiter(conn, prefix), ratelimit.NewBudget(clock.NewFake(noon), 0)
		for name, allow := range map[string]func(ip netip.Addr) bool{
			"limiter": func(ip netip.Addr) bool {
				d, err := l.AllowAddr(t.Context(), slow, ip)
				return err == nil && d.Allowed
			},
			"budget": func(ip netip.Addr) bool { return budget.SpendAddr(slow, ip, 1).Allowed },
		} {
			for _, c := range []struct {
				what string
				at   func(n int) [16]byte
				want int
			}{
				{"one /64", func(n int) [16]byte { return [16]byte{0x20, 1, 0xd, 0xb8, 0, 1, 15: byte(n)} }, slow.Burst},
				{"one /56", func(n int) [16]byte { return [16]byte{0x20, 1, 0xd, 0xb8, 0, 2, 0, byte(n)} }, 2 * slow.Burst},
				{"one /48", func(n int) [16]byte { return [16]byte{0x20, 1, 0xd, 0xb8, 0, 3, byte(n)} }, 3 * slow.Burst},
				{"one /32", func(n int) [16]byte { return [16]byte{0x20, 1, 0xd, 0xb9, 1, byte(n)} }, 32 * slow.Burst},
				{"many /32", func(n int) [16]byte { return [16]byte{0x20, 1, 0xe, byte(n)} }, 200},
			} {
				if got := passes(allow, c.at); got != c.want {
					t.Errorf("%s, %s: %d of 200 pass, want %d", name, c.what, got, c.want)
				}
			}
		}
	})
}

func narrowest(addr string) ratelimit.Subject {
	return ratelimit.Ranges(netip.MustParseAddr(addr))[0].Subject
}

func TestAddressesCountByHousehold(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"},
		{"::ffff:192.0.2.7", "192.0.2.7"},
		{"fe80::1%eth0", "fe80::2%eth1"},
	}
	for _, pair := range same {
		if a, b := narrowest(pair[0]), narrowest(pair[1]); a != b {
			t.Errorf("%s and %s count apart: %s, %s", pair[0], pair[1], a, b)
		}
	}
	apart := [][2]string{{"2001:db8:1:2::1", "2001:db8:1:3::1"}, {"192.0.2.7", "192.0.2.8"}}
	for _, pair := range apart {
		if a, b := narrowest(pair[0]), narrowest(pair[1]); a == b {
			t.Errorf("%s and %s count together: %s", pair[0], pair[1], a)
		}
	}
	if ratelimit.Ranges(netip.Addr{})[0].Subject == "" {
		t.Error("an unknown address is not counted")
	}
}

func TestWaitingCallerHonoursItsContext(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := limiter(conn, prefix).Allow(ctx, slow, "a:x"); err == nil {
		t.Error("a cancelled try was counted as good")
	}
}

// tries returns the counted attempts by outcome.
func tries(t *testing.T, shown *prometheus.Registry) map[ratelimit.Outcome]int {
	t.Helper()
	families, err := shown.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "seckill_ratelimit_tries_total" {
		t.Fatalf("metrics %v, %v", families, err)
	}
	counted := map[ratelimit.Outcome]int{}
	for _, series := range families[0].GetMetric() {
		for _, label := range series.GetLabel() {
			if label.GetName() == "outcome" {
				counted[ratelimit.Outcome(label.GetValue())] += int(series.GetCounter().GetValue())
			}
		}
	}
	return counted
}
