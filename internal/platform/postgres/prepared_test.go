package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

const readCounter = "SELECT * FROM counter WHERE n = $1"

// columns returns the number of columns of a kept query of the counter, run in a
// transaction.
func columns(t *testing.T, db *postgres.DB) (n, runs int) {
	t.Helper()
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		runs++
		rows, err := tx.QueryContext(postgres.WithPrepared(ctx), readCounter, 1)
		if err != nil {
			return err
		}
		defer rows.Close()
		names, err := rows.Columns()
		n = len(names)
		return errors.Join(err, rows.Err())
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, runs
}

func TestAKeptStatementIsPreparedOncePerConnection(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	db.SQL.SetMaxOpenConns(1)
	exec(t, db, "CREATE TABLE counter (n int)")
	for range 3 {
		columns(t, db)
	}
	if n := number(t, db, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%counter%'"); n != 1 {
		t.Errorf("%d prepared statements, want 1", n)
	}
}

func TestAKeptStatementSurvivesAMigration(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	db.SQL.SetMaxOpenConns(1)
	exec(t, db, "CREATE TABLE counter (n int)")
	columns(t, db)
	for _, change := range []string{
		"ALTER TABLE counter ADD COLUMN m int", // changes the result type
		"DEALLOCATE ALL",
	} {
		exec(t, db, change)
		if n, runs := columns(t, db); n != 2 || runs != 2 {
			t.Errorf("%s: %d columns after %d runs, want 2 after 2", change, n, runs)
		}
	}
}

func TestAKeptStatementKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	direct, db, proxy := throughProxy(t)
	db.SQL.SetMaxOpenConns(1)
	exec(t, direct, "CREATE TABLE counter (n int)")
	columns(t, db)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		proxy.Silence()
		_, err := tx.ExecContext(postgres.WithPrepared(ctx), readCounter, 1)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v, want the deadline", err)
	}
	proxy.Restore()
	if n, _ := columns(t, db); n != 1 {
		t.Errorf("after the silence: %d columns", n)
	}
}
