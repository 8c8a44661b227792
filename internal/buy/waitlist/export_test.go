package waitlist

import (
	"context"

	"seckill/internal/identity/person"
)

// OfferTo reserves units for an entry as it was read, which may be stale.
func (s *Service) OfferTo(ctx context.Context, e *Entry, stock int) error {
	it := item{sale: e.Sale, id: e.Item, saleState: saleState{offerFor: s.cfg.OfferFor}}
	offer, err := s.reserveFor(ctx, e, &supply{stock, map[person.Key]int{}}, map[string]int{})
	if err != nil || !offer {
		return err
	}
	return s.makeOffers(ctx, []*Entry{e}, it, map[string]int{})
}
