// Package testenv gives each test real services: its own key prefix in Redis, or its own
// Redis process that it may kill. Databases come from internal/testdb.
//
// It locates the services of `make services` and cleans up after tests. It is imported
// from _test.go files only. A missing service fails the test.
package testenv

import (
	"bufio"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seckill/internal/platform/auth"
)

// Environment variables that name the services; they override .services/env.
const (
	databaseVariable = "SECKILL_TEST_DATABASE_URL"
	redisVariable    = "SECKILL_TEST_REDIS_URL"
)

// RedisURL returns the URL of the shared private Redis, with timeouts that a busy
// machine does not exceed.
func RedisURL(t testing.TB) string {
	t.Helper()
	return WithParameters(t, lookup(t, redisVariable), redisTimeouts())
}

// RedisURLAt returns the URL of a Redis server at host and port, for example a Proxy or
// an in-process server, with timeouts that a busy machine does not exceed.
func RedisURLAt(addr string) string {
	return "redis://" + addr + "/0?" + redisTimeouts().Encode()
}

// RedisAddr returns host and port of the shared private Redis, for tests of the product's
// timeouts.
func RedisAddr(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(RedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// redisTimeouts returns the client timeouts of tests that do not test timeouts.
func redisTimeouts() url.Values {
	all := url.Values{}
	for _, name := range []string{"dial_timeout", "read_timeout", "write_timeout", "pool_timeout"} {
		all.Set(name, Wait.String())
	}
	return all
}

// WithParameters returns a URL with additional query parameters.
func WithParameters(t testing.TB, rawURL string, more url.Values) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	maps.Copy(q, more)
	u.RawQuery = q.Encode()
	return u.String()
}

// lookup reads a variable from the environment, else from the file that scripts/services
// wrote at the root of the module.
func lookup(t testing.TB, variable string) string {
	t.Helper()
	if value := os.Getenv(variable); value != "" {
		return value
	}
	value, err := fromFile(variable)
	if err != nil {
		t.Fatalf("no %s in the environment and none in .services/env (%v): run `make services` first", variable, err)
	}
	return value
}

// DatabaseURL returns the URL of the maintenance database of the private Postgres.
func DatabaseURL(t testing.TB) string {
	t.Helper()
	return lookup(t, databaseVariable)
}

// services reads .services/env once per test binary.
var services = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return readEnv(filepath.Join(dir, ".services", "env"))
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, os.ErrNotExist
		}
		dir = parent
	}
})

func fromFile(variable string) (string, error) {
	all, err := services()
	if err != nil {
		return "", err
	}
	if all[variable] == "" {
		return "", os.ErrNotExist
	}
	return all[variable], nil
}

func readEnv(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			all[name] = value
		}
	}
	return all, lines.Err()
}

// Wait bounds waiting for an event that must happen. It is far above what the slowest
// machine needs, so that only an event that never happens fails a test.
const Wait = 2 * time.Minute

// pollEvery is the poll interval of Eventually: short compared to the latency of the
// services.
const pollEvery = 10 * time.Millisecond

// Eventually polls until cond is true, for changes in an external service that sends no
// signal. It fails the test after within.
func Eventually(t testing.TB, within time.Duration, cond func() bool, msg string) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", within, msg)
		case <-tick.C:
		}
	}
}

// promptTries is the number of attempts of Promptly: a busy machine is sometimes slow.
const promptTries = 5

// Promptly fails the test unless one of promptTries attempts takes at most bound. try
// returns its duration.
func Promptly(t testing.TB, bound time.Duration, try func() time.Duration) {
	t.Helper()
	best := try()
	for range promptTries - 1 {
		if best <= bound {
			return
		}
		best = min(best, try())
	}
	if best > bound {
		t.Errorf("it takes %s at the least, want %s at the most", best, bound)
	}
}

// Main runs the tests of a package, checks that no goroutine is left, and exits.
func Main(m *testing.M, options ...goleak.Option) { os.Exit(Run(m, options...)) }

// Run is Main without the exit; it returns the exit code. goleak.VerifyTestMain gives
// goroutines half a second to end, which is too short for a busy machine.
func Run(m *testing.M, options ...goleak.Option) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	for start := time.Now(); ; {
		err := goleak.Find(options...)
		if err == nil {
			return 0
		}
		if time.Since(start) > Wait {
			_, _ = fmt.Fprintf(os.Stderr, "the tests pass, but %v\n", err)
			return 1
		}
	}
}

// Keys returns signing keys.
func Keys(t testing.TB) auth.Keys {
	t.Helper()
	keys, err := auth.NewKeys(auth.Key{ID: "1", Secret: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
