package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"

	"github.com/lib/pq"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/tracing"
)

// ErrConnectionLost reports that the connection failed while a statement was running:
// outside a transaction it is unknown whether the statement took effect. It is an error
// of the service, not of the statement (fault.IsTransient).
var ErrConnectionLost = fmt.Errorf("connection lost while the statement ran: %w", io.ErrUnexpectedEOF)

// connector opens connections of lib/pq and wraps them as conn.
type connector struct {
	*pq.Connector
	pooled     *pooledStart  // nil = the timeouts are not sent at all
	keepsState bool          // the connection leads to one server: it may keep prepared statements
	dials      chan struct{} // holds one value per connection that is being opened
}

// pooledStart opens connections through a pooler in session mode, such as PgBouncer, which
// refuses timeouts as parameters of the start and passes them as statements.
type pooledStart struct {
	*pq.Connector
	timeouts string      // statements that set them
	needed   atomic.Bool // the pooler has refused them once
}

// Connect opens one connection. Opening one costs the server a process and a check of the
// password: a pool that opens all at once delays its own statements, and those of others.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case c.dials <- struct{}{}:
		defer func() { <-c.dials }()
	case <-ctx.Done():
		return nil, &connectError{fmt.Errorf("wait for other connections to open: %w", ctx.Err())}
	}
	raw, s, err := c.open(ctx)
	if err != nil {
		return nil, &connectError{inTime(ctx, err)}
	}
	full, ok := raw.(pqConn)
	if !ok || s.netConn == nil {
		_ = raw.Close()
		return nil, fmt.Errorf("lib/pq connection %T lacks what this version had", raw)
	}
	return &conn{pqConn: full, netConn: s.netConn, keepsState: c.keepsState}, nil
}

func (c connector) open(ctx context.Context) (driver.Conn, netConnSlot, error) {
	if c.pooled == nil || !c.pooled.needed.Load() {
		raw, s, err := dial(ctx, c.Connector)
		if c.pooled == nil || !refusesParameter(err) {
			return raw, s, err
		}
	}
	raw, s, err := dial(ctx, c.pooled.Connector)
	if err != nil {
		return nil, s, err
	}
	if err := guardError(func() error { return execSimple(ctx, raw, c.pooled.timeouts) }); err != nil {
		_ = raw.Close()
		return nil, s, fmt.Errorf("set the timeouts: %w", err)
	}
	c.pooled.needed.Store(true)
	return raw, s, nil
}

func dial(ctx context.Context, from *pq.Connector) (driver.Conn, netConnSlot, error) {
	var s netConnSlot
	raw, err := from.Connect(context.WithValue(ctx, netConnKey{}, &s))
	if s.release != nil {
		s.release()
	}
	return raw, s, err
}

func execSimple(ctx context.Context, raw driver.Conn, statements string) error {
	e, ok := raw.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("lib/pq connection %T lacks what this version had", raw)
	}
	_, err := e.ExecContext(ctx, statements, nil)
	return err
}

// refusesParameter reports whether a pooler has refused a parameter of the start.
func refusesParameter(err error) bool {
	e := pq.As(err)
	return e != nil && e.Code == "08P01" && strings.Contains(e.Message, "startup parameter")
}

// connectError is the error of a connection that could not be opened. It is a net.Error, and
// thereby transient (fault.IsTransient), whatever its cause: lib/pq returns plain errors
// when no host takes writes and when TLS fails.
type connectError struct{ err error }

// Error returns the text of the cause.
func (e *connectError) Error() string { return e.err.Error() }

func (e *connectError) Unwrap() error { return e.err }

// Timeout reports whether the time was up.
func (e *connectError) Timeout() bool { return errors.Is(e.err, context.DeadlineExceeded) }

// Temporary reports that another attempt may succeed.
func (e *connectError) Temporary() bool { return true }

// pqConn is the set of interfaces of lib/pq's connection that database/sql uses.
type pqConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// conn is a connection of lib/pq whose statements return when their context ends, and
// that the pool drops as soon as it is out of step with its server. lib/pq itself only sends a
// cancel request to the server and waits for the reply, and keeps connections
// whose reply it has not read to its end.
type conn struct {
	pqConn
	netConn    *netConn
	keepsState bool
	prepared   map[string]pqStmt // by text, see WithPrepared
	bad        bool              // an error left the state of the connection unknown
}

