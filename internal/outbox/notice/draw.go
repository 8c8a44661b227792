package notice

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/itemdraw"
	"seckill/ent/waitlistentry"
	"seckill/internal/outbox/mail"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// tellAfter is the time from the end of a draw until those without an offer are notified: the
	// first offers are made in less.
	tellAfter = time.Minute
	// tellBatch bounds the entries of one transaction.
	tellBatch = 200
	// maxTells bounds the transactions of one look, so that it ends within its timeout.
	maxTells = 20
)

// untold matches draws whose last numbers were not notified.
func untold(q *sql.Selector) {
	q.Where(sql.ColumnsLT(q.C(itemdraw.FieldTold), q.C(itemdraw.FieldEntries)))
}

// TellDraws writes the notices of entries that were drawn and have no offer, in the order of their
// numbers. It is a periodic.Step.
func (s *Service) TellDraws(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for range maxTells {
		found, told, err := s.tellSome(ctx)
		counts["told"] += told
		if err != nil || !found {
			return counts, err
		}
	}
	return counts, nil
}

// tellSome writes the notices of one batch. found is false if no draw has any left.
func (s *Service) tellSome(ctx context.Context) (found bool, told int, err error) {
	due := itemdraw.And(itemdraw.StateEQ(itemdraw.StateDRAWN), itemdraw.DrawnAtLTE(s.now().Add(-tellAfter)), untold)
	if found, err := s.cfg.DB.Ent.ItemDraw.Query().Where(due).Exist(ctx); err != nil || !found {
		return false, 0, err
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		found, told = false, 0
		query := tx.ItemDraw.Query().Where(due).Limit(1)
		postgres.SkipLocked(s.cfg.DB.Dialect, query)
		draws, err := query.All(ctx)
		if err != nil || len(draws) == 0 {
			return err
		}
		d := draws[0]
		rows, err := tx.WaitlistEntry.Query().Where(waitlistentry.ItemID(d.ID), waitlistentry.LineGT(d.Told),
			waitlistentry.StatusEQ(waitlistentry.StatusWAITING)).
			Order(ent.Asc(waitlistentry.FieldLine)).Limit(tellBatch).All(ctx)
		if err != nil {
			return err
		}
		notices, err := describeDraw(ctx, tx, d, rows)
		if err != nil {
			return err
		}
		if err := s.dispatch(ctx, tx, notices); err != nil {
			return err
		}
		upTo := int64(d.Entries)
		if len(rows) == tellBatch {
			upTo = rows[tellBatch-1].Line
		}
		found, told = true, len(rows)
		return tx.ItemDraw.UpdateOneID(d.ID).SetTold(upTo).Exec(ctx)
	})
	if err != nil {
		return false, told, fmt.Errorf("notices of a draw: %w", err)
	}
	return found, told, nil
}

// describeDraw returns the notices of entries of a draw. Their link opens the sale.
func describeDraw(ctx context.Context, tx *ent.Tx, d *ent.ItemDraw, rows []*ent.WaitlistEntry) ([]notice, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	products, err := productsOf(ctx, tx, []id.Item{d.ID})
	if err != nil {
		return nil, err
	}
	of, err := tx.Sale.Get(ctx, d.SaleID)
	if err != nil {
		return nil, fmt.Errorf("read sale of notices: %w", err)
	}
	p, notices := products[d.ID], make([]notice, len(rows))
	for i, row := range rows {
		told := notice{user: row.UserID, subject: row.ID.UUID(), kind: DrawResult, until: of.EndsAt}
		told.content = mail.Content{
			Path: p.path(d.ID), Notice: mail.NoticeContent{Name: p.name, Number: strconv.FormatInt(row.Line, 10)},
		}
		notices[i] = told
	}
	return notices, nil
}
