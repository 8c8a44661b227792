package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"entgo.io/ent/dialect"
)

// sqliteConns bounds the connections to the file: WAL lets many read while one
// writes.
const sqliteConns = 8

// creating keeps two files of one process from being made at the same moment:
// ent prepares its list of tables, which all clients share, each time.
var creating sync.Mutex

// OpenSQLite opens the file at path, or a temporary one that Close removes when
// path is empty, and creates the tables that are missing. It is the record of
// the embedded demo; versioned migrations are for Postgres.
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
	pool.SetMaxOpenConns(sqliteConns)
	pool.SetMaxIdleConns(sqliteConns)
	newDB(dialect.SQLite, pool, db)
	creating.Lock()
	err = db.Ent.Schema.Create(ctx)
	creating.Unlock()
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("create the tables in %s: %w", path, err)
	}
	return db, nil
}

// sqliteDSN adds the settings. A transaction takes the write lock when it begins
// (immediate): one that read first and then writes would fail at once when
// somebody wrote in between. Instants are written in SQLite's own format, which
// sorts like the instants as long as all are in UTC.
func sqliteDSN(path string) string {
	q := url.Values{
		"_pragma":      {"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)"},
		"_txlock":      {"immediate"},
		"_time_format": {"sqlite"},
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}
