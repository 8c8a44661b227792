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
