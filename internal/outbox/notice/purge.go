package notice

import (
	"context"
	"maps"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	"seckill/ent/noticedelivery"
	"seckill/ent/sale"
	"seckill/ent/salereminder"
)

// keep is the retention of deliveries that have ended, and of reminders after the opening.
const keep = 7 * 24 * time.Hour

// Purge deletes old deliveries and reminders, and the browsers of ended sessions, in batches. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	before := s.now().Add(-keep)
	counts, err := s.cfg.DB.Purge(ctx, "notice_deliveries_deleted", func(ctx context.Context, tx *ent.Tx, limit int) (int, error) {
		ids, err := tx.NoticeDelivery.Query().Where(noticedelivery.EndedAtLT(before)).Limit(limit).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return tx.NoticeDelivery.Delete().Where(noticedelivery.IDIn(ids...)).Exec(ctx)
	})
	if err != nil {
		return counts, err
	}
	opened := func(r *sql.Selector) {
		sales := sql.Table(sale.Table)
		r.Where(sql.In(r.C(salereminder.FieldSaleID),
			sql.Dialect(r.Dialect()).Select(sales.C(sale.FieldID)).From(sales).Where(sql.LT(sales.C(sale.FieldStartsAt), before))))
	}
	reminders, err := s.cfg.DB.Purge(ctx, "reminders_deleted", func(ctx context.Context, tx *ent.Tx, limit int) (int, error) {
		ids, err := tx.SaleReminder.Query().Where(opened).Limit(limit).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return tx.SaleReminder.Delete().Where(salereminder.IDIn(ids...)).Exec(ctx)
	})
	maps.Copy(counts, reminders)
	if err != nil {
		return counts, err
	}
	subscriptions, err := s.purgeSubscriptions(ctx)
	maps.Copy(counts, subscriptions)
	return counts, err
}
