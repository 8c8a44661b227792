package app

import (
	"seckill/internal/account"
	"seckill/internal/checkout"
	"seckill/internal/recipient"
	"seckill/internal/storefront"
)

// shop holds the use cases of buyers.
type shop struct {
	store    *storefront.Storefront
	checkout *checkout.Checkout
	book     *recipient.Book
}

// shopParts are the stages that only the shop needs.
type shopParts struct {
	orders    orders
	admission admission
	waiting   waiting
	directory *account.Directory
}

func newShop(b base, g gates, m messages, s stats, in shopParts) shop {
	tries := checkout.NewTries(b.clock, b.rateLimits()["placeOrder"])
	if !b.cfg.LimitsOn() {
		tries = checkout.NoLimit()
	}
	book := recipient.NewBook(b.svc.db, b.clock)
	return shop{
		book: book,
		store: storefront.New(storefront.Config{
			Catalog: g.catalog, Stock: g.stock, Gate: g.gate, Orders: in.orders.store,
			Waitlist: in.waiting.service, Queue: in.admission.queue, RestockOutlooks: in.waiting.restockOutlooks, Hub: m.hub,
		}),
		checkout: checkout.New(checkout.Config{
			Catalog: g.catalog, Stock: g.stock, Gate: g.gate, Orders: in.orders.store,
			Paths: in.admission.paths, Queue: in.admission.queue, Waitlist: in.waiting.service, Tries: tries, Risk: in.admission.risk, Book: book,
			Counts: s.counts, Users: in.directory,
		}),
	}
}
