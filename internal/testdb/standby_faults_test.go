//go:build faults

package testdb_test

import (
	"context"
	"testing"
	"time"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestAStandbyThatIsPromotedLacksWhatItDidNotReceive(t *testing.T) {
	t.Parallel()
	r := testdb.Replicate(t)
	db := testdb.Open(t, r.URL())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(ctx context.Context, table string) error {
		_, err := db.SQL.ExecContext(ctx, "CREATE TABLE "+table+" (n int)")
		return err
	}
	must(write(t.Context(), "received"))
	r.CatchUp()
	r.Unplug()
	must(write(t.Context(), "lost"))
	r.FailOver()
	var there, lost bool
	testenv.Eventually(t, testenv.Wait, func() bool {
		return db.SQL.QueryRowContext(t.Context(), "SELECT to_regclass('received') IS NOT NULL, to_regclass('lost') IS NOT NULL").Scan(&there, &lost) == nil
	}, "the address leads to the new primary")
	if !there || lost {
		t.Errorf("received: %t, lost: %t", there, lost)
	}
	must(write(t.Context(), "later"))
}

func TestACommitWaitsForASynchronousStandby(t *testing.T) {
	t.Parallel()
	r := testdb.Replicate(t)
	db := testdb.Open(t, r.URL())
	r.Synchronous("*")
	r.Unplug()
	done := make(chan error, 1)
	go func() {
		_, err := db.SQL.ExecContext(t.Context(), "CREATE TABLE waits (n int)")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(time.Second):
	}
	r.Plug()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
