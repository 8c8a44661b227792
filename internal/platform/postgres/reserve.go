package postgres

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"seckill/internal/platform/priority"
)

// pools is the driver of ent on a pool with a reserve.
type pools struct {
	*entsql.Driver
	reserve *entsql.Driver
}

func withReserve(pool, reserve *sql.DB) pools {
	return pools{entsql.OpenDB(dialect.Postgres, pool), entsql.OpenDB(dialect.Postgres, reserve)}
}

func (p pools) of(ctx context.Context) *entsql.Driver {
	if priority.IsUrgent(ctx) {
		if stats := p.DB().Stats(); stats.InUse >= stats.MaxOpenConnections {
			return p.reserve
		}
	}
	return p.Driver
}

// Exec implements dialect.ExecQuerier.
func (p pools) Exec(ctx context.Context, query string, args, v any) error {
	return p.of(ctx).Exec(ctx, query, args, v)
}

// Query implements dialect.ExecQuerier.
func (p pools) Query(ctx context.Context, query string, args, v any) error {
	return p.of(ctx).Query(ctx, query, args, v)
}

// ExecContext runs a statement of ent's client.
func (p pools) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.of(ctx).ExecContext(ctx, query, args...)
}

// QueryContext runs a query of ent's client.
func (p pools) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.of(ctx).QueryContext(ctx, query, args...)
}

// Tx implements dialect.Driver.
func (p pools) Tx(ctx context.Context) (dialect.Tx, error) { return p.of(ctx).Tx(ctx) }

// BeginTx begins a transaction with options.
func (p pools) BeginTx(ctx context.Context, opts *sql.TxOptions) (dialect.Tx, error) {
	return p.of(ctx).BeginTx(ctx, opts)
}
