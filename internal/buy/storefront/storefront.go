// Package storefront computes what a buyer sees: a sale's phase, an item's stock as a
// number or a level, and the next action for the buyer. It joins the catalogue (package
// sale), this process's copy of the gates (package reservation), and the buyer's own
// orders (package order) and waitlist entries (package waitlist). It changes nothing.
package storefront

import (
	"context"
	"time"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/buy/member"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/identity/person"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

// Storefront serves reads of sales and follows their changes.
type Storefront struct {
	cfg  Config
	seen *sightings
}

// Config holds the dependencies of a Storefront.
type Config struct {
	Catalog         *sale.Catalog
	Stock           *reservation.StockCache
	Gate            *reservation.Gate
	Orders          *order.Store
	Waitlist        *waitlist.Service
	Queue           *queue.Service
	Members         *member.Service
	RestockOutlooks *waitlist.RestockOutlooks
	Hub             *notifier.Hub
}

// New returns a storefront. Run publishes changes to its followers.
func New(cfg Config) *Storefront { return &Storefront{cfg: cfg, seen: &sightings{}} }

// Level is the stock level in words.
type Level string

// Levels.
const (
	Plenty  Level = "PLENTY"  // more than half
	Limited Level = "LIMITED" // at most half
	Low     Level = "LOW"     // at most a tenth
	None    Level = "SOLD_OUT"
)

// Stock is the remaining stock of an item.
type Stock struct {
	Level     Level
	Remaining int
	Total     int
	Revision  int64
	UpdatedAt time.Time // time of the last change that this process knows
}

// Now returns the time of the server that opens the gates.
func (s *Storefront) Now() time.Time { return s.cfg.Stock.ServerTime() }

// Catalog returns the active part of the catalogue, at most a second old.
func (s *Storefront) Catalog(ctx context.Context) (*sale.Snapshot, error) {
	snap, err := s.cfg.Catalog.Snapshot(ctx)
	return snap, unreadable(err)
}

// Sale returns a sale, or nil.
func (s *Storefront) Sale(ctx context.Context, saleID id.Sale) (*sale.Sale, error) {
	v, err := s.cfg.Catalog.Sale(ctx, saleID)
	return v, unreadable(err)
}

// SaleBySlug returns the sale with a slug, or nil.
func (s *Storefront) SaleBySlug(ctx context.Context, slug string) (*sale.Sale, error) {
	v, err := s.cfg.Catalog.BySlug(ctx, slug)
	return v, unreadable(err)
}

// Item returns an item and its sale, or nil.
func (s *Storefront) Item(ctx context.Context, itemID id.Item) (*sale.Item, *sale.Sale, error) {
	item, v, err := s.cfg.Catalog.Item(ctx, itemID)
	return item, v, unreadable(err)
}

// Product returns a product, or nil, and whether it is in a public sale.
func (s *Storefront) Product(ctx context.Context, goodsID id.Goods) (_ *sale.Goods, public bool, err error) {
	g, public, err := s.cfg.Catalog.Goods(ctx, goodsID)
	return g, public, unreadable(err)
}

// Sees reports whether a buyer may see a sale, zero = a visitor who is not signed in: a private sale if an
// access rule fits the buyer, from whatever time.
func (s *Storefront) Sees(ctx context.Context, v *sale.Sale, user id.User) (bool, error) {
	switch {
	case !v.Public():
		return false, nil
	case !v.Private:
		return true, nil
	case user.IsZero():
		return false, nil
	}
	a, _, err := s.cfg.Members.Access(ctx, v, user)
	return a.Rule != nil, err
}

func unreadable(err error) error {
	if err == nil || fault.CodeOf(err) == fault.RateLimited {
		return err
	}
	return fault.Wrap(fault.Unavailable, "The sales cannot be read now. Please try again shortly.", err)
}

// Stock returns the remaining stock of an item: from the gate while the sale is loaded,
// from the catalogue otherwise.
func (s *Storefront) Stock(item *sale.Item) Stock {
	st := Stock{Remaining: item.Available, Total: item.Total, Revision: item.Revision, UpdatedAt: item.ReadAt}
	if item.ReadAt.IsZero() {
		st.UpdatedAt = s.Now()
	}
	if v, ok := s.cfg.Stock.View(item.ID); ok {
		st = Stock{Remaining: v.ForSale(s.Now()), Total: v.Total, Revision: v.Revision, UpdatedAt: v.Since}
	}
	st.Level = level(st.Remaining, st.Total)
	return st
}

func level(remaining, total int) Level {
	switch {
	case remaining <= 0:
		return None
	case remaining*10 <= total:
		return Low
	case remaining*2 <= total:
		return Limited
	}
	return Plenty
}

// Phase returns the phase of a sale at now, as a buyer sees it. A sale without its gate
// is paused until the gate is rebuilt.
func (s *Storefront) Phase(v *sale.Sale, now time.Time) sale.Phase { return s.phaseFor(v, "", now) }

// phaseFor is Phase for a buyer of a share: what it keeps is sold out to others.
func (s *Storefront) phaseFor(v *sale.Sale, share person.Key, now time.Time) sale.Phase {
	soldOut, held := true, false
	for _, item := range v.Items {
		view, ok := s.cfg.Stock.View(item.ID)
		switch {
		case ok:
			soldOut = soldOut && view.ForShare(share, now) == 0
			held = held || view.State == reservation.GatePaused || view.State == reservation.GateLoading
		case s.cfg.Stock.Lost(item.ID):
			soldOut, held = false, true
		default:
			soldOut = soldOut && item.Available == 0
		}
	}
	phase := v.Phase(now, soldOut && !v.Draw.On())
	if phase == sale.PhaseLive && held {
		return sale.PhasePaused
	}
	return phase
}
