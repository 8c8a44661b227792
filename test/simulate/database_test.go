package simulate_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync"
	"syscall"
	"time"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
)

// rawConn is what the driver of SQLite offers.
type rawConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
}

// errReset is how a lost connection to the database shows.
func errReset() error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} }

// engine is the only connection to SQLite, for all stories one after the other: preparing
// statements is most of their cost. It is used by one goroutine at a time.
type engine struct {
	raw    rawConn
	known  map[string]driver.Stmt
	tables []string
	kept   map[string]bool // attached databases that hold copies

	scripts  *scripts       // of the Redis of the story
	defaults *config.Config // whose making takes 2 ms
}

// maxStatements bounds the memory of an engine.
const maxStatements = 4000

func newEngine() (*engine, error) {
	c, err := (&sqlite.Driver{}).Open("file::memory:?_time_format=sqlite")
	if err != nil {
		return nil, err
	}
	e := &engine{raw: c.(rawConn), known: map[string]driver.Stmt{}, kept: map[string]bool{}, scripts: newScripts(), defaults: config.Default()}
	if err := e.keepPlans(); err != nil {
		return nil, err
	}
	if _, err := e.raw.ExecContext(context.Background(), postgres.SQLiteSchema(), nil); err != nil {
		return nil, err
	}
	rows, err := e.query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'", nil)
	if err != nil {
		return nil, err
	}
	for _, row := range rows.rows {
		e.tables = append(e.tables, row[0].(string))
	}
	return e, nil
}

// keepPlans lets SQLite keep the plan of a statement whatever values it gets. Otherwise it prepares
// each that a partial index might serve again for each execution.
func (e *engine) keepPlans() error {
	c := reflect.ValueOf(e.raw).Elem()
	tls, db := (*libc.TLS)(c.FieldByName("tls").UnsafePointer()), uintptr(c.FieldByName("db").Uint())
	args := tls.Alloc(16)
	defer tls.Free(16)
	if code := sqlite3.Xsqlite3_db_config(tls, db, sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(args, int32(1), uintptr(0))); code != 0 {
		return fmt.Errorf("keep the plans of SQLite: code %d", code)
	}
	return nil
}

// statement returns a prepared statement.
func (e *engine) statement(query string) (driver.Stmt, error) {
	if s := e.known[query]; s != nil {
		return s, nil
	}
	if len(e.known) == maxStatements {
		for text, s := range e.known {
			_ = s.Close()
			delete(e.known, text)
		}
	}
	s, err := e.raw.PrepareContext(context.Background(), query)
	if err == nil {
		e.known[query] = s
	}
	return s, err
}

func (e *engine) exec(query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := e.statement(query)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(context.Background(), args)
}

// query reads all rows at once, so that no statement is open between two calls.
func (e *engine) query(query string, args []driver.NamedValue) (*keptRows, error) {
	s, err := e.statement(query)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), args)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	kept := &keptRows{columns: rows.Columns()}
	for {
		row := make([]driver.Value, len(kept.columns))
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return kept, nil
		case err != nil:
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = append([]byte(nil), b...)
			}
		}
		kept.rows = append(kept.rows, row)
	}
}

// replace replaces all rows of a database by those of another one; main is that of the
// story, the others are copies, and "" is empty.
func (e *engine) replace(into, from string) error {
	if into != "main" && !e.kept[into] {
		statements := []string{"ATTACH ':memory:' AS " + into}
		for _, t := range e.tables {
			statements = append(statements, "CREATE TABLE "+into+".`"+t+"` AS SELECT * FROM main.`"+t+"` WHERE 0")
		}
		for _, statement := range statements {
			if _, err := e.raw.ExecContext(context.Background(), statement, nil); err != nil {
				return err
			}
		}
		e.kept[into] = true
	}
	statements := []string{"BEGIN"}
	for _, t := range e.tables {
		statements = append(statements, "DELETE FROM "+into+".`"+t+"`")
		if from != "" {
			statements = append(statements, "INSERT INTO "+into+".`"+t+"` SELECT * FROM "+from+".`"+t+"`")
		}
	}
	for _, statement := range append(statements, "COMMIT") {
		if _, err := e.exec(statement, nil); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// database is the database of a story. A transaction or a single statement is the only
// user of the engine: none waits inside SQLite, where virtual time would stand still.
type database struct {
	engine *engine
	turn   chan struct{} // has a value while nothing uses the engine

	mu    sync.Mutex
	fault func(*machine) dbFault // guarded by mu; asked at each commit; nil = none
	away  bool                   // guarded by mu; nothing is answered
}

// dbFault is what happens to a commit.
type dbFault int

const (
	commits      dbFault = iota
	commitLost           // the connection breaks before the commit
	commitUnseen         // it breaks after the commit
)

func newDatabase(e *engine) *database {
	d := &database{engine: e, turn: make(chan struct{}, 1)}
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

// replace is engine.replace between two transactions.
func (d *database) replace(into, from string) error {
	if err := d.take(context.Background()); err != nil {
		return err
	}
	defer d.give()
	return d.engine.replace(into, from)
}

func (d *database) outcome(m *machine) dbFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		return commits
	}
	return d.fault(m)
}

func (d *database) set(fault func(*machine) dbFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

func (d *database) setAway(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *database) isAway() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.away
}

// connector connects a machine to the database.
type connector struct {
	db      *database
	network *network
	machine *machine
}

func (c *connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.db.isAway() || c.network.isDead(c.machine) {
		return nil, errReset()
	}
	return &session{connector: c}, nil
}

// session is a connection to the database, for a statement or a transaction.
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

// IsValid returns false, so that no second caller uses the session: database/sql locks a
// connection with a mutex to read a result, and virtual time would stand still if a later
// statement held it.
func (s *session) IsValid() bool { return false }

func (s *session) Close() error {
	if s.inTx {
		return s.Rollback()
	}
	return nil
}

func (s *session) usable() error {
	if s.broken || s.db.isAway() || s.network.isDead(s.machine) {
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
	if _, err := s.db.engine.exec("BEGIN IMMEDIATE", nil); err != nil {
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
	err := s.end("COMMIT")
	if err == nil && (fault == commitUnseen || s.usable() != nil) {
		s.broken = true
		return errReset()
	}
	return err
}

// Rollback implements driver.Tx.
func (s *session) Rollback() error { return s.end("ROLLBACK") }

func (s *session) end(statement string) error {
	if !s.inTx {
		return nil
	}
	_, err := s.db.engine.exec(statement, nil)
	if err != nil && statement == "COMMIT" {
		_, _ = s.db.engine.exec("ROLLBACK", nil)
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
		result, err = s.db.engine.exec(query, args)
		return err
	})
	return result, err
}

func (s *session) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (found driver.Rows, err error) {
	err = s.alone(ctx, func() error {
		rows, err := s.db.engine.query(query, args)
		found = rows
		return err
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
