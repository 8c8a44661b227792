package postgres

import (
	"context"
	"database/sql"
	"fmt"

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
