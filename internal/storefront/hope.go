package storefront

import (
	"time"

	"seckill/internal/sale"
)

// Hope is what may still come of an item that is sold out.
type Hope struct {
	Open   bool       // the waitlist can be joined
	Gone   bool       // nothing can come back: every unit is paid for
	Unpaid int        // units in orders that nobody has paid for; 0 = none, or not known
	Next   *time.Time // when the first of them comes back, at the earliest; nil = not known
}

// Hope tells what may still come of an item, from memory. An item that has been
// sold out for less than a second is not known yet: units are unpaid then.
func (s *Storefront) Hope(item *sale.Item) Hope {
	view, ok := s.stock.View(item.ID)
	if !ok || view.ForSale(s.Now()) > 0 {
		return Hope{}
	}
	outlook, known := s.outlooks.Of(item.ID)
	if !known {
		return Hope{Open: true}
	}
	h := Hope{Open: !outlook.Gone(), Gone: outlook.Gone(), Unpaid: outlook.Unpaid}
	if next := outlook.NextRelease; next != nil && next.After(s.Now()) {
		h.Next = next
	}
	return h
}

// gone reports whether nothing can come back of any item of a sale.
func (s *Storefront) gone(v *sale.Sale) bool {
	for _, item := range v.Items {
		if outlook, known := s.outlooks.Of(item.ID); !known || !outlook.Gone() {
			return false
		}
	}
	return true
}

// lined reports whether anybody has, or had, a place in line in a sale.
func (s *Storefront) lined(v *sale.Sale) bool {
	for _, item := range v.Items {
		if s.outlooks.Lined(item.ID) {
			return true
		}
	}
	return false
}
