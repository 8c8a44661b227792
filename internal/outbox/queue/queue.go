// Package queue owns how processes share the sending of e-mails, webhooks and notices: a
// process claims rows that are due, tries each, and stores the result. It repeats failed
// attempts, with pauses that grow.
//
//	PENDING ──claim──► attempt ────────► done or GIVEN_UP
//	   ▲               (due_at = end of the lease)   │
//	   └──────── failed: due_at = after a pause ─────┘
//
// Rows of a process that ends during an attempt are claimed by another one after the lease,
// so that an attempt is made at least once. It does not own the tables, or know what is sent.
package queue

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/telemetry"
)

// States of a row, beside Queue.Done.
const (
	pending = "PENDING"
	givenUp = "GIVEN_UP"
)

// Outcomes of attempts, beside Queue.Done in lower case.
const (
	Failed  = "failed" // repeated later
	GivenUp = "given_up"
)

// Queue is the work in one table. It is safe for concurrent use by any number of processes.
type Queue struct {
	DB    *postgres.DB
	Now   func() time.Time
	Table string // has the columns id, state, attempts, due_at, retry_until, error and ended_at
	Done  string // state of a row whose attempt succeeded
	// Content is a column that is emptied when a row ends; "" = none.
	Content  string
	Pauses   Pauses
	Lease    time.Duration // longer than all attempts of a batch take
	Batch    int           // rows of one claim
	Parallel int           // attempts at a time
}

// Pauses are the pauses between the attempts: First, then three times as long as the one
// before, at most Most.
type Pauses struct{ First, Most time.Duration }

// After returns the pause after an attempt, the first of which is 1.
func (p Pauses) After(attempts int) time.Duration {
	wait := p.First
	for range attempts - 1 {
		if wait *= 3; wait >= p.Most {
			return p.Most
		}
	}
	return wait
}

// Attempts returns counters of attempts by outcome. Help ends with a full stop.
func (q *Queue) Attempts(of telemetry.Factory, name, help string) *prometheus.CounterVec {
	done := strings.ToLower(q.Done)
	help += " Label outcome: " + done + ", failed (repeated later), given_up."
	return telemetry.FromZero(of.Counters(name, help, "outcome"), done, Failed, GivenUp)
}

// Due reports whether a row that matches is due.
func (q *Queue) Due(ctx context.Context, match ...func(*sql.Selector)) (bool, error) {
	ids, err := column[uuid.UUID](ctx, q.DB.Ent, q.due(match).Limit(1))
	return len(ids) > 0, err
}

// DueRows selects what is due, for DB.AnyRows.
func (q *Queue) DueRows() *sql.Selector { return q.due(nil) }

// due returns the query of the ids of due rows that match.
func (q *Queue) due(match []func(*sql.Selector)) *sql.Selector {
	query := sql.Dialect(q.DB.Dialect).Select().From(sql.Table(q.Table))
	query.Select(query.C("id")).Where(sql.And(sql.EQ(query.C("state"), pending), sql.LTE(query.C("due_at"), q.Now())))
	for _, where := range match {
		where(query)
	}
	return query
}

