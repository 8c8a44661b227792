package notice

import (
	"context"
	"maps"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent/noticedelivery"
	"seckill/ent/sale"
	"seckill/ent/salereminder"
)

// keep is the retention of deliveries that have ended, and of reminders after the opening.
const keep = 7 * 24 * time.Hour

// Purge deletes old deliveries and reminders, and the browsers of ended sessions, in batches. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	before := s.now().Add(-keep)
	opened := func(r *sql.Selector) {
		sales := sql.Table(sale.Table)
		r.Where(sql.In(r.C(salereminder.FieldSaleID),
			sql.Dialect(r.Dialect()).Select(sales.C(sale.FieldID)).From(sales).
				Where(sql.LT(sales.C(sale.FieldStartsAt), before))))
	}
	counts, err := s.cfg.DB.Purge(ctx, "notice_deliveries_deleted", noticedelivery.Table, noticedelivery.EndedAtLT(before))
	if err != nil {
		return counts, err
	}
	reminders, err := s.cfg.DB.Purge(ctx, "reminders_deleted", salereminder.Table, opened)
	maps.Copy(counts, reminders)
	if err != nil {
		return counts, err
	}
	subscriptions, err := s.purgeSubscriptions(ctx)
	maps.Copy(counts, subscriptions)
	return counts, err
}
