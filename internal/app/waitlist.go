package app

import (
	"context"
	"encoding/json"
	"fmt"

	"seckill/internal/notifier"
	"seckill/internal/storefront"
	"seckill/internal/waitlist"
)

// wireWaitlist joins the line for units that come back.
func (a *App) wireWaitlist() {
	a.waitlist = waitlist.New(waitlist.Config{
		DB: a.svc.db, Gate: a.gate,
		Announce: a.announcePlaces, Registerer: a.registry,
		OfferFor: a.cfg.WaitlistOffer, Clock: a.common, Log: a.log,
	})
	a.outlooks = waitlist.NewOutlooks(a.waitlist, a.itemsOnSale, a.log)
}

// announcePlaces tells every process how places in line stand.
func (a *App) announcePlaces(ctx context.Context, places []*waitlist.Entry) error {
	entries := make([]notifier.StatusEntry, 0, len(places))
	for _, e := range places {
		mark, err := json.Marshal(storefront.MarkOf(e))
		if err != nil {
			return fmt.Errorf("announce place %s: %w", e.ID, err)
		}
		entries = append(entries, notifier.StatusEntry{Key: storefront.PlaceKey(e.Sale, e.User), Revision: e.Moment(), Value: mark})
	}
	return a.bus.Publish(ctx, entries)
}

// itemsOnSale lists the items of sales that are loaded. Whose gate is lost, and is
// not built anew yet, is not known to be sold out; its line is there all the same.
func (a *App) itemsOnSale(ctx context.Context) ([]waitlist.Item, error) {
	loaded, err := a.loadedSales(ctx)
	if err != nil {
		return nil, err
	}
	now := a.stock.ServerTime()
	var items []waitlist.Item
	for _, v := range loaded {
		for _, item := range v.Items {
			view, ok := a.stock.View(item.ID)
			items = append(items, waitlist.Item{ID: item.ID, SoldOut: ok && view.ForSale(now) == 0})
		}
	}
	return items, nil
}
