package ratelimit_test

import (
	"testing"

	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func TestACrowdIsCountedWithoutAWaitForRedis(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, conn *redisconn.Conn, prefix string) {
		a, b := limiter(conn, prefix), limiter(conn, prefix)
		once, often := ratelimit.User(id.New[id.User]()), ratelimit.User(id.New[id.User]())
		counted := func(who ratelimit.Subject) int64 {
			return conn.Cmd.LLen(t.Context(), prefix+"window:slow:"+string(who)).Val()
		}
		allowed := func(l *ratelimit.Limiter, who ratelimit.Subject, times int) {
			t.Helper()
			for range times {
				if d := l.AllowLater(slow, who); !d.Allowed {
					t.Fatalf("refused for %s", d.RetryAfter)
				}
			}
		}
		allowed(a, once, 1)
		allowed(a, often, 2)
		testenv.Eventually(t, testenv.Wait, func() bool { return counted(often) == 2 }, "Redis counts both attempts")
		allowed(b, often, 3)
		testenv.Eventually(t, testenv.Wait, func() bool { return counted(often) == 5 }, "Redis counts the attempts of both processes")
		if n := counted(once); n != 0 {
			t.Errorf("Redis counted %d single attempts", n)
		}
		allowed(a, often, 1) // of which Redis says that it was one too many
		testenv.Eventually(t, testenv.Wait, func() bool {
			d := a.AllowLater(slow, often)
			return !d.Allowed && d.RetryAfter > 0 && d.RetryAfter <= slow.Window()
		}, "the process refuses what others have used up")
		if d, err := b.Allow(t.Context(), slow, often); err != nil || d.Allowed {
			t.Errorf("an exact count: %+v %v", d, err)
		}
	})
}

func TestACrowdIsLimitedByEachProcessWithoutRedis(t *testing.T) {
	t.Parallel()
	conn, mini := embedded(t)
	mini.Close()
	l, who, passed := limiter(conn, "t:"), ratelimit.User(id.New[id.User]()), 0
	for range 3 * slow.Burst {
		if l.AllowLater(slow, who).Allowed {
			passed++
		}
	}
	if passed != slow.Burst {
		t.Errorf("%d passed, want %d", passed, slow.Burst)
	}
}
