package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// maxPrepared bounds the prepared statements of a connection; there are only a few
// distinct texts.
const maxPrepared = 16

type preparedKey struct{}

// WithPrepared returns a context under which Postgres keeps prepared statements: each
// connection parses and plans a text once instead of every time, and needs half the
// round trips. Use it for frequent statements whose text does not depend on their
// parameters.
func WithPrepared(ctx context.Context) context.Context {
	return context.WithValue(ctx, preparedKey{}, true)
}

// pqStmt is the set of interfaces of lib/pq's statement that database/sql uses. It does
// not receive the context, because on its end it would wait for the server's reply. The
// connection is interrupted instead, and the transaction notifies the server.
type pqStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// preparedFor returns the kept statement of a text, or nil when it is to be run
// directly.
func (c *conn) preparedFor(ctx context.Context, query string) (pqStmt, error) {
	if !c.keepsState || ctx.Value(preparedKey{}) == nil {
		return nil, nil
	}
	if stmt, ok := c.prepared[query]; ok || len(c.prepared) >= maxPrepared {
		return stmt, nil
	}
	raw, err := c.pqConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	stmt, ok := raw.(pqStmt)
	if !ok {
		return nil, fmt.Errorf("lib/pq statement %T lacks what this version had", raw)
	}
	if c.prepared == nil {
		c.prepared = map[string]pqStmt{}
	}
	c.prepared[query] = stmt
	return stmt, nil
}

// forget removes a kept statement that no longer matches the tables, or that the server
// no longer has.
func (c *conn) forget(query string, err error) {
	if isStale(err) {
		delete(c.prepared, query)
	}
}

// isStale reports whether a statement must be prepared again: a migration changed its
// result type ("cached plan must not change result type"), or a proxy in front of the
// server discarded it.
func isStale(err error) bool {
	return pq.As(err, pqerror.FeatureNotSupported, pqerror.InvalidSQLStatementName) != nil
}
