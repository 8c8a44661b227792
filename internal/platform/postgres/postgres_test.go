package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// throughProxy opens a new database directly and through a proxy.
func throughProxy(t *testing.T) (direct, proxied *postgres.DB, proxy *testenv.Proxy) {
	t.Helper()
	raw := testdb.PostgresURL(t)
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	proxy = testenv.NewProxy(t, u.Host)
	u.Host = proxy.Addr()
	return testdb.Open(t, raw), testdb.Open(t, u.String()), proxy
}

func exec(t *testing.T, db *postgres.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.SQL.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func number(t *testing.T, db *postgres.DB, query string) int {
	t.Helper()
	var n int
	if err := db.SQL.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestConnectionsCarryTheServerSideTimeouts(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.ShortPostgresURL(t))
	for name, want := range map[string]string{
		"statement_timeout":                   "2s",
		"lock_timeout":                        "1500ms",
		"idle_in_transaction_session_timeout": "5s",
		"synchronous_commit":                  "on",
	} {
		var got string
		testenv.Eventually(t, testenv.Wait, func() bool {
			return db.SQL.QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&got) == nil
		}, "the server answers within the timeout")
		if got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
}

func TestProcessesAreCountedByTheirNames(t *testing.T) {
	t.Parallel()
	address := testdb.PostgresURL(t)
	db := testdb.Open(t, address)
	for i, name := range []string{" a/1", " a/1", " b/1", "er"} {
		other := testdb.Open(t, address+"&application_name="+url.QueryEscape(postgres.Application+name))
		if err := other.SQL.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := db.Processes(t.Context()); err != nil || n != []int{1, 1, 2, 2}[i] {
			t.Errorf("%d processes after %q: %v", n, name, err)
		}
	}
	var own string
	if err := db.SQL.QueryRowContext(t.Context(), "SELECT current_setting('application_name')").Scan(&own); err != nil ||
		!strings.HasPrefix(own, postgres.Application+" ") || !strings.HasSuffix(own, "/"+strconv.Itoa(os.Getpid())) {
		t.Errorf("the name is %q: %v", own, err)
	}
}

func TestTheURLSetsTheServerSideTimeouts(t *testing.T) {
	t.Parallel()
	base := testdb.ShortPostgresURL(t)
	db := testdb.Open(t, base+"&statement_timeout=7000&lock_timeout=8000&idle_in_transaction_session_timeout=9000")
	for name, want := range map[string]string{"statement_timeout": "7s", "lock_timeout": "8s", "idle_in_transaction_session_timeout": "9s"} {
		var got string
		testenv.Eventually(t, testenv.Wait, func() bool {
			return db.SQL.QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&got) == nil
		}, "the server answers within the timeout")
		if got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
	if db, err := postgres.Open(t.Context(), postgres.Options{URL: base + "&lock_timeout=0"}); err == nil {
		t.Error("opened without a lock timeout")
		_ = db.Close()
	}
}

func TestOpenFailsWithoutAServer(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"postgres://seckill@127.0.0.1:1/x?sslmode=disable", "postgres://%zz"} {
		if db, err := postgres.Open(t.Context(), postgres.Options{URL: bad}); err == nil {
			t.Errorf("%s: opened", bad)
			_ = db.Close()
		}
	}
}

func TestADeadlineIsKeptWhenTheServerFallsSilent(t *testing.T) {
	t.Parallel()
	operations := map[string]func(ctx context.Context, db *postgres.DB) error{
		"query": func(ctx context.Context, db *postgres.DB) error {
			return db.SQL.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
		},
		"query with arguments": func(ctx context.Context, db *postgres.DB) error {
			return db.SQL.QueryRowContext(ctx, "SELECT $1::int", 1).Scan(new(int))
		},
		"exec": func(ctx context.Context, db *postgres.DB) error {
			_, err := db.SQL.ExecContext(ctx, "SELECT 1")
			return err
		},
		"begin": func(ctx context.Context, db *postgres.DB) error {
			_, err := db.SQL.BeginTx(ctx, nil)
			return err
		},
		"ping": func(ctx context.Context, db *postgres.DB) error { return db.SQL.PingContext(ctx) },
		"first connection": func(ctx context.Context, db *postgres.DB) error {
			db.SQL.SetMaxIdleConns(0)
			return db.SQL.PingContext(ctx)
		},
	}
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, db, proxy := throughProxy(t)
			proxy.Silence()
			defer proxy.Restore()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, db) }()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("ended with %v, want the deadline", err)
				}
			case <-time.After(time.Minute): // the connection itself times out after testenv.Wait
				t.Error("still waiting a minute after the deadline")
				<-ended
			}
			proxy.Restore()
			if got := number(t, db, "SELECT 7"); got != 7 {
				t.Errorf("after the silence: %d", got)
			}
		})
	}
}

func TestAStatementWhoseReplyIsLostIsNotRunTwice(t *testing.T) {
	t.Parallel()
	direct, db, proxy := throughProxy(t)
	exec(t, direct, "CREATE TABLE counter (n int)", "INSERT INTO counter VALUES (0)")
	proxy.LoseReplyTo("UPDATE counter")
	_, err := db.SQL.ExecContext(t.Context(), "UPDATE counter SET n = n + 1")
	if !errors.Is(err, postgres.ErrConnectionLost) {
		t.Errorf("error is %v, want ErrConnectionLost", err)
	}
	if !fault.IsTransient(err) { // otherwise a restart would create dead letters and INTERNAL errors
		t.Errorf("%v does not count as transient", err)
	}
	if n := number(t, direct, "SELECT n FROM counter"); n != 1 {
		t.Errorf("the row was incremented %d times", n)
	}
}