// IsValid reports whether the connection can run another statement.
func (c *conn) IsValid() bool { return !c.bad && c.netConn.inStep() && c.pqConn.IsValid() }

// ResetSession is called before each use but the first, and checks that the server has not
// closed the connection since.
func (c *conn) ResetSession(ctx context.Context) error {
	if !c.IsValid() || !c.netConn.quiet() {
		return driver.ErrBadConn
	}
	return c.pqConn.ResetSession(ctx)
}

// QueryContext runs a query. Only one that changes nothing is cancelled at the server, see
// ExecContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	cancels := ctx
	if !isRead(query) {
		cancels = context.WithoutCancel(ctx)
	}
	return c.query(ctx, query, func() (driver.Rows, error) {
		return run(ctx, c, query,
			func() (driver.Rows, error) { return c.pqConn.QueryContext(cancels, query, args) },
			func(stmt pqStmt) (driver.Rows, error) { return stmt.QueryContext(context.WithoutCancel(ctx), args) })
	})
}

// ExecContext runs a statement once. The end of its context is not sent to the server: it would
// end the wait of a commit for a synchronous standby, so that what the standby does not have
// becomes visible. The timeouts of the session bound the statement there.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, query, func() (driver.Result, error) {
		return run(ctx, c, query,
			func() (driver.Result, error) { return c.pqConn.ExecContext(context.WithoutCancel(ctx), query, args) },
			func(stmt pqStmt) (driver.Result, error) { return stmt.ExecContext(context.WithoutCancel(ctx), args) })
	})
}

// query runs a query by do. Its context bounds the reading of the rows too.
func (c *conn) query(ctx context.Context, query string, do func() (driver.Rows, error)) (driver.Rows, error) {
	ctx, span := statement(ctx, query)
	release := c.netConn.bound(ctx)
	raw, err := guard(do)
	err = c.outcome(ctx, err)
	if !isRead(query) {
		err = once(err)
	}
	span.End(err)
	if err != nil {
		release()
		return nil, err
	}
	full, ok := raw.(pqRows)
	if !ok {
		release()
		return nil, fmt.Errorf("lib/pq rows %T lack what this version had", raw)
	}
	return &rows{pqRows: full, conn: c, ctx: ctx, release: release}, nil
}

func (c *conn) exec(ctx context.Context, query string, do func() (driver.Result, error)) (driver.Result, error) {
	ctx, span := statement(ctx, query)
	defer c.netConn.bound(ctx)()
	res, err := guard(do)
	err = once(c.outcome(ctx, err))
	span.End(err)
	return res, err
}

// isRead reports whether a query changes nothing, so that database/sql may repeat it.
func isRead(query string) bool {
	return len(query) >= 6 && strings.EqualFold(query[:6], "select")
}

// once replaces the error after which database/sql repeats a statement, even when the first
// run took effect and only its reply was lost.
func once(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return ErrConnectionLost
	}
	return err
}

// outcome returns the error of a statement. Any but one that the server has reported ends
// the use of the connection.
func (c *conn) outcome(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, driver.ErrSkip) || errors.Is(err, pq.ErrInFailedTransaction) {
		return err
	}
	if e := pq.As(err); e == nil || e.Fatal() {
		c.bad = true
		if !c.netConn.inStep() || !c.pqConn.IsValid() || errors.Is(err, errOutOfStep) {
			err = lost(err)
		} // else an argument that lib/pq cannot send: a bug, and no matter of the server
	}
	return inTime(ctx, err)
}

// errOutOfStep is the error of a reply that lib/pq cannot read.
var errOutOfStep = errors.New("the reply of the server breaks the protocol")

// lost makes an error count as a lost connection. database/sql and fault.IsTransient know
// what is left as it is.
func lost(err error) error {
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, driver.ErrBadConn) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, err)
}

// guard turns a panic of lib/pq, which reads past the end of a message that is shorter than
// its contents say, into an error.
func guard[R any](do func() (R, error)) (result R, err error) {
	defer func() {
		if p := fault.Caught(recover(), fault.InReply); p != nil {
			err = fmt.Errorf("%w: %v", errOutOfStep, p)
		}
	}()
	return do()
}

