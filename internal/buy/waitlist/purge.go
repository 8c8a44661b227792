package waitlist

import (
	"context"
	"time"

	"seckill/ent/waitlistentry"
)

// purgeAfter is how long an entry is kept after the buyer left or the offer expired.
const purgeAfter = 7 * 24 * time.Hour

// Purge deletes entries that ended without an order a week ago, but for those of a draw that had
// their turn, which its record names. It is a periodic.Step.
func (s *Service) Purge(ctx context.Context) (map[string]int, error) {
	return s.cfg.DB.Purge(ctx, "purged", waitlistentry.Table,
		waitlistentry.StatusIn(waitlistentry.StatusLEFT, waitlistentry.StatusEXPIRED), waitlistentry.ReturnDue(false),
		waitlistentry.CardIn(waitlistentry.CardNONE, waitlistentry.CardDONE),
		waitlistentry.UpdatedAtLT(s.now().Add(-purgeAfter)),
		waitlistentry.Or(waitlistentry.Line(0),
			waitlistentry.And(waitlistentry.StatusEQ(waitlistentry.StatusEXPIRED), waitlistentry.OfferExpiresAtIsNil())))
}
