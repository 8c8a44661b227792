package app

import "seckill/internal/waitlist"

// waiting holds the waitlist and the forecast of units that may return to stock.
type waiting struct {
	service         *waitlist.Service
	restockOutlooks *waitlist.RestockOutlooks
}

func newWaitlist(b base, g gates, o orders) waiting {
	service := waitlist.New(waitlist.Config{
		DB: b.svc.db, Gate: g.gate, Publish: o.status.WaitlistEntries, Notices: b.notices, Registerer: b.registry,
		OfferFor: b.cfg.WaitlistOffer, Timeout: b.scaled(waitlist.DefaultTimeout), Clock: g.clock, Shared: g.clock, Log: b.log,
	})
	return waiting{service, waitlist.NewRestockOutlooks(service, waitlist.CatalogItems{Catalog: g.catalog, Stock: g.stock}, b.log)}
}
