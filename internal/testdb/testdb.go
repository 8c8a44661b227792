// Package testdb gives each test a database of its own, on real Postgres or SQLite. It
// is apart from internal/testenv so that tests without a database do not compile ent.
package testdb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
	"seckill/migrations"
)

// setupTimeout bounds creating or dropping one database, on a busy machine too.
const setupTimeout = testenv.Wait

// Postgres returns a new database for the test, with all tables. It is dropped when the
// test ends. Commits of a test do not wait for the disk, see UnflushedPostgresURL; those
// of a benchmark do.
func Postgres(t testing.TB) *postgres.DB {
	t.Helper()
	address := UnflushedPostgresURL
	if _, measures := t.(*testing.B); measures {
		address = PostgresURL
	}
	return Open(t, address(t))
}

// Open opens a Postgres database until the test ends.
func Open(t testing.TB, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	return closed(t, db, err)
}

// SQLite returns a new database of the kind that the demo uses, with all tables.
func SQLite(t testing.TB) *postgres.DB {
	t.Helper()
	return OpenSQLite(t, filepath.Join(t.TempDir(), "test.db"))
}

// OpenSQLite opens a file of SQLite until the test ends.
func OpenSQLite(t testing.TB, path string) *postgres.DB {
	t.Helper()
	db, err := postgres.OpenSQLite(t.Context(), path)
	return closed(t, db, err)
}

// closed closes a database that could be opened when the test ends.
func closed(t testing.TB, db *postgres.DB, err error) *postgres.DB {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the test's database: %v", err)
		}
	})
	return db
}

// OnDatabases runs a test on Postgres and on SQLite, in parallel.
func OnDatabases(t *testing.T, test func(t *testing.T, db *postgres.DB)) {
	t.Helper()
	for name, open := range map[string]func(testing.TB) *postgres.DB{"postgres": Postgres, "sqlite": SQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// PostgresURL returns the URL of a new database for the test, with all tables and with
// timeouts that a busy machine does not exceed. It is dropped when the test ends.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return testenv.WithParameters(t, ShortPostgresURL(t), timeouts())
}

// ShortPostgresURL is PostgresURL with the product's timeouts, for tests of them.
func ShortPostgresURL(t testing.TB) string {
	t.Helper()
	server := testenv.DatabaseURL(t)
	name, err := template(server)
	if err != nil {
		t.Fatalf("make the template database: %v", err)
	}
	return clone(t, server, name)
}

// UnflushedPostgresURL is PostgresURL for connections with synchronous_commit off.
// Commits are visible as before and survive the crash of any process; only a power
// failure can lose them, which no test covers. A flush may take longer than the rest of a
// test.
func UnflushedPostgresURL(t testing.TB) string {
	t.Helper()
	return testenv.WithParameters(t, PostgresURL(t), url.Values{"synchronous_commit": {"off"}})
}

// EmptyPostgresURL is PostgresURL for a database without tables.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return testenv.WithParameters(t, clone(t, testenv.DatabaseURL(t), "template0"), timeouts())
}

// Copy copies the database at a URL that this package returned, to which nothing is connected. It is
// dropped when the test ends.
func Copy(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return testenv.WithParameters(t, clone(t, testenv.DatabaseURL(t), strings.TrimPrefix(u.Path, "/")), u.Query())
}

