package storefront

import (
	"context"

	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
)

// Drawing returns the draw of an item; nil = it has no entry yet.
func (s *Storefront) Drawing(ctx context.Context, v *sale.Sale, item id.Item) (*waitlist.Drawing, error) {
	if known := s.restockOutlooks.Drawing(item); known != nil || v.Status != sale.Ended {
		return known, nil // before it is loaded there are no entries
	}
	return s.waitlist.Drawing(ctx, item)
}

// PublicSeed returns the seed of the draw of an item; nil until it is public, and without
// a draw.
func (s *Storefront) PublicSeed(ctx context.Context, itemID id.Item) (sale.DrawSeed, error) {
	item, v, err := s.Item(ctx, itemID)
	if item == nil || v == nil || err != nil {
		return nil, err
	}
	gate, _ := s.stock.View(itemID) // knows the opening even if the catalogue is old
	if !v.Drawn(s.Now(), gate.Opens) {
		return nil, nil
	}
	return item.DrawSeed, nil
}
