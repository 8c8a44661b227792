package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"seckill/migrations"
)

// Concurrent migrations wait for each other with this interval and number of attempts.
const (
	lockEverySeconds = 1
	lockTries        = 300
)

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
	err = db.withGoose(func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		applied = len(results)
		return err
	})
	return applied, err
}

// MigrationStatus returns all known migrations, oldest first.
func (db *DB) MigrationStatus(ctx context.Context) ([]Migration, error) {
	var list []Migration
	err := db.withGoose(func(p *goose.Provider) error {
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

// withGoose calls do with a provider on its own connections, because a migration may
// take longer than the product's statement timeout.
func (db *DB) withGoose(do func(*goose.Provider) error) error {
	if db.Dialect != dialect.Postgres {
		return ErrNoMigrations
	}
	pool, err := openPool(db.url, session{statement: migrationTimeout, lock: migrationTimeout})
	if err != nil {
		return err
	}
	defer pool.Close()
	p, err := newGoose(pool)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if err := do(p); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func newGoose(pool *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEverySeconds, lockTries))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, pool, migrations.Files, goose.WithSessionLocker(locker))
}
