package refusal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/refusedattempt"
	"seckill/ent/user"
	"seckill/internal/identity/account"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// Keep is the retention of a row after its last refusal.
	Keep = 30 * 24 * time.Hour
	// clockSlack bounds the difference between the clocks of two processes.
	clockSlack = time.Minute
	// maxListed bounds a list: a buyer has at most a few rows of each process for each item of a sale.
	maxListed = 200
)

// write writes rows of this process to Postgres, without those of deleted users.
func (l *Log) write(ctx context.Context, rows []row) error {
	err := l.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if l.cfg.DB.Dialect == dialect.Postgres {
			if err := account.AwaitDeletions(ctx, tx); err != nil {
				return err
			}
		}
		rows, err := withoutDeleted(ctx, tx, rows)
		if err != nil {
			return err
		}
		if l.cfg.DB.Dialect != dialect.Postgres {
			return insert(ctx, tx, rows)
		}
		var fresh, known []row
		for _, r := range rows {
			if r.known {
				known = append(known, r)
			} else {
				fresh = append(fresh, r)
			}
		}
		if err := insertArrays(ctx, tx, addRows, fresh); err != nil {
			return err
		}
		return insertArrays(ctx, tx, changeRows, known)
	})
	if err != nil {
		return fmt.Errorf("write refused attempts: %w", err)
	}
	return nil
}

// withoutDeleted returns the rows of users who were not deleted since their first refusal.
func withoutDeleted(ctx context.Context, tx *ent.Tx, rows []row) ([]row, error) {
	since := slices.MinFunc(rows, func(a, b row) int { return a.First.Compare(b.First) }).First.Add(-clockSlack)
	// disabled_at has an index, and a deleted account is disabled.
	deleted, err := tx.User.Query().Where(user.DisabledAtGTE(since), user.AccountHasPrefix(account.DeletedPrefix)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read deleted accounts: %w", err)
	}
	if len(deleted) == 0 {
		return rows, nil
	}
	gone := collect.Set(deleted)
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return gone[r.user] }), nil
}

// addRows takes columns as arrays, and times in microseconds since $1. What the rows of a crowd have
// in common is in $2 to $5, one element for each kind of refusal: half of the time of the statement
// is for reading the arrays. unnest fills arrays that are too short with NULL.
const addRows = `
INSERT INTO refused_attempts (id, user_id, sale_id, item_id, stage, code, times, first_at, last_at, units_left, ahead)
SELECT t.id, t.buyer, ($2::uuid[])[t.kind], ($3::uuid[])[t.kind], ($4::text[])[t.kind], ($5::text[])[t.kind], t.times,
       $1::timestamptz + t.first * interval '1 microsecond', $1::timestamptz + t.last * interval '1 microsecond', t.units_left, t.ahead
FROM unnest($6::uuid[], $7::uuid[], $8::int8[], $9::int8[], $10::int8[], $11::int8[], $12::int8[], $13::int8[])
     AS t (id, buyer, kind, times, first, last, units_left, ahead)`

// kind is what the refusals of a crowd have in common.
type kind struct {
	sale        id.Sale
	item        id.Item
	stage, code string
}

// kindsOf returns the kinds of rows, and their positions from 1 as SQL counts them.
func kindsOf(rows []row) (kinds []kind, position map[kind]int64) {
	position = map[kind]int64{}
	for _, r := range rows {
		if k := kindOf(r); position[k] == 0 {
			kinds = append(kinds, k)
			position[k] = int64(len(kinds))
		}
	}
	return kinds, position
}

func kindOf(r row) kind { return kind{r.Sale, r.Item, r.Stage, string(r.Code)} }

// changeRows is addRows for rows that Postgres may have; looking for them costs half as much again.
const changeRows = addRows + `
ON CONFLICT (id) DO UPDATE
SET times = excluded.times, last_at = excluded.last_at, units_left = excluded.units_left, ahead = excluded.ahead`

