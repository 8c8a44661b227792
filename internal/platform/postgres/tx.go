package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/cenkalti/backoff/v5"
	"github.com/lib/pq"

	"seckill/ent"
	"seckill/internal/platform/tracing"
)

// Bounds of transaction retries.
const (
	maxTries  = 6 // the first attempt and five retries
	firstWait = 5 * time.Millisecond
	maxWait   = 100 * time.Millisecond
)

// ErrCommitUnknown reports a failed commit whose outcome is unknown. The caller must
// not compensate: it reads the current state, or repeats the same keyed work.
var ErrCommitUnknown = errors.New("commit: outcome unknown")

// WithTx runs fn in a READ COMMITTED transaction and commits it. A transaction that the
// database aborted in favour of another one is retried with jitter, at most five times:
// fn must not keep anything from a previous attempt.
//
// An error of fn causes a rollback and is returned unchanged. A failed commit returns
// an error that wraps ErrCommitUnknown, unless the database reported a rollback.
func (db *DB) WithTx(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	wait := &backoff.ExponentialBackOff{
		InitialInterval: firstWait, MaxInterval: maxWait, Multiplier: 2, RandomizationFactor: 0.5,
	}
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = db.tryTx(ctx, fn)
		if last != nil && !Retryable(last) {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(maxTries))
	if err != nil {
		return last // err is the same, or the end of ctx, which has less information
	}
	return nil
}

func (db *DB) tryTx(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) (err error) {
	ctx, span := tracing.Start(ctx, "postgres transaction")
	defer func() { span.End(err) }()
	opts := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	if db.Dialect == dialect.SQLite {
		opts = nil // SQLite has one writer at a time and no isolation levels
	}
	tx, err := db.Ent.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	ended := false
	defer func() {
		if !ended { // also after a panic of fn
			_ = tx.Rollback() // the cause is already being returned; the server ends what is left
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("before commit: %w", err)
	}
	ended = true
	return commitOutcome(tx.Commit())
}

// commitOutcome distinguishes a commit that certainly did not happen from one that may
// have happened.
func commitOutcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, pq.ErrInFailedTransaction), Retryable(err), isIntegrity(err):
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
}

// SkipLocked lets a query of a transaction lock its rows and leave out those that another
// transaction has locked. SQLite allows one writer at a time and needs no row locks. name
// is the dialect.
func SkipLocked[Q any](name string, query interface {
	ForUpdate(opts ...entsql.LockOption) Q
},
) {
	if name == dialect.Postgres {
		query.ForUpdate(entsql.WithLockAction(entsql.SkipLocked))
	}
}

// ReadSnapshot runs fn in a transaction that sees the database as of its first query
// (REPEATABLE READ on Postgres; the only mode of SQLite), so that several reads are
// consistent. It is read-only: the transaction is always rolled back.
func (db *DB) ReadSnapshot(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	opts := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if db.Dialect == dialect.SQLite {
		opts = nil
	}
	tx, err := db.Ent.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing to commit
	return fn(ctx, tx)
}

// LimitStatements sets how long each later statement of a transaction may take, instead
// of the statement timeout of the connection. It has no effect on SQLite.
func (db *DB) LimitStatements(ctx context.Context, tx *ent.Tx, limit time.Duration) error {
	if db.Dialect == dialect.SQLite {
		return nil
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", limit.Milliseconds())); err != nil {
		return fmt.Errorf("set statement timeout: %w", err)
	}
	return nil
}

const (
	// PurgeBatch bounds the rows that one transaction of Purge deletes.
	PurgeBatch = 1000
	// maxPurges bounds the transactions of one Purge: 100,000 rows.
	maxPurges = 100
)

// Purge deletes the rows of a table that match in batches, each in a transaction of its own,
// until a batch has fewer than PurgeBatch rows; the rest waits for the next call. match is
// predicates of ent, and an order. The result is the total under a name, as a periodic.Step
// returns it. An error names that, too.
func (db *DB) Purge(ctx context.Context, name, table string, match ...func(*entsql.Selector)) (map[string]int, error) {
	build := entsql.Dialect(db.Dialect)
	old := build.Select().From(entsql.Table(table))
	for _, where := range match {
		where(old)
	}
	query, args := build.Delete(table).Where(entsql.In("id", old.Select(old.C("id")).Limit(PurgeBatch))).Query()
	total := 0
	for range maxPurges {
		var n int64
		err := db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			result, err := tx.ExecContext(ctx, query, args...)
			if err == nil {
				n, err = result.RowsAffected()
			}
			return err
		})
		if err != nil {
			return map[string]int{name: total}, fmt.Errorf("purge %s: %w", name, err)
		}
		total += int(n)
		if n < PurgeBatch {
			break
		}
	}
	return map[string]int{name: total}, nil
}
