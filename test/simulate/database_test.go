package simulate_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"seckill/internal/platform/postgres"
)

// rawConn is what the driver of SQLite offers.
type rawConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	NewBackup(to string) (*sqlite.Backup, error)
}

// errReset is how a lost connection to the database shows.
func errReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// database is an in-memory database. All connections share one of SQLite, of which a
// transaction or a single statement is the only user: none ever waits inside SQLite, where
// virtual time would stand still.
type database struct {
	raw    rawConn
	turn   chan struct{} // has a value while nothing uses raw
	random *source

	mu      sync.Mutex
	commits int                    // guarded by mu
	fault   func(*machine) dbFault // guarded by mu; asked at each commit
}

// dbFault is what happens to a commit.
type dbFault int

const (
	commits      dbFault = iota
	commitLost           // the connection breaks before the commit
	commitUnseen         // it breaks after the commit
)

// address is that of a new database with the settings of every connection.
const address = "file::memory:?_pragma=foreign_keys(1)&_txlock=immediate&_time_format=sqlite"

// emptyDatabase has all tables and no rows.
var emptyDatabase = sync.OnceValues(func() (rawConn, error) {
	c, err := (&sqlite.Driver{}).Open(address)
	if err != nil {
		return nil, err
	}
	raw := c.(rawConn)
	_, err = raw.ExecContext(context.Background(), postgres.SQLiteSchema(), nil)
	return raw, err
})

// copyOf returns a copy of a database.
func copyOf(raw rawConn) (rawConn, error) {
	b, err := raw.NewBackup(address)
	if err != nil {
		return nil, err
	}
	if _, err := b.Step(-1); err != nil {
		return nil, errors.Join(err, b.Finish())
	}
	c, err := b.Commit()
	if err != nil {
		return nil, err
	}
	return c.(rawConn), nil
}

func newDatabase(raw rawConn, random *source) *database {
	d := &database{raw: raw, turn: make(chan struct{}, 1), random: random}
	d.turn <- struct{}{}
	return d
}

func (d *database) take(ctx context.Context) error {
	select {
	case <-d.turn:
		return nil
	default:
	}
	select {
	case <-d.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *database) give() { d.turn <- struct{}{} }

// image returns a copy of what is committed.
func (d *database) image() (rawConn, error) {
	if err := d.take(context.Background()); err != nil {
		return nil, err
	}
	defer d.give()
	return copyOf(d.raw)
}

// restore replaces the database by a copy.
func (d *database) restore(image rawConn) error {
	if err := d.take(context.Background()); err != nil {
		return err
	}
	defer d.give()
	made, err := copyOf(image)
	if err != nil {
		return err
	}
	_ = d.raw.Close()
	d.raw = made
	return nil
}

func (d *database) outcome(m *machine) dbFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits++
	if d.fault == nil {
		return commits
	}
	return d.fault(m)
}

// connector connects a machine to the database.
type connector struct {
	db      *database
	network *network
	machine *machine
}

func (c *connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.network.isDead(c.machine) {
		return nil, errReset()
	}
	return &session{connector: c}, nil
}

// session is a connection to the database.
type session struct {
	*connector
	inTx   bool
	broken bool
}

var errUnsupported = errors.New("simulate: prepared statements are not supported")

func (s *session) Prepare(string) (driver.Stmt, error) { return nil, errUnsupported }
func (s *session) Begin() (driver.Tx, error) {
	return s.BeginTx(context.Background(), driver.TxOptions{})
}
func (s *session) Ping(context.Context) error { return s.usable() }
func (s *session) IsValid() bool              { return s.usable() == nil }
func (s *session) ResetSession(context.Context) error {
	if s.usable() != nil {
		return driver.ErrBadConn
	}
	return nil
}

func (s *session) Close() error {
	if s.inTx {
		return s.Rollback()
	}
	return nil
}

func (s *session) usable() error {
	if s.broken || s.network.isDead(s.machine) {
		return errReset()
	}
	return nil
}

// trip takes the time of a round trip to the database.
func (s *session) trip(ctx context.Context) error {
	timer := time.NewTimer(s.network.delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.usable()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if err := s.trip(ctx); err != nil {
		return nil, err
	}
	if err := s.db.take(ctx); err != nil {
		return nil, err
	}
	if _, err := s.db.raw.ExecContext(context.Background(), "begin immediate", nil); err != nil {
		s.db.give()
		return nil, err
	}
	s.inTx = true
	return s, nil
}

// Commit implements driver.Tx.
func (s *session) Commit() error {
	fault := s.db.outcome(s.machine)
	if fault == commitLost || s.usable() != nil {
		_ = s.Rollback()
		s.broken = true
		return errReset()
	}
	err := s.end("commit")
	if err == nil && (fault == commitUnseen || s.usable() != nil) {
		s.broken = true
		return errReset()
	}
	return err
}

// Rollback implements driver.Tx.
func (s *session) Rollback() error { return s.end("rollback") }

func (s *session) end(statement string) error {
	if !s.inTx {
		return nil
	}
	_, err := s.db.raw.ExecContext(context.Background(), statement, nil)
	if err != nil && statement == "commit" {
		_, _ = s.db.raw.ExecContext(context.Background(), "rollback", nil)
	}
	s.inTx = false
	s.db.give()
	return err
}

// alone calls a function while this session is the only user.
func (s *session) alone(ctx context.Context, do func() error) error {
	if s.inTx {
		if err := s.usable(); err != nil {
			return err
		}
		return do()
	}
	if err := s.trip(ctx); err != nil {
		return err
	}
	if err := s.db.take(ctx); err != nil {
		return err
	}
	defer s.db.give()
	return do()
}

func (s *session) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	err = s.alone(ctx, func() (err error) {
		result, err = s.db.raw.ExecContext(context.Background(), query, args)
		return err
	})
	return result, err
}

func (s *session) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (found driver.Rows, err error) {
	err = s.alone(ctx, func() error {
		rows, err := s.db.raw.QueryContext(context.Background(), query, args)
		if err != nil {
			return err
		}
		defer rows.Close()
		kept := &keptRows{columns: rows.Columns()}
		for {
			row := make([]driver.Value, len(kept.columns))
			switch err := rows.Next(row); {
			case err == io.EOF:
				found = kept
				return nil
			case err != nil:
				return err
			}
			for i, v := range row {
				if b, ok := v.([]byte); ok {
					row[i] = append([]byte(nil), b...)
				}
			}
			kept.rows = append(kept.rows, row)
		}
	})
	return found, err
}

// keptRows are rows that were read at once.
type keptRows struct {
	columns []string
	rows    [][]driver.Value
}

func (r *keptRows) Columns() []string { return r.columns }
func (r *keptRows) Close() error      { return nil }
func (r *keptRows) Next(into []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(into, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}
