package order

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/ent"
	"seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// termsTTL is how long the terms of an item are cached: long enough for about one read
// per second under load, short enough for a change to take effect soon.
const termsTTL = time.Second

// maxTerms bounds the cache. It is emptied when it is full.
const maxTerms = 4096

// terms are the price and the purchase rules of an item, from the database.
type terms struct {
	sale       id.Sale
	priceMinor int64
	currency   string
	limit      int           // maximum units per user
	window     time.Duration // payment window
	address    bool          // orders have the address of their buyer
	readAt     time.Time
}

// termsCache reads terms at most once per item and termsTTL. Missing items are not
// cached.
type termsCache struct {
	db *postgres.DB

	mu    sync.Mutex
	items map[id.Item]terms // guarded by mu
}

func newTermsCache(db *postgres.DB) *termsCache {
	return &termsCache{db: db, items: map[id.Item]terms{}}
}

// load returns the terms of the existing items.
func (c *termsCache) load(ctx context.Context, items []id.Item, now time.Time) (map[id.Item]terms, error) {
	known := make(map[id.Item]terms, len(items))
	var missing []id.Item
	c.mu.Lock()
	for _, item := range items {
		if t, ok := c.items[item]; ok && now.Sub(t.readAt) < termsTTL {
			known[item] = t
		} else {
			missing = append(missing, item)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return known, nil
	}
	read, err := c.read(ctx, missing, now)
	if err != nil {
		return nil, fmt.Errorf("read terms of sale: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.items)+len(read) > maxTerms {
		clear(c.items)
	}
	for item, t := range read {
		known[item] = t
		c.items[item] = t
	}
	return known, nil
}

func (c *termsCache) read(ctx context.Context, ids []id.Item, now time.Time) (map[id.Item]terms, error) {
	items, err := c.db.Ent.SaleItem.Query().Where(saleitem.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, err
	}
	saleIDs := collect.Map(items, func(item *ent.SaleItem) id.Sale { return item.SaleID })
	rows, err := c.db.Ent.Sale.Query().Where(sale.IDIn(saleIDs...)).All(ctx)
	if err != nil {
		return nil, err
	}
	sales := collect.Index(rows, func(row *ent.Sale) id.Sale { return row.ID })
	read := make(map[id.Item]terms, len(items))
	for _, item := range items {
		s, ok := sales[item.SaleID]
		if !ok {
			continue
		}
		limit := s.PurchaseLimit // of items that release 0.1 wrote
		if item.PurchaseLimit != nil {
			limit = *item.PurchaseLimit
		}
		read[item.ID] = terms{
			sale: s.ID, priceMinor: item.PriceMinor, currency: item.Currency, limit: limit,
			window: time.Duration(s.PaymentWindowSeconds) * time.Second, address: s.RequiresAddress, readAt: now,
		}
	}
	return read, nil
}
