package postgres_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"seckill/ent"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

// both returns a database of each kind, for tests of common behaviour.
func both(t *testing.T) map[string]*postgres.DB {
	t.Helper()
	return map[string]*postgres.DB{"postgres": testdb.Postgres(t), "sqlite": testdb.OpenSQLite(t, "")}
}

func TestABusyFileIsTriedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a file with spaces.db")
	db := testdb.OpenSQLite(t, path)
	exec(t, db, "CREATE TABLE counter (n int)")
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	runs := 0
	err = db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		runs++
		if runs == 1 { // a real error of a writer that conflicts with another one
			_, err := other.ExecContext(ctx, "BEGIN IMMEDIATE")
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO counter VALUES (1)")
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%v after %d runs, want success in the second", err, runs)
	}
	if n := number(t, db, "SELECT count(*) FROM counter"); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestAFileThatStaysBusyEndsInAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seckill.db")
	db := testdb.OpenSQLite(t, path)
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	runs := 0
	err = db.WithTx(t.Context(), func(ctx context.Context, _ *ent.Tx) error {
		runs++
		_, err := other.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if !postgres.Retryable(err) || runs != 6 {
		t.Errorf("%v after %d runs, want the busy error after 6", err, runs)
	}
}

func TestWritersOfOneFileAllSucceed(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 10
	path := filepath.Join(t.TempDir(), "seckill.db")
	dbs := []*postgres.DB{testdb.OpenSQLite(t, path), testdb.OpenSQLite(t, path)}
	exec(t, dbs[0], "CREATE TABLE counter (n int)", "INSERT INTO counter VALUES (0)")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				err := dbs[w%2].WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
					_, err := tx.ExecContext(ctx, "UPDATE counter SET n = n + 1")
					return err
				})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	if n := number(t, dbs[0], "SELECT n FROM counter"); n != writers*each {
		t.Errorf("counter is %d, want %d", n, writers*each)
	}
}

func TestInstantsComeBackAsTheyWereAndSort(t *testing.T) {
	t.Parallel()
	base := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	instants := []time.Time{base, base.Add(time.Microsecond), base.Add(500 * time.Millisecond), base.Add(time.Second)}
	for name, db := range both(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, at := range instants {
				err := db.Ent.Goods.Create().SetID(id.New[id.Goods]()).SetName("x").SetListPriceMinor(1).SetCurrency("EUR").SetCreatedAt(at).Exec(t.Context())
				if err != nil {
					t.Fatal(err)
				}
			}
			rows, err := db.Ent.Goods.Query().Order(ent.Asc("created_at")).All(t.Context())
			if err != nil || len(rows) != len(instants) {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			for i, row := range rows {
				if !row.CreatedAt.Equal(instants[i]) {
					t.Errorf("place %d has %s, want %s", i, row.CreatedAt, instants[i])
				}
			}
		})
	}
}
