package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"seckill/migrations"
)

// Concurrent migrations wait for each other with this interval and number of attempts.
const (
	lockEvery = time.Second
	lockTries = 300
)

// ErrMigrationRuns reports that another process kept the lock of the migrations.
var ErrMigrationRuns = errors.New("another migration is running")

// ErrNoMigrations reports a database without versioned migrations: SQLite gets its
// tables from OpenSQLite.
var ErrNoMigrations = errors.New("versioned migrations are for postgres")

// Migration is one versioned change of the tables.
type Migration struct {
	Version   int64  // time of its creation, yyyymmddhhmmss
	Name      string // file name
	Applied   bool
	AppliedAt time.Time // zero when not applied
}

// Migrate applies the missing migrations and returns how many it applied. Concurrent
// calls wait for each other.
func (db *DB) Migrate(ctx context.Context) (applied int, err error) {
	err = db.withGoose(func(p *goose.Provider, pool *sql.DB) error {
		return locked(ctx, pool, func() error {
			results, err := p.Up(ctx)
			applied = len(results)
			return err
		})
	})
	return applied, err
}

// MigrationStatus returns all known migrations, oldest first.
func (db *DB) MigrationStatus(ctx context.Context) ([]Migration, error) {
	var list []Migration
	err := db.withGoose(func(p *goose.Provider, _ *sql.DB) error {
		states, err := p.Status(ctx)
		for _, s := range states {
			list = append(list, Migration{
				Version: s.Source.Version, Name: s.Source.Path,
				Applied: s.State == goose.StateApplied, AppliedAt: s.AppliedAt,
			})
		}
		return err
	})
	return list, err
}

// NewerMigrations returns the number of migrations that were applied by a newer release
// and are unknown to this one.
func (db *DB) NewerMigrations(ctx context.Context) (n int, err error) {
	known, err := db.MigrationStatus(ctx)
	if err != nil || len(known) == 0 {
		return 0, err
	}
	const query = "SELECT count(DISTINCT version_id) FROM goose_db_version WHERE is_applied AND version_id > $1"
	if err := db.SQL.QueryRowContext(ctx, query, known[len(known)-1].Version).Scan(&n); err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	return n, nil
}

// withGoose calls do with a provider on its own connections, because a migration may
// take longer than the product's statement timeout.
func (db *DB) withGoose(do func(*goose.Provider, *sql.DB) error) error {
	if db.Dialect != dialect.Postgres {
		return ErrNoMigrations
	}
	pool, _, err := openPool(db.options, session{statement: migrationTimeout, lock: migrationTimeout,
		idleInTx: migrationTimeout})
	if err != nil {
		return err
	}
	defer pool.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, pool, migrations.Files)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if err := do(p, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// locked calls do while no other process migrates. The lock belongs to a transaction,
// which keeps its server behind a pooler in transaction mode, unlike a session. It has
// the id of goose's session lock, and thus also excludes older versions. The transaction
// asks without waiting, and without parameters: a waiting statement would block CREATE
// INDEX CONCURRENTLY, and so would the portal of a statement with parameters, which keeps
// its snapshot.
func locked(ctx context.Context, pool *sql.DB, do func() error) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // ends the lock; nothing was written
	if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return err
	}
	ask := "SELECT pg_try_advisory_xact_lock(" + strconv.FormatInt(lock.DefaultLockID, 10) + ")"
	every := time.NewTicker(lockEvery)
	defer every.Stop()
	for range lockTries {
		var got bool
		if err := tx.QueryRowContext(ctx, ask).Scan(&got); err != nil {
			return err
		}
		if got {
			return do()
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ErrMigrationRuns
}
