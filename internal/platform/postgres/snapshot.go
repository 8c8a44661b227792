package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"entgo.io/ent/dialect"

	"seckill/ent"
)

// ReadSnapshot runs fn in a transaction that sees the database as of its first query
// (REPEATABLE READ on Postgres; the only mode of SQLite), so that several reads are
// consistent. It is read-only: the transaction is always rolled back.
func (db *DB) ReadSnapshot(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	opts := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if db.Dialect == dialect.SQLite {
		opts = nil
	}
	tx, err := db.Ent.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing to commit
	return fn(ctx, tx)
}

// LimitStatements sets how long each later statement of a transaction may take, instead
// of the statement timeout of the connection. It has no effect on SQLite.
func (db *DB) LimitStatements(ctx context.Context, tx *ent.Tx, limit time.Duration) error {
	if db.Dialect == dialect.SQLite {
		return nil
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", limit.Milliseconds())); err != nil {
		return fmt.Errorf("set statement timeout: %w", err)
	}
	return nil
}