// insertArrays writes rows into Postgres.
func insertArrays(ctx context.Context, tx *ent.Tx, statement string, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	base := rows[0].First
	integer := func(value func(r row) int64) string {
		return postgres.Array(rows, func(dst []byte, r row) []byte { return strconv.AppendInt(dst, value(r), 10) })
	}
	optional := func(value func(r row) *int) string {
		if !slices.ContainsFunc(rows, func(r row) bool { return value(r) != nil }) {
			return "{}"
		}
		return postgres.Array(rows, func(dst []byte, r row) []byte {
			if n := value(r); n != nil {
				return strconv.AppendInt(dst, int64(*n), 10)
			}
			return append(dst, "NULL"...)
		})
	}
	kinds, position := kindsOf(rows)
	_, err := tx.ExecContext(ctx, statement, base,
		postgres.Array(kinds, func(dst []byte, k kind) []byte { return postgres.AppendUUID(dst, k.sale) }),
		postgres.Array(kinds, func(dst []byte, k kind) []byte { return postgres.AppendUUID(dst, k.item) }),
		postgres.Array(kinds, func(dst []byte, k kind) []byte { return postgres.AppendText(dst, k.stage) }),
		postgres.Array(kinds, func(dst []byte, k kind) []byte { return postgres.AppendText(dst, k.code) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendUUID(dst, r.id) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendUUID(dst, r.user) }),
		integer(func(r row) int64 { return position[kindOf(r)] }),
		integer(func(r row) int64 { return int64(r.Times) }),
		integer(func(r row) int64 { return r.First.Sub(base).Microseconds() }),
		integer(func(r row) int64 { return r.Last.Sub(base).Microseconds() }),
		optional(func(r row) *int { return r.Left }), optional(func(r row) *int { return r.Ahead }),
	)
	return err
}

// insert writes rows with statements that every supported database accepts.
func insert(ctx context.Context, tx *ent.Tx, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	insert := sql.Insert(refusedattempt.Table).Columns(refusedattempt.Columns...)
	for _, r := range rows {
		insert.Values(r.id, r.user, r.Sale, r.Item, r.Stage, string(r.Code), r.Times, r.First, r.Last, r.Left, r.Ahead)
	}
	return postgres.Insert(ctx, tx, insert.OnConflict(
		sql.ConflictColumns(refusedattempt.FieldID),
		sql.ResolveWith(func(u *sql.UpdateSet) {
			u.SetExcluded(refusedattempt.FieldTimes).SetExcluded(refusedattempt.FieldLastAt).
				SetExcluded(refusedattempt.FieldUnitsLeft).SetExcluded(refusedattempt.FieldAhead)
		}),
	))
}

// List returns what was refused to a user in a sale, the latest first: what is written, and
// what waits in this process.
func (l *Log) List(ctx context.Context, user id.User, sale id.Sale) ([]Refusal, error) {
	waiting := l.waitingOf(buyer{user, sale})
	rows, err := l.cfg.DB.Ent.RefusedAttempt.Query().Where(refusedattempt.UserID(user), refusedattempt.SaleID(sale)).
		Order(ent.Desc(refusedattempt.FieldLastAt), ent.Desc(refusedattempt.FieldID)).Limit(maxListed).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read refused attempts: %w", err)
	}
	var list []Refusal
	merge := func(r Refusal) {
		if i := slices.IndexFunc(list, func(known Refusal) bool { return known.same(&r) }); i >= 0 {
			list[i].add(&r)
		} else {
			list = append(list, r)
		}
	}
	for _, r := range waiting {
		merge(r.Refusal)
	}
	for _, r := range rows {
		if slices.ContainsFunc(waiting, func(w row) bool { return w.id == r.ID }) {
			continue // the waiting row has its total
		}
		merge(Refusal{
			Sale: r.SaleID, Item: r.ItemID, Stage: r.Stage, Code: fault.Reason(r.Code), Times: r.Times,
			First: r.FirstAt, Last: r.LastAt, Left: r.UnitsLeft, Ahead: r.Ahead,
		})
	}
	slices.SortStableFunc(list, func(a, b Refusal) int { return b.Last.Compare(a.Last) })
	return list, nil
}

// Purge deletes rows whose last refusal was 30 days ago, in batches. It is a
// periodic.Step.
func (l *Log) Purge(ctx context.Context) (map[string]int, error) {
	before := l.cfg.Clock.Now().Add(-Keep)
	return l.cfg.DB.Purge(ctx, "attempts_deleted", refusedattempt.Table,
		refusedattempt.IDLT(lowestID(before)), refusedattempt.LastAtLT(before))
}
