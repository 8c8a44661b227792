package storefront

import (
	"context"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
)

// RestockOutlook is the prospect of units for a buyer when an item is sold out.
type RestockOutlook struct {
	Open   bool       // the waitlist can be joined
	Gone   bool       // no unit can return: all are paid
	Unpaid int        // units in unpaid orders; 0 = none, or unknown
	Next   *time.Time // earliest time at which one of them returns; nil = unknown
}

// RestockOutlook returns the prospect for an item, from memory. It may be unknown for an item that
// was sold out less than a second ago: Open is true then, because units are unpaid.
func (s *Storefront) RestockOutlook(item *sale.Item) RestockOutlook {
	view, ok := s.cfg.Stock.View(item.ID)
	if !ok || view.ForSale(s.Now()) > 0 {
		return RestockOutlook{}
	}
	restock, known := s.cfg.RestockOutlooks.Of(item.ID)
	if !known {
		return RestockOutlook{Open: true}
	}
	h := RestockOutlook{Open: !restock.Gone(), Gone: restock.Gone(), Unpaid: restock.Unpaid}
	if next := restock.NextRelease; next != nil && next.After(s.Now()) {
		h.Next = next
	}
	return h
}

// gone reports whether no unit of any item of a sale can return.
func (s *Storefront) gone(v *sale.Sale) bool {
	for _, item := range v.Items {
		if restock, known := s.cfg.RestockOutlooks.Of(item.ID); !known || !restock.Gone() {
			return false
		}
	}
	return true
}

// hasEntries reports whether the waitlist of a sale has, or had, any entry.
func (s *Storefront) hasEntries(v *sale.Sale) bool {
	for _, item := range v.Items {
		if s.cfg.RestockOutlooks.HasEntries(item.ID) {
			return true
		}
	}
	return false
}

// Drawing returns the draw of an item; nil = it has no entry yet.
func (s *Storefront) Drawing(ctx context.Context, v *sale.Sale, item id.Item) (*waitlist.Drawing, error) {
	if known := s.cfg.RestockOutlooks.Drawing(item); known != nil || v.Status != sale.Ended {
		return known, nil // before it is loaded there are no entries
	}
	return s.cfg.Waitlist.Drawing(ctx, item)
}

// PublicSeed returns the seed of the draw of an item; nil until it is public, and without
// a draw.
func (s *Storefront) PublicSeed(ctx context.Context, itemID id.Item) (sale.DrawSeed, error) {
	item, v, err := s.Item(ctx, itemID)
	if item == nil || v == nil || err != nil {
		return nil, err
	}
	gate, _ := s.cfg.Stock.View(itemID) // knows the opening even if the catalogue is old
	if !v.Drawn(s.Now(), gate.Opens) {
		return nil, nil
	}
	return item.DrawSeed, nil
}
