package refusal

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	// keep is the retention of a row after its last refusal.
	keep = 30 * 24 * time.Hour
	// maxListed bounds a list: a buyer has at most a few rows for each item of a sale.
	maxListed = 200
)

// write adds rows to those in Postgres.
func (l *Log) write(ctx context.Context, rows map[key]*Refusal) error {
	err := l.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		deleted, err := l.deleted(ctx, tx, rows)
		if err != nil {
			return err
		}
		keys := slices.DeleteFunc(sorted(rows), func(k key) bool { return slices.Contains(deleted, k.user) })
		if len(keys) == 0 {
			return nil
		}
		insert := sql.Insert(refusedattempt.Table).Columns(refusedattempt.Columns...)
		for _, k := range keys {
			r := rows[k]
			insert.Values(id.New[uuid.UUID](), k.user, k.sale, k.item, k.stage, string(k.code), r.Times, r.First, r.Last, r.Left, r.Ahead)
		}
		return postgres.Insert(ctx, tx, insert.OnConflict(
			sql.ConflictColumns(refusedattempt.FieldUserID, refusedattempt.FieldSaleID, refusedattempt.FieldItemID, refusedattempt.FieldStage, refusedattempt.FieldCode),
			sql.ResolveWith(func(u *sql.UpdateSet) {
				u.Set(refusedattempt.FieldTimes, sql.Expr("refused_attempts.times + excluded.times"))
				u.SetExcluded(refusedattempt.FieldLastAt).SetExcluded(refusedattempt.FieldUnitsLeft).SetExcluded(refusedattempt.FieldAhead)
			}),
		))
	})
	if err != nil {
		return fmt.Errorf("write refused attempts: %w", err)
	}
	return nil
}

// deleted returns the users of rows whose accounts are deleted. It locks the accounts of the
// others against deletion until the transaction ends: a deletion then finds the rows.
func (l *Log) deleted(ctx context.Context, tx *ent.Tx, rows map[key]*Refusal) ([]id.User, error) {
	users := make(map[id.User]bool, len(rows))
	for k := range rows {
		users[k.user] = true
	}
	query := tx.User.Query().Where(user.IDIn(slices.Collect(maps.Keys(users))...)).Order(ent.Asc(user.FieldID))
	if l.cfg.DB.Dialect == dialect.Postgres {
		query.ForShare()
	}
	found, err := query.Select(user.FieldID, user.FieldAccount).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the accounts: %w", err)
	}
	var deleted []id.User
	for _, u := range found {
		if account.IsDeleted(u.Account) {
			deleted = append(deleted, u.ID)
		}
	}
	return deleted, nil
}

// List returns what was refused to a user in a sale, the latest first.
func (l *Log) List(ctx context.Context, user id.User, sale id.Sale) ([]Refusal, error) {
	rows, err := l.cfg.DB.Ent.RefusedAttempt.Query().Where(refusedattempt.UserID(user), refusedattempt.SaleID(sale)).
		Order(ent.Desc(refusedattempt.FieldLastAt), ent.Desc(refusedattempt.FieldID)).Limit(maxListed).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read refused attempts: %w", err)
	}
	list := make([]Refusal, len(rows))
	for i, row := range rows {
		list[i] = Refusal{
			Sale: row.SaleID, Item: row.ItemID, Stage: row.Stage, Code: fault.Reason(row.Code), Times: row.Times,
			First: row.FirstAt, Last: row.LastAt, Left: row.UnitsLeft, Ahead: row.Ahead,
		}
	}
	return list, nil
}

// Purge deletes rows whose last refusal was 30 days ago, in batches. It is a
// periodic.Step.
func (l *Log) Purge(ctx context.Context) (map[string]int, error) {
	return l.cfg.DB.Purge(ctx, "attempts_deleted", refusedattempt.Table, refusedattempt.LastAtLT(l.cfg.Clock.Now().Add(-keep)))
}
