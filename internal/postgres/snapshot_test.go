package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lib/pq"

	"seckill/ent"
	"seckill/internal/postgres"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// A build reads what is not in memory: its statements take longer than those of requests.
func TestASnapshotLimitsItsStatementsItself(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: testdb.ShortPostgresURL(t) + "&statement_timeout=300", MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	slow := func(limited bool) error {
		return db.ReadSnapshot(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			if limited {
				if err := db.LimitStatements(ctx, tx, testenv.Wait); err != nil {
					return err
				}
			}
			_, err := tx.ExecContext(ctx, "SELECT pg_sleep(1)")
			return err
		})
	}
	if err := slow(true); err != nil {
		t.Errorf("with a limit of its own: %v", err)
	}
	var cancelled *pq.Error
	if err := slow(false); !errors.As(err, &cancelled) || cancelled.Code != "57014" {
		t.Errorf("the next transaction of the connection: %v, want the timeout of the connection", err)
	}
}
