package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/lib/pq"

	"seckill/internal/tracing"
)

// ErrConnectionLost reports that the connection failed while a statement was running:
// outside a transaction it is unknown whether the statement took effect. It is an error
// of the service, not of the statement (fault.IsTransient).
var ErrConnectionLost = fmt.Errorf("connection lost while the statement ran: %w", io.ErrUnexpectedEOF)

// connector opens connections of lib/pq and wraps them as conn.
type connector struct {
	*pq.Connector
	keepsState bool // the connection leads to one server: it may keep prepared statements
}

// Connect opens one connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var s netConnSlot
	raw, err := c.Connector.Connect(context.WithValue(ctx, netConnKey{}, &s))
	if s.release != nil {
		s.release()
	}
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

// connectError is the error of a connection that could not be opened. It is a net.Error, and
// thereby transient (fault.IsTransient), whatever its cause: lib/pq returns plain errors
// when no host takes writes and when TLS fails.
type connectError struct{ err error }

// Error returns the text of the cause.
func (e *connectError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
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

// conn is a connection of lib/pq whose statements return when their context ends.
// lib/pq itself only sends a cancel request to the server, and waits for the reply. A
// result that stalls half-way is bounded by the read deadline instead.
type conn struct {
	pqConn
	netConn    *netConn
	keepsState bool
	prepared   map[string]pqStmt // by text, see WithPrepared
}

// QueryContext runs a query.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	ctx, span := statement(ctx, query)
	defer c.netConn.bound(ctx)()
	rows, err := run(ctx, c, query,
		func() (driver.Rows, error) { return c.pqConn.QueryContext(ctx, query, args) },
		func(stmt pqStmt) (driver.Rows, error) { return stmt.QueryContext(context.WithoutCancel(ctx), args) })
	err = inTime(ctx, err)
	span.End(err)
	return rows, err
}

// ExecContext runs a statement once. database/sql repeats a statement after
// driver.ErrBadConn, even when the first run took effect and only its reply was lost;
// therefore the error is replaced by ErrConnectionLost.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ctx, span := statement(ctx, query)
	defer c.netConn.bound(ctx)()
	res, err := run(ctx, c, query,
		func() (driver.Result, error) { return c.pqConn.ExecContext(ctx, query, args) },
		func(stmt pqStmt) (driver.Result, error) { return stmt.ExecContext(context.WithoutCancel(ctx), args) })
	if errors.Is(err, driver.ErrBadConn) {
		err = ErrConnectionLost
	}
	err = inTime(ctx, err)
	span.End(err)
	return res, err
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
func run[R any](ctx context.Context, c *conn, query string, plain func() (R, error), prepared func(pqStmt) (R, error)) (result R, err error) {
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
	stmt, err := c.pqConn.PrepareContext(ctx, query)
	return stmt, inTime(ctx, err)
}

// BeginTx begins a transaction.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	defer c.netConn.bound(ctx)()
	tx, err := c.pqConn.BeginTx(ctx, opts)
	return tx, inTime(ctx, err)
}

// Ping checks that the server responds.
func (c *conn) Ping(ctx context.Context) error {
	defer c.netConn.bound(ctx)()
	return inTime(ctx, c.pqConn.Ping(ctx))
}

// inTime adds the context's error to an error that it caused.
func inTime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}
