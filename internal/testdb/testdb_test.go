package testdb_test

import (
	"testing"

	"seckill/internal/testdb"
)

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	one, two := testdb.Postgres(t), testdb.Postgres(t)
	if _, err := one.SQL.ExecContext(ctx, "CREATE TABLE mine (n int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := two.SQL.ExecContext(ctx, "SELECT n FROM mine"); err == nil {
		t.Error("a table made in one database is seen in the other")
	}
	n, err := one.Ent.Sale.Query().Count(ctx)
	if err != nil || n != 0 {
		t.Errorf("sales: %d, %v; want the empty table of the migrations", n, err)
	}
}

func TestADatabaseIsDroppedWithItsTest(t *testing.T) {
	observer := testdb.Postgres(t)
	var name string
	t.Run("made", func(t *testing.T) {
		db := testdb.Postgres(t)
		if err := db.SQL.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var n int
	err := observer.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", name).Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("databases named %q after the test: %d, %v; want 0", name, n, err)
	}
}
