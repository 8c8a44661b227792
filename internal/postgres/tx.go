package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	"github.com/cenkalti/backoff/v5"
	"github.com/lib/pq"

	"seckill/ent"
)

// Bounds of running a transaction again.
const (
	maxTries  = 6 // the first and five more
	firstWait = 5 * time.Millisecond
	maxWait   = 100 * time.Millisecond
)

// ErrCommitUnknown says that the commit failed in a way that does not tell
// whether the transaction took effect. The caller must not compensate: it reads
// what is there, or does the same keyed work again.
var ErrCommitUnknown = errors.New("commit: outcome unknown")

// WithTx runs fn in a READ COMMITTED transaction and commits it. A transaction
// that the database gave up for the sake of another one is run again, with
// jitter, at most five times: fn must not keep anything from a run before.
//
// An error of fn rolls back and is returned as it is. A failing commit returns
// an error that wraps ErrCommitUnknown, unless the database said that it rolled
// back.
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
		return last // err is the same, or the end of ctx, which says less
	}
	return nil
}

func (db *DB) tryTx(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	opts := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	if db.Dialect == dialect.SQLite {
		opts = nil // one writer at a time; it knows no levels
	}
	tx, err := db.Ent.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	ended := false
	defer func() {
		if !ended { // also when fn panics
			_ = tx.Rollback() // the reason is on its way already; the server ends what is left
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

// commitOutcome tells a commit that certainly did not happen from one that may
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
