package waitlist

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/waitlistentry"
)

const (
	// purgeAfter is how long an entry is kept after the buyer left or the offer expired.
	purgeAfter = 7 * 24 * time.Hour
	// purgeBatch bounds one transaction, and maxPurges one step.
	purgeBatch = 1000
	maxPurges  = 20
)

// Purge deletes entries that ended without an order a week ago. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for range maxPurges {
		ids, err := s.db.Ent.WaitlistEntry.Query().Where(
			waitlistentry.StatusIn(waitlistentry.StatusLEFT, waitlistentry.StatusEXPIRED), waitlistentry.ReturnDue(false),
			waitlistentry.UpdatedAtLT(s.now().Add(-purgeAfter)),
		).Limit(purgeBatch).IDs(ctx)
		if err != nil {
			return counts, fmt.Errorf("find old places in line: %w", err)
		}
		if len(ids) == 0 {
			break
		}
		err = s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			n, err := tx.WaitlistEntry.Delete().Where(waitlistentry.IDIn(ids...)).Exec(ctx)
			counts["purged"] += n
			return err
		})
		if err != nil {
			return counts, fmt.Errorf("delete old places in line: %w", err)
		}
	}
	return counts, nil
}
