package waitlist

import "context"

// OfferTo reserves units for an entry as it was read, which may be stale.
func (s *Service) OfferTo(ctx context.Context, e *Entry, stock int) error {
	_, err := s.offerTo(ctx, e, stock, map[string]int{})
	return err
}
