package storefront

import (
	"context"

	"github.com/google/uuid"

	"seckill/internal/sale"
)

// PublicSeed returns the seed of the draw of an item; nil until it is public, and without
// a draw.
func (s *Storefront) PublicSeed(ctx context.Context, itemID uuid.UUID) (sale.DrawSeed, error) {
	item, v, err := s.Item(ctx, itemID)
	if item == nil || v == nil || err != nil || !v.Drawn(s.Now()) {
		return nil, err
	}
	return item.DrawSeed, nil
}
