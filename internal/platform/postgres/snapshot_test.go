package postgres_test

import (
	"context"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

// A build reads what is not in memory: its statements take longer than those of requests.
func TestASnapshotLimitsItsStatementsItself(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: testdb.PostgresURL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	limit := func(own time.Duration) (is string) {
		t.Helper()
		err := db.ReadSnapshot(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			if own > 0 {
				if err := db.LimitStatements(ctx, tx, own); err != nil {
					return err
				}
			}
			rows, err := tx.QueryContext(ctx, "SELECT current_setting('statement_timeout')")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				if err := rows.Scan(&is); err != nil {
					return err
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	before := limit(0)
	if got := limit(90 * time.Second); got != "90s" || before == got {
		t.Errorf("with a limit of its own: %s; without: %s", got, before)
	}
	if got := limit(0); got != before {
		t.Errorf("the next transaction of the connection: %s, want %s", got, before)
	}
}
