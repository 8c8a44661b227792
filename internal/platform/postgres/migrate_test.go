package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

func TestProcessesThatMigrateAtOnceApplyEachFileOnce(t *testing.T) {
	t.Parallel()
	url := testdb.EmptyPostgresURL(t)
	type outcome struct {
		applied int
		err     error
	}
	ended := make(chan outcome, 2)
	for range 2 {
		db := testdb.Open(t, url)
		go func() {
			applied, err := db.Migrate(t.Context())
			ended <- outcome{applied, err}
		}()
	}
	total := 0
	for range 2 {
		o := <-ended
		if o.err != nil {
			t.Error(o.err)
		}
		total += o.applied
	}
	list, err := testdb.Open(t, url).MigrationStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 || total != len(list) {
		t.Errorf("%d applied by both, %d known", total, len(list))
	}
	for _, m := range list {
		if !m.Applied || m.AppliedAt.IsZero() || m.Version == 0 || !strings.HasSuffix(m.Name, ".sql") {
			t.Errorf("not as applied: %+v", m)
		}
	}
}

func TestStatusListsWhatIsNotApplied(t *testing.T) {
	t.Parallel()
	list, err := testdb.Open(t, testdb.EmptyPostgresURL(t)).MigrationStatus(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("%d known, %v", len(list), err)
	}
	for _, m := range list {
		if m.Applied {
			t.Errorf("applied to an empty database: %+v", m)
		}
	}
}

func TestMigrationsOfANewerReleaseAreCounted(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.PostgresURL(t))
	for want := range 3 {
		if n, err := db.NewerMigrations(t.Context()); n != want || err != nil {
			t.Errorf("%d newer migrations, %v, want %d", n, err, want)
		}
		exec(t, db, fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)", 29991231000000+want))
	}
}

func TestSQLiteHasNoMigrations(t *testing.T) {
	t.Parallel()
	if _, err := testdb.OpenSQLite(t, "").Migrate(t.Context()); !errors.Is(err, postgres.ErrNoMigrations) {
		t.Errorf("error is %v", err)
	}
}
