package notice

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent/noticedelivery"
	"seckill/ent/sale"
	"seckill/ent/salereminder"
)

// keep is the retention of deliveries that have ended, and of reminders after the opening.
const keep = 7 * 24 * time.Hour

// Purge deletes old deliveries and reminders. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	before := s.now().Add(-keep)
	deliveries, err := s.cfg.DB.Ent.NoticeDelivery.Delete().Where(noticedelivery.EndedAtLT(before)).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("purge notice deliveries: %w", err)
	}
	reminders, err := s.cfg.DB.Ent.SaleReminder.Delete().Where(func(r *sql.Selector) {
		opened := sql.Table(sale.Table)
		r.Where(sql.In(r.C(salereminder.FieldSaleID),
			sql.Dialect(r.Dialect()).Select(opened.C(sale.FieldID)).From(opened).Where(sql.LT(opened.C(sale.FieldStartsAt), before))))
	}).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("purge reminders: %w", err)
	}
	return map[string]int{"notice_deliveries_deleted": deliveries, "reminders_deleted": reminders}, nil
}
