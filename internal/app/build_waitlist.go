package app

import (
	"context"

	"seckill/internal/waitlist"
)

// waiting holds the waitlist and the forecast of units that may return to stock.
type waiting struct {
	service         *waitlist.Service
	restockOutlooks *waitlist.RestockOutlooks
}

func newWaitlist(b base, g gates, o orders) waiting {
	service := waitlist.New(waitlist.Config{
		DB: b.svc.db, Gate: g.gate, Publish: o.status.WaitlistEntries, Notices: b.notices, Registerer: b.registry,
		OfferFor: b.cfg.WaitlistOffer, Clock: g.clock, Shared: g.clock, Log: b.log,
	})
	// An item whose gate is lost and not reloaded is not known to be sold out, but its
	// waitlist still exists.
	items := func(ctx context.Context) (items []waitlist.Item, err error) {
		loaded, err := g.catalog.Loaded(ctx)
		now := g.stock.ServerTime()
		for _, v := range loaded {
			for _, item := range v.Items {
				view, ok := g.stock.View(item.ID)
				items = append(items, waitlist.Item{ID: item.ID, SoldOut: ok && view.ForSale(now) == 0})
			}
		}
		return items, err
	}
	return waiting{service, waitlist.NewRestockOutlooks(service, items, b.log)}
}
