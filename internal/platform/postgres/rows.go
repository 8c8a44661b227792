package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"
)

// Rows returns the selection of the rows of a table that match all of ent's predicates, for
// DB.AnyRows.
func Rows[P ~func(*entsql.Selector)](table string, match ...P) *entsql.Selector {
	rows := entsql.Select().From(entsql.Table(table))
	for _, where := range match {
		where(rows)
	}
	return rows
}

// First selects the first of rows by a column, for DB.AnyRows: Postgres then reads the partial
// index that has the column and the condition of rows. Without an order it reads a table
// that has grown faster than its statistics from the start; it would ignore the order if
// OFFSET were missing.
func First(rows *entsql.Selector, column string) *entsql.Selector {
	return rows.OrderBy(rows.C(column)).Limit(1).Offset(0)
}

// Counts returns the numbers of rows of selections, by name, in one statement.
func (db *DB) Counts(ctx context.Context, selections map[string]*entsql.Selector) (map[string]int, error) {
	names := slices.Sorted(maps.Keys(selections))
	query, numbers := entsql.Dialect(db.Dialect).Select(), make([]any, len(names))
	for i, name := range names {
		rows := selections[name].SelectExpr(entsql.Raw("COUNT(*)"))
		query.AppendSelectExpr(entsql.ExprFunc(func(b *entsql.Builder) { b.Wrap(func(b *entsql.Builder) { b.Join(rows) }) }))
		numbers[i] = new(int)
	}
	if err := db.queryRow(ctx, query, numbers); err != nil {
		return nil, fmt.Errorf("count rows: %w", err)
	}
	counts := make(map[string]int, len(names))
	for i, name := range names {
		counts[name] = *numbers[i].(*int)
	}
	return counts, nil
}

// queryRow scans the only row of a query.
func (db *DB) queryRow(ctx context.Context, query *entsql.Selector, into []any) error {
	text, args := query.Query()
	row, err := db.Ent.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer row.Close()
	if row.Next() {
		if err := row.Scan(into...); err != nil {
			return err
		}
	}
	return row.Err()
}

// AnyRows returns a periodic.Loop's HasWork: it reports whether one of the selections has a
// row. The selections are built for each look, so that they may contain the time. All loops
// of a process that ask within lookAgain share one statement. When that fails the answer is
// true: the step then reports what is wrong.
func (db *DB) AnyRows(selections ...func() *entsql.Selector) func(context.Context) bool {
	q := &question{selections: selections}
	return func(ctx context.Context) bool { return db.looks.ask(ctx, db, q) }
}

// lookAgain is how old an answer may be: loops that rest ask at the same tick.
const lookAgain = 100 * time.Millisecond

// question is what one loop asks. Its fields are guarded by sem of looks.
type question struct {
	selections []func() *entsql.Selector
	asked      bool // it is part of the statement
	yes        bool // last answer
}

// looks are the questions of the loops of a process, which one statement answers.
type looks struct {
	sem    chan struct{} // semaphore of size 1; guards the other fields
	all    []*question   // of the loops that have asked
	looked time.Time     // when the last statement began
	failed bool          // whether the last statement failed
}

func newLooks() looks {
	return looks{sem: make(chan struct{}, 1)}
}

func (l *looks) ask(ctx context.Context, db *DB, q *question) bool {
	select {
	case l.sem <- struct{}{}:
	case <-ctx.Done():
		return true
	}
	defer func() { <-l.sem }()
	if !q.asked {
		q.asked, q.yes, l.all = true, true, append(l.all, q) // until the next statement
		return true
	}
	if now := time.Now(); now.Sub(l.looked) > lookAgain {
		l.looked = now
		l.failed = l.look(ctx, db) != nil
	}
	return l.failed || q.yes
}

// look answers all questions. The caller holds sem.
func (l *looks) look(ctx context.Context, db *DB) error {
	build := entsql.Dialect(db.Dialect)
	query := build.Select()
	for _, q := range l.all {
		exist := make([]*entsql.Predicate, len(q.selections))
		for i, rows := range q.selections {
			exist[i] = entsql.Exists(rows().SelectExpr(entsql.Raw("1")))
		}
		query.AppendSelectExpr(entsql.Or(exist...))
	}
	answers := make([]any, len(l.all))
	for i, q := range l.all {
		answers[i] = &q.yes
	}
	return db.queryRow(ctx, query, answers)
}
