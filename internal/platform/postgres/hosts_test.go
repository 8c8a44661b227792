package postgres_test

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// parts returns the parts of the URL of a new database.
func parts(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(testdb.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSeveralHostsAreTriedInTheirOrder(t *testing.T) {
	t.Parallel()
	u := parts(t)
	u.Host = testenv.ReserveAddr(t) + "," + u.Host
	q := u.Query()
	q.Set("target_session_attrs", "read-write")
	u.RawQuery = q.Encode()
	if n := number(t, testdb.Open(t, u.String()), "SELECT count(*) FROM users"); n != 0 {
		t.Errorf("%d users", n)
	}
}

// While no server takes writes, or none can be trusted, it is not the fault of what was to
// be written.
func TestAServerWithoutASuitableSessionIsTransient(t *testing.T) {
	t.Parallel()
	u := parts(t)
	db := testdb.Open(t, u.String())
	if _, err := db.SQL.ExecContext(t.Context(), `ALTER DATABASE "`+u.Path[1:]+`" SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"target_session_attrs": "read-write", "sslmode": "require"} {
		q := u.Query()
		q.Set(name, value)
		strict := *u
		strict.RawQuery = q.Encode()
		_, err := postgres.Open(t.Context(), postgres.Options{URL: strict.String()})
		if !fault.IsTransient(err) {
			t.Errorf("%s=%s: %v is not transient", name, value, err)
		}
	}
}

func TestAUnixSocketLeadsToPostgres(t *testing.T) {
	t.Parallel()
	u := parts(t)
	dir := t.TempDir()
	serveSocket(t, filepath.Join(dir, ".s.PGSQL.5432"), u.Host)
	q := u.Query()
	q.Set("host", dir)
	q.Set("user", u.User.Username())
	for _, text := range []string{
		"postgres://" + u.Path + "?" + q.Encode(),
		"host=" + dir + " user=" + u.User.Username() + " dbname=" + u.Path[1:] + " sslmode=disable",
	} {
		db := testdb.Open(t, text)
		if n := number(t, db, "SELECT count(*) FROM users"); n != 0 {
			t.Errorf("%d users", n)
		}
		if applied, err := db.Migrate(t.Context()); err != nil || applied != 0 {
			t.Errorf("%d migrations, %v", applied, err)
		}
	}
}

// serveSocket passes connections of a Unix socket on to a server until the test ends.
func serveSocket(t *testing.T, path, server string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer client.Close()
				behind, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer behind.Close()
				running.Go(func() {
					_, _ = io.Copy(behind, client)
					_ = behind.Close()
				})
				_, _ = io.Copy(client, behind)
			})
		}
	})
}