// guardError is guard for functions that return an error only.
func guardError(do func() error) error {
	_, err := guard(func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// statement begins the span of a statement. Its text has no values of users: they are
// arguments.
func statement(ctx context.Context, query string) (context.Context, tracing.Span) {
	ctx, span := tracing.Start(ctx, "postgres statement")
	span.Text("db.system.name", "postgresql")
	span.Text("db.query.text", query)
	return ctx, span
}

// run runs a statement directly, or as a kept prepared statement (see WithPrepared).
func run[R any](ctx context.Context, c *conn, query string, plain func() (R, error),
	prepared func(pqStmt) (R, error)) (result R, err error) {
	stmt, err := c.preparedFor(ctx, query)
	switch {
	case err != nil:
		return result, err
	case stmt == nil:
		return plain()
	}
	if result, err = prepared(stmt); err != nil {
		c.forget(query, err)
	}
	return result, err
}

// PrepareContext prepares a statement.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.netConn.bound(ctx)()
	raw, err := guard(func() (driver.Stmt, error) { return c.pqConn.PrepareContext(ctx, query) })
	if err != nil {
		return nil, c.outcome(ctx, err)
	}
	full, ok := raw.(pqStmt)
	if !ok {
		return nil, fmt.Errorf("lib/pq statement %T lacks what this version had", raw)
	}
	return &stmt{pqStmt: full, conn: c, query: query}, nil
}

// BeginTx begins a transaction. lib/pq would send the end of its context to the server also
// during the commit, see ExecContext.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	defer c.netConn.bound(ctx)()
	raw, err := guard(func() (driver.Tx, error) { return c.pqConn.BeginTx(context.WithoutCancel(ctx), opts) })
	if err != nil {
		return nil, c.outcome(ctx, err)
	}
	return &tx{Tx: raw, conn: c}, nil
}

// Ping checks that the server responds.
func (c *conn) Ping(ctx context.Context) error {
	defer c.netConn.bound(ctx)()
	return c.outcome(ctx, guardError(func() error { return c.pqConn.Ping(ctx) }))
}

type tx struct {
	driver.Tx
	conn *conn
}

// Commit commits.
func (t *tx) Commit() error { return t.end(t.Tx.Commit) }

// Rollback rolls back.
func (t *tx) Rollback() error { return t.end(t.Tx.Rollback) }

func (t *tx) end(do func() error) error {
	return t.conn.outcome(context.Background(), guardError(do))
}

// stmt is a statement that database/sql prepared. Those of WithPrepared are kept raw.
type stmt struct {
	pqStmt
	conn  *conn
	query string
}

// QueryContext runs the statement.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.query, func() (driver.Rows, error) {
		return s.pqStmt.QueryContext(context.WithoutCancel(ctx), args)
	})
}

// ExecContext runs the statement once.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s.query, func() (driver.Result, error) {
		return s.pqStmt.ExecContext(context.WithoutCancel(ctx), args)
	})
}

// Close closes the statement.
func (s *stmt) Close() error {
	return s.conn.outcome(context.Background(), guardError(s.pqStmt.Close))
}

// pqRows is the set of interfaces of lib/pq's rows that database/sql uses.
type pqRows interface {
	driver.Rows
	driver.RowsNextResultSet
	driver.RowsColumnTypeScanType
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypePrecisionScale
}

// rows are the rows of a query. The end of its context interrupts their reading.
type rows struct {
	pqRows
	conn    *conn
	ctx     context.Context // of the query that the rows belong to
	release func()
}

// Next reads a row.
func (r *rows) Next(dest []driver.Value) error {
	err := guardError(func() error { return r.pqRows.Next(dest) })
	return r.outcome(err)
}

// NextResultSet goes on to the next result.
func (r *rows) NextResultSet() error {
	return r.outcome(guardError(r.pqRows.NextResultSet))
}

// Close reads the rest.
func (r *rows) Close() error {
	defer r.release()
	return r.outcome(guardError(r.pqRows.Close))
}

func (r *rows) outcome(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // database/sql looks at the bare value too
		return err
	}
	if pq.As(err) == nil && !errors.Is(err, errOutOfStep) {
		err = fmt.Errorf("%w: %w", errOutOfStep, err) // also a message that lib/pq did not expect here
	}
	return r.conn.outcome(r.ctx, err)
}

// inTime adds the context's error to an error that it caused.
func inTime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}
