//go:build faults

package postgres_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// A commit that waits for a synchronous standby is not to be ended by its caller: the server
// would make it visible without the standby, whose promotion would lose it.
func TestNoCallerEndsTheWaitForAStandby(t *testing.T) {
	t.Parallel()
	servers := testdb.Replicate(t)
	db := testdb.Open(t, servers.URL())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.SQL.ExecContext(t.Context(), "CREATE TABLE notes (how text)")
	must(err)
	servers.Synchronous("*")
	servers.Unplug()
	const insert = "INSERT INTO notes VALUES ($1)"
	ways := map[string]func(ctx context.Context) error{
		"transaction": func(ctx context.Context) error {
			tx, err := db.SQL.BeginTx(ctx, nil)
			must(err)
			_, err = tx.ExecContext(ctx, insert, "transaction")
			must(err)
			return tx.Commit()
		},
		"statement": func(ctx context.Context) error {
			_, err := db.SQL.ExecContext(ctx, insert, "statement")
			return err
		},
		"returning": func(ctx context.Context) error {
			var how string
			return db.SQL.QueryRowContext(ctx, insert+" RETURNING how", "returning").Scan(&how)
		},
	}
	for name, way := range ways {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if err := way(ctx); err == nil {
			t.Errorf("%s: it did not wait", name)
		}
		cancel()
	}
	other, err := sql.Open("postgres", servers.PrimaryURL())
	must(err)
	defer other.Close()
	count := func() (visible, waiting int) {
		t.Helper()
		must(other.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM notes), (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep')`).Scan(&visible, &waiting))
		return visible, waiting
	}
	if visible, waiting := count(); visible != 0 || waiting != len(ways) {
		t.Errorf("%d are visible, %d wait", visible, waiting)
	}
	servers.Plug()
	testenv.Eventually(t, testenv.Wait, func() bool { visible, _ := count(); return visible == len(ways) }, "all are visible")
}
