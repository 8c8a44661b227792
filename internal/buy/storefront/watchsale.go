package storefront

import (
	"context"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

func saleKey(v id.Sale) string       { return "sale:" + v.String() }
func stockKey(v id.Sale) string      { return "stock:" + v.String() }
func levelKey(v id.Sale) string      { return "level:" + v.String() }
func departuresKey(v id.Sale) string { return "line:" + v.String() }

// WatchStatus follows the state of a sale for a user until the sale ends: the public
// state, and the user's own waitlist entry. The zero id.User means no user.
func (s *Storefront) WatchStatus(ctx context.Context, saleID id.Sale, user id.User) (notifier.Source[*sale.Sale],
	error) {
	if user.IsZero() {
		return s.watchPhase(ctx, saleID)
	}
	v, err := s.find(ctx, saleID)
	if err != nil {
		return nil, err
	}
	watch, err := s.watchEntry(ctx, v, user)
	if err != nil {
		return nil, err
	}
	if watch.sales, err = s.watchPhase(ctx, saleID); err != nil {
		watch.entries.Close()
		return nil, err
	}
	return watch, nil
}

// watchPhase follows the public state of a sale.
func (s *Storefront) watchPhase(ctx context.Context, saleID id.Sale) (*notifier.Follower[*sale.Sale], error) {
	return notifier.Follow(ctx, s.cfg.Hub, saleKey(saleID), func(ctx context.Context) (notifier.State[*sale.Sale], error) {
		v, revision, err := s.begin(ctx, saleID, &s.seen.phases, s.phaseMark)
		if err != nil {
			return notifier.State[*sale.Sale]{}, err
		}
		return notifier.State[*sale.Sale]{Value: v, Revision: revision, Terminal: s.over(v)}, nil
	})
}

// WatchStock follows the stock of a sale's items until the sale ends: every change, or
// only changes of a level for those who do not see numbers.
func (s *Storefront) WatchStock(ctx context.Context, saleID id.Sale, levels bool) (*notifier.Follower[[]*sale.Item],
	error) {
	key, seen, mark := stockKey(saleID), &s.seen.stocks, s.stockMark
	if levels {
		key, seen, mark = levelKey(saleID), &s.seen.levels, s.levelMark
	}
	return notifier.Follow(ctx, s.cfg.Hub, key, func(ctx context.Context) (notifier.State[[]*sale.Item], error) {
		v, revision, err := s.begin(ctx, saleID, seen, mark)
		if err != nil {
			return notifier.State[[]*sale.Item]{}, err
		}
		return notifier.State[[]*sale.Item]{Value: v.Items, Revision: revision, Terminal: s.over(v)}, nil
	})
}

// begin reads a sale with the revision of its state of one kind. A first state is the
// snapshot of its follower, not a change after it. Sales that are not in the catalogue do
// not change and have the revision 0.
func (s *Storefront) begin(ctx context.Context, saleID id.Sale, seen *numbered,
	mark func(*sale.Sale) string) (*sale.Sale, int64, error) {
	revision := seen.read(saleID)
	v, err := s.find(ctx, saleID)
	if err != nil || revision > 0 {
		return v, revision, err
	}
	snap, err := s.cfg.Catalog.Snapshot(ctx)
	if err != nil || snap.Sale(saleID) == nil {
		return v, 0, unreadable(err)
	}
	return v, seen.begin(saleID, mark(v)), nil
}

func (s *Storefront) find(ctx context.Context, saleID id.Sale) (*sale.Sale, error) {
	v, err := s.Sale(ctx, saleID)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, errGone("sale")
	}
	return v, nil
}

// over reports whether a sale can no longer change for buyers.
func (s *Storefront) over(v *sale.Sale) bool {
	switch s.Phase(v, s.Now()) {
	case sale.PhaseEnded, sale.PhaseCancelled:
		return true
	case sale.PhaseUpcoming, sale.PhaseLive, sale.PhaseSoldOut, sale.PhasePaused:
		return false
	}
	return false
}
