package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// maxPrepared bounds the statements that a connection keeps: their texts are few.
const maxPrepared = 16

type preparedKey struct{}

// WithPrepared returns a context under which Postgres keeps the statements that it is
// given: each connection has a text parsed and planned once, not each time, and
// half of the round trips fall away. It is for statements that are run all the
// time and whose text does not depend on what they are about.
func WithPrepared(ctx context.Context) context.Context {
	return context.WithValue(ctx, preparedKey{}, true)
}

// pqStmt is what a statement of lib/pq can do and database/sql makes use of. It is
// not given the end of a context: it would wait until the server has heard of it.
// The wire is cut then, and the transaction tells the server.
type pqStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// preparedFor returns the kept statement of a text, nil when it is to be run as any
// other.
func (c *conn) preparedFor(ctx context.Context, query string) (pqStmt, error) {
	if ctx.Value(preparedKey{}) == nil {
		return nil, nil //nolint:nilnil // none is an answer
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

// forget lets go of a kept statement that does not fit the tables any more, or
// that the server has not got any more.
func (c *conn) forget(query string, err error) {
	if isStale(err) {
		delete(c.prepared, query)
	}
}

// isStale reports that a statement has to be prepared again: a migration changed
// the type of its result ("cached plan must not change result type"), or somebody
// between us and the server discarded it.
func isStale(err error) bool {
	return pq.As(err, pqerror.FeatureNotSupported, pqerror.InvalidSQLStatementName) != nil
}
