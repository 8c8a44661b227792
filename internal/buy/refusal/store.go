package refusal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/refusedattempt"
	"seckill/ent/user"
	"seckill/internal/identity/account"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// Keep is the retention of a row after its last refusal.
	Keep = 30 * 24 * time.Hour
	// maxListed bounds a list: a buyer has at most a few rows for each item of a sale.
	maxListed = 200
)

// write adds rows to those in Postgres, without those of deleted users.
func (l *Log) write(ctx context.Context, rows []row) error {
	err := l.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if l.cfg.DB.Dialect == dialect.Postgres {
			return insertArrays(ctx, tx, rows)
		}
		return insert(ctx, tx, rows)
	})
	if err != nil {
		return fmt.Errorf("write refused attempts: %w", err)
	}
	return nil
}

// addRows takes columns as arrays, and times in microseconds since $1. It costs a quarter of
// the same statement with a parameter for each value.
const addRows = `
INSERT INTO refused_attempts AS known (id, user_id, sale_id, item_id, stage, code, times, first_at, last_at, units_left, ahead)
SELECT t.id, t.buyer, t.sale, t.item, t.stage, t.code, t.times,
       $1::timestamptz + t.first * interval '1 microsecond', $1::timestamptz + t.last * interval '1 microsecond', t.units_left, t.ahead
FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::int8[], $9::int8[], $10::int8[], $11::int8[], $12::int8[])
     AS t (id, buyer, sale, item, stage, code, times, first, last, units_left, ahead)
WHERE NOT EXISTS (SELECT FROM users WHERE users.id = t.buyer AND starts_with(users.account, $13))
ON CONFLICT (user_id, sale_id, item_id, stage, code) DO UPDATE
SET times = known.times + excluded.times, last_at = excluded.last_at, units_left = excluded.units_left, ahead = excluded.ahead`

// insertArrays writes rows into Postgres.
func insertArrays(ctx context.Context, tx *ent.Tx, rows []row) error {
	if err := account.AwaitDeletions(ctx, tx); err != nil {
		return err
	}
	base := rows[0].First
	integer := func(value func(r row) int64) string {
		return postgres.Array(rows, func(dst []byte, r row) []byte { return strconv.AppendInt(dst, value(r), 10) })
	}
	optional := func(value func(r row) *int) string {
		return postgres.Array(rows, func(dst []byte, r row) []byte {
			if n := value(r); n != nil {
				return strconv.AppendInt(dst, int64(*n), 10)
			}
			return append(dst, "NULL"...)
		})
	}
	_, err := tx.ExecContext(ctx, addRows, base,
		postgres.Array(rows, func(dst []byte, _ row) []byte { return postgres.AppendUUID(dst, id.New[uuid.UUID]()) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendUUID(dst, r.user) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendUUID(dst, r.Sale) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendUUID(dst, r.Item) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendText(dst, r.Stage) }),
		postgres.Array(rows, func(dst []byte, r row) []byte { return postgres.AppendText(dst, string(r.Code)) }),
		integer(func(r row) int64 { return int64(r.Times) }),
		integer(func(r row) int64 { return r.First.Sub(base).Microseconds() }),
		integer(func(r row) int64 { return r.Last.Sub(base).Microseconds() }),
		optional(func(r row) *int { return r.Left }), optional(func(r row) *int { return r.Ahead }),
		account.DeletedPrefix,
	)
	return err
}

// insert writes rows with statements that every supported database accepts.
func insert(ctx context.Context, tx *ent.Tx, rows []row) error {
	users := make([]id.User, len(rows))
	for i, r := range rows {
		users[i] = r.user
	}
	deleted, err := tx.User.Query().Where(user.IDIn(users...), user.AccountHasPrefix(account.DeletedPrefix)).IDs(ctx)
	if err != nil {
		return fmt.Errorf("read deleted accounts: %w", err)
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return slices.Contains(deleted, r.user) })
	if len(rows) == 0 {
		return nil
	}
	insert := sql.Insert(refusedattempt.Table).Columns(refusedattempt.Columns...)
	for _, r := range rows {
		insert.Values(id.New[uuid.UUID](), r.user, r.Sale, r.Item, r.Stage, string(r.Code), r.Times, r.First, r.Last, r.Left,
			r.Ahead)
	}
	return postgres.Insert(ctx, tx, insert.OnConflict(
		sql.ConflictColumns(refusedattempt.FieldUserID, refusedattempt.FieldSaleID, refusedattempt.FieldItemID,
			refusedattempt.FieldStage, refusedattempt.FieldCode),
		sql.ResolveWith(func(u *sql.UpdateSet) {
			u.Set(refusedattempt.FieldTimes, sql.Expr("refused_attempts.times + excluded.times"))
			u.SetExcluded(refusedattempt.FieldLastAt).SetExcluded(refusedattempt.FieldUnitsLeft).
				SetExcluded(refusedattempt.FieldAhead)
		}),
	))
}

// List returns what was refused to a user in a sale, the latest first: what is written, and
// what waits in this process.
func (l *Log) List(ctx context.Context, user id.User, sale id.Sale) ([]Refusal, error) {
	l.writes.RLock()
	defer l.writes.RUnlock()
	list := l.waitingOf(buyer{user, sale})
	rows, err := l.cfg.DB.Ent.RefusedAttempt.Query().Where(refusedattempt.UserID(user), refusedattempt.SaleID(sale)).
		Order(ent.Desc(refusedattempt.FieldLastAt), ent.Desc(refusedattempt.FieldID)).Limit(maxListed).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read refused attempts: %w", err)
	}
	for _, row := range rows {
		written := Refusal{
			Sale: row.SaleID, Item: row.ItemID, Stage: row.Stage, Code: fault.Reason(row.Code), Times: row.Times,
			First: row.FirstAt, Last: row.LastAt, Left: row.UnitsLeft, Ahead: row.Ahead,
		}
		if i := slices.IndexFunc(list, func(r Refusal) bool { return r.same(&written) }); i >= 0 {
			list[i].add(&written)
		} else {
			list = append(list, written)
		}
	}
	slices.SortStableFunc(list, func(a, b Refusal) int { return b.Last.Compare(a.Last) })
	return list[:min(len(list), maxListed)], nil
}

// Purge deletes rows whose last refusal was 30 days ago, in batches. It is a
// periodic.Step.
func (l *Log) Purge(ctx context.Context) (map[string]int, error) {
	return l.cfg.DB.Purge(ctx, "attempts_deleted", refusedattempt.Table,
		refusedattempt.LastAtLT(l.cfg.Clock.Now().Add(-Keep)))
}
