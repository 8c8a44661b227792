package postgres

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Insert runs an INSERT … ON CONFLICT, for which ent would generate as much code for every table
// as for all else. The statement is that of Postgres, which SQLite understands.
func Insert(ctx context.Context, tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, insert *entsql.InsertBuilder) error {
	insert.SetDialect(dialect.Postgres)
	query, args := insert.Query()
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}
