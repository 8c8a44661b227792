package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"seckill/ent"
	"seckill/internal/platform/postgres"
	"seckill/internal/testdb"
)

func TestAnErrorRollsBack(t *testing.T) {
	t.Parallel()
	for name, db := range both(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exec(t, db, "CREATE TABLE counter (n int)")
			mine := errors.New("mine")
			err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
				if _, err := tx.ExecContext(ctx, "INSERT INTO counter VALUES (1)"); err != nil {
					return err
				}
				return mine
			})
			if !errors.Is(err, mine) {
				t.Errorf("error is %v, want fn's own", err)
			}
			if n := number(t, db, "SELECT count(*) FROM counter"); n != 0 {
				t.Errorf("%d rows were kept", n)
			}
		})
	}
}

func TestAPanicRollsBackAndFreesTheConnection(t *testing.T) {
	t.Parallel()
	for name, db := range both(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db.SQL.SetMaxOpenConns(1)
			func() {
				defer func() { _ = recover() }()
				_ = db.WithTx(t.Context(), func(context.Context, *ent.Tx) error { panic("mine") })
			}()
			if n := number(t, db, "SELECT 7"); n != 7 {
				t.Errorf("got %d", n)
			}
		})
	}
}

func TestACancelledTransactionIsNotCommitted(t *testing.T) {
	t.Parallel()
	for name, db := range both(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exec(t, db, "CREATE TABLE counter (n int)")
			ctx, cancel := context.WithCancel(t.Context())
			err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
				defer cancel()
				_, err := tx.ExecContext(ctx, "INSERT INTO counter VALUES (1)")
				return err
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, postgres.ErrCommitUnknown) {
				t.Errorf("error is %v, want a plain cancellation", err)
			}
			if n := number(t, db, "SELECT count(*) FROM counter"); n != 0 {
				t.Errorf("%d rows were kept", n)
			}
		})
	}
}

func TestACommitWhoseReplyIsLostIsUnknown(t *testing.T) {
	t.Parallel()
	direct, db, proxy := throughProxy(t)
	exec(t, direct, "CREATE TABLE counter (n int)")
	runs := 0
	proxy.LoseReplyTo("COMMIT\x00")
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		runs++
		_, err := tx.ExecContext(ctx, "INSERT INTO counter VALUES (1)")
		return err
	})
	if !errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("error is %v, want ErrCommitUnknown", err)
	}
	if rows := number(t, direct, "SELECT count(*) FROM counter"); rows != 1 || runs != 1 {
		t.Errorf("%d rows after %d runs; the commit took effect and must not be repeated", rows, runs)
	}
}

func TestACommitThatTheDatabaseRefusesIsKnown(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	exec(t, db, "CREATE TABLE once (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)", "INSERT INTO once VALUES (1)")
	err := db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO once VALUES (1)")
		return err
	})
	if !postgres.IsUnique(err) || errors.Is(err, postgres.ErrCommitUnknown) {
		t.Errorf("error is %v, want a broken unique constraint and nothing unknown", err)
	}
}

func TestADeadlockIsRunAgain(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	exec(t, db, "CREATE TABLE counter (id int, n int)", "INSERT INTO counter VALUES (1, 0), (2, 0)")
	var bothLocked sync.WaitGroup
	bothLocked.Add(2)
	var runs atomic.Int64
	crossing := func(first, second int) error {
		var once sync.Once
		return db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			runs.Add(1)
			for i, row := range []int{first, second} {
				if _, err := tx.ExecContext(ctx, "UPDATE counter SET n = n + 1 WHERE id = $1", row); err != nil {
					return fmt.Errorf("row %d: %w", row, err)
				}
				if i == 0 {
					once.Do(func() { bothLocked.Done(); bothLocked.Wait() })
				}
			}
			return nil
		})
	}
	ended := make(chan error, 2)
	go func() { ended <- crossing(1, 2) }()
	go func() { ended <- crossing(2, 1) }()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	// On a slow machine the aborted transaction locks its row again before the other one
	// wakes up: another deadlock.
	if sum := number(t, db, "SELECT sum(n) FROM counter"); sum != 4 || runs.Load() < 3 {
		t.Errorf("sum %d after %d runs; want 4 after 3 or more", sum, runs.Load())
	}
}

func TestUniqueIsRecognisedBySQLSTATEInAnyLanguage(t *testing.T) {
	t.Parallel()
	for name, db := range both(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exec(t, db, "CREATE TABLE once (n int PRIMARY KEY, m int UNIQUE CHECK (m > 0))", "INSERT INTO once VALUES (1, 1)")
			for statement, want := range map[string]bool{
				"INSERT INTO once VALUES (1, 2)":  true,
				"INSERT INTO once VALUES (2, 1)":  true,
				"INSERT INTO once VALUES (3, -1)": false,
				"INSERT INTO nowhere VALUES (1)":  false,
			} {
				_, err := db.SQL.ExecContext(t.Context(), statement)
				if err == nil || postgres.IsUnique(err) != want || postgres.Retryable(err) {
					t.Errorf("%s: %v; IsUnique %t, want %t; Retryable %t, want false", statement, err, postgres.IsUnique(err), want, postgres.Retryable(err))
				}
			}
		})
	}
}