// clone copies a template database for one test.
func clone(t testing.TB, server, from string) string {
	t.Helper()
	name := "test_" + hex.EncodeToString(testenv.RandomBytes())
	create := fmt.Sprintf(`CREATE DATABASE %q TEMPLATE %q`, name, from)
	// The default strategy writes each page to the log and takes four times the processor
	// time. Before version 15 there is no other than this one, and no word for it.
	err := maintain(server, create+" STRATEGY FILE_COPY")
	if pq.As(err, pqerror.SyntaxError) != nil {
		err = maintain(server, create)
	}
	if err != nil {
		t.Fatalf("clone a database: %v", err)
	}
	t.Cleanup(func() {
		if err := maintain(server, fmt.Sprintf(`DROP DATABASE %q WITH (FORCE)`, name)); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return withDatabase(server, name)
}

// timeouts returns the connection timeouts of tests that do not test timeouts.
func timeouts() url.Values {
	all := url.Values{}
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		all.Set(name, strconv.FormatInt(testenv.Wait.Milliseconds(), 10))
	}
	return all
}

// templates holds the name of the template per server, created once per test binary.
var templates sync.Map // server URL -> func() (string, error)

func template(server string) (string, error) {
	once, _ := templates.LoadOrStore(server, sync.OnceValues(func() (string, error) { return makeTemplate(server) }))
	return once.(func() (string, error))()
}

// makeTemplate creates the migrated database that all tests clone, unless another test
// binary has created it: its name contains the hash of the migrations, and an advisory
// lock with that number serialises its creation. It is built under another name, so that
// an incomplete one of a killed process is never cloned.
func makeTemplate(server string) (string, error) {
	sum, err := migrationsHash()
	if err != nil {
		return "", err
	}
	name := "template_" + hex.EncodeToString(sum[:6])
	building := name + "_building"
	err = onServer(server, func(ctx context.Context, c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(binary.BigEndian.Uint64(sum[:8]))); err != nil {
			return err
		}
		var there bool
		err := c.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
		if err != nil || there {
			return err
		}
		err = execAll(ctx, c, fmt.Sprintf(`DROP DATABASE IF EXISTS %q WITH (FORCE)`, building),
			fmt.Sprintf(`CREATE DATABASE %q`, building))
		if err != nil {
			return err
		}
		if err := migrate(ctx, withDatabase(server, building)); err != nil {
			return err
		}
		return execAll(ctx, c, fmt.Sprintf(`ALTER DATABASE %q RENAME TO %q`, building, name))
	})
	return name, err
}

func migrate(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	q := u.Query()
	maps.Copy(q, timeouts())
	u.RawQuery = q.Encode()
	db, err := postgres.Open(ctx, postgres.Options{URL: u.String()})
	if err != nil {
		return err
	}
	if _, err := db.Migrate(ctx); err != nil {
		_ = db.Close()
		return err
	}
	return db.Close()
}

func migrationsHash() ([]byte, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(migrations.Files, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return h.Sum(nil), err
}

// idle holds the open connections to the maintenance database of each server, for all
// tests of the binary: connecting costs nearly as much as cloning a database.
var idle connPool

type connPool struct {
	mu    sync.Mutex
	conns map[string][]driver.Conn // guarded by mu; server URL -> connections
}

// take returns an idle connection, nil when there is none.
func (p *connPool) take(server string) driver.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.conns[server]
	if len(conns) == 0 {
		return nil
	}
	last := len(conns) - 1
	conn := conns[last]
	p.conns[server] = conns[:last]
	return conn
}

func (p *connPool) put(server string, conn driver.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		p.conns = make(map[string][]driver.Conn)
	}
	p.conns[server] = append(p.conns[server], conn)
}

// maintain runs a statement on an idle connection to the maintenance database, or on a
// new one.
func maintain(server, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	conn := idle.take(server)
	if conn == nil {
		connector, err := pq.NewConnector(server)
		if err != nil {
			return err
		}
		if conn, err = connector.Connect(ctx); err != nil {
			return err
		}
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
		_ = conn.Close()
		return fmt.Errorf("%s: %w", statement, err)
	}
	idle.put(server, conn)
	return nil
}

// onServer runs do on one connection to the maintenance database, without the product's
// timeouts, which creating a database may exceed. Closing the connection releases its
// advisory locks.
func onServer(server string, do func(context.Context, *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	pool, err := sql.Open("postgres", server)
	if err != nil {
		return err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(ctx, conn)
}

func execAll(ctx context.Context, c *sql.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := c.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // lib/pq reports what is wrong with it
	}
	u.Path = "/" + name
	return u.String()
}
