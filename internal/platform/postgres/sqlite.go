package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // sqlite.sql
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// sqliteConns bounds the connections to the file: in WAL mode many read while one
// writes.
const sqliteConns = 8

// sqliteSchema creates the missing tables and indexes; entgen generates it.
//
//go:embed sqlite.sql
var sqliteSchema string

// OpenSQLite opens the file at path, or a temporary file that Close removes when path
// is empty, and creates missing tables. It is the database of the embedded demo;
// versioned migrations are for Postgres.
func OpenSQLite(ctx context.Context, path string) (*DB, error) {
	db := &DB{}
	if path == "" {
		dir, err := os.MkdirTemp("", "seckill-sqlite-")
		if err != nil {
			return nil, fmt.Errorf("temporary directory: %w", err)
		}
		db.temporary, path = dir, filepath.Join(dir, "seckill.db")
	}
	pool, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		return nil, fmt.Errorf("open sqlite: %w", err)
	}
	overSQLite(db, pool)
	if _, err := pool.ExecContext(ctx, sqliteSchema); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("create the tables in %s: %w", path, err)
	}
	return db, nil
}

// OverSQLite returns the database behind the connections of a driver, which has the
// tables of SQLiteSchema.
func OverSQLite(c driver.Connector) *DB { return overSQLite(&DB{}, sql.OpenDB(c)) }

// SQLiteSchema returns the statements that create missing tables and indexes.
func SQLiteSchema() string { return sqliteSchema }

func overSQLite(db *DB, pool *sql.DB) *DB {
	pool.SetMaxOpenConns(sqliteConns)
	pool.SetMaxIdleConns(sqliteConns)
	return newDB(dialect.SQLite, pool, entsql.OpenDB(dialect.SQLite, pool), db)
}

// sqliteDSN adds the settings. A transaction takes the write lock at its start
// (immediate): a transaction that reads first and then writes would fail immediately
// after a concurrent write. Times are written in SQLite's own format, which sorts
// correctly as long as all are in UTC.
func sqliteDSN(path string) string {
	q := url.Values{
		"_pragma":      {"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)"},
		"_txlock":      {"immediate"},
		"_time_format": {"sqlite"},
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}