// Work claims due rows that match, those that are due first, reads them, and calls try for
// each, some at a time. It returns their number and the first error.
func Work[ID, R any](
	ctx context.Context, q *Queue, read func(context.Context, ...ID) ([]R, error), try func(context.Context, R) error,
	match ...func(*sql.Selector),
) (int, error) {
	// Most looks find nothing, and need no transaction for that.
	if due, err := q.Due(ctx, match...); err != nil || !due {
		return 0, err
	}
	ids, err := claim[ID](ctx, q, match)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	rows, err := read(ctx, ids...)
	if err != nil {
		return 0, fmt.Errorf("read claimed %s: %w", q.Table, err)
	}
	var tasks errgroup.Group
	tasks.SetLimit(q.Parallel)
	for _, row := range rows {
		tasks.Go(func() (err error) {
			defer periodic.Recover(&err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return try(ctx, row)
		})
	}
	return len(rows), tasks.Wait()
}

// claim reserves due rows for this process and returns their ids.
func claim[ID any](ctx context.Context, q *Queue, match []func(*sql.Selector)) (ids []ID, err error) {
	err = q.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		due := q.due(match)
		due.OrderBy(due.C("due_at"), due.C("id")).Limit(q.Batch)
		if q.DB.Dialect == dialect.Postgres { // SQLite has one writer at a time
			due.ForUpdate(sql.WithLockAction(sql.SkipLocked))
		}
		build := sql.Dialect(q.DB.Dialect)
		// A common table expression is evaluated once; a subquery may be evaluated again, and
		// lock other rows.
		ids, err = column[ID](ctx, tx, build.Update(q.Table).Prefix(build.With("due").As(due)).
			Add("attempts", 1).Set("due_at", q.Now().Add(q.Lease)).
			Where(sql.In("id", build.Select("id").From(sql.Table("due")))).Returning("id"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", q.Table, err)
	}
	return ids, nil
}

// Attempt is an attempt at a claimed row.
type Attempt struct {
	ID         uuid.UUID
	Number     int // 1 = the first
	RetryUntil time.Time
	Columns    map[string]any // further columns to store with the result
	// Then runs in the transaction that stores the result, unless another process has made
	// the next attempt; nil = nothing.
	Then func(ctx context.Context, tx *ent.Tx, outcome string) error
}

// Try makes an attempt, stores its result and returns the outcome. An attempt whose lease
// ended has no effect: another process made the next one.
func (q *Queue) Try(ctx context.Context, a *Attempt, deliver func(context.Context) error) (outcome string, err error) {
	failure := deliver(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err() // the process ends: another one repeats it after the lease
	}
	query, outcome := q.result(a, failure)
	if a.Then == nil {
		_, err = exec(ctx, q.DB.Ent, query)
	} else {
		err = q.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if n, err := exec(ctx, tx, query); err != nil || n == 0 {
				return err
			}
			return a.Then(ctx, tx, outcome)
		})
	}
	if err != nil {
		return outcome, fmt.Errorf("store the result in %s of %s: %w", q.Table, a.ID, err)
	}
	return outcome, nil
}

// result returns the statement that stores the result of an attempt, and its outcome.
func (q *Queue) result(a *Attempt, failure error) (*sql.UpdateBuilder, string) {
	now := q.Now()
	next := now.Add(q.Pauses.After(a.Number))
	update := sql.Dialect(q.DB.Dialect).Update(q.Table).Set("error", Reason(failure)).
		Where(sql.And(sql.EQ("id", a.ID), sql.EQ("attempts", a.Number), sql.EQ("state", pending)))
	for name, value := range a.Columns {
		update.Set(name, value)
	}
	state := q.Done
	if _, last := errors.AsType[final](failure); last || failure != nil && next.After(a.RetryUntil) {
		state = givenUp
	} else if failure != nil {
		return update.Set("due_at", next), Failed
	}
	if q.Content != "" {
		update.SetNull(q.Content)
	}
	return update.Set("state", state).Set("ended_at", now), strings.ToLower(state)
}

// Final marks the error of an attempt that is not to be repeated.
func Final(err error) error { return final{err} }

type final struct{ error }

func (f final) Unwrap() error { return f.error }

// ErrOver reports an attempt at something whose reason has ended. It is final.
var ErrOver = Final(errors.New("its reason has ended"))

// maxReason bounds the stored text in bytes.
const maxReason = 200

// Reason returns the text of an error in the length that is stored: valid UTF-8 of at most
// 200 bytes.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return fault.Shorten(err.Error(), maxReason)
}

// statements is ent's client or a transaction of it.
type statements interface {
	ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error)
}

// exec runs a statement and returns the number of its rows.
func exec(ctx context.Context, on statements, statement sql.Querier) (int64, error) {
	query, args := statement.Query()
	result, err := on.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func column[T any](ctx context.Context, on statements, statement sql.Querier) (values []T, err error) {
	query, args := statement.Query()
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if err := sql.ScanSlice(rows, &values); err != nil {
		return nil, err
	}
	return values, rows.Err()
}
