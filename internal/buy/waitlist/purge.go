package waitlist

import (
	"context"
	"time"

	"seckill/ent"
	"seckill/ent/waitlistentry"
)

// purgeAfter is how long an entry is kept after the buyer left or the offer expired.
const purgeAfter = 7 * 24 * time.Hour

// Purge deletes entries that ended without an order a week ago. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	return s.db.Purge(ctx, "purged", func(ctx context.Context, tx *ent.Tx, limit int) (int, error) {
		ids, err := tx.WaitlistEntry.Query().Where(
			waitlistentry.StatusIn(waitlistentry.StatusLEFT, waitlistentry.StatusEXPIRED), waitlistentry.ReturnDue(false),
			waitlistentry.UpdatedAtLT(s.now().Add(-purgeAfter)),
		).Limit(limit).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return tx.WaitlistEntry.Delete().Where(waitlistentry.IDIn(ids...)).Exec(ctx)
	})
}
