package waitlist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/saleitem"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
)

// RestockOutlook describes whether units of an item may still become available.
type RestockOutlook struct {
	Available   int        // available units in Postgres; some may be reserved for offers
	Unpaid      int        // units of unpaid orders: they may be released
	NextRelease *time.Time // earliest payment deadline of these orders; nil = none
	Waiting     int        // waiting entries
	Offered     int        // open offers
	Ended       int        // entries that were redeemed, left or expired, of the last week
}

// Gone reports whether no unit of the item can become available, as far as is known.
func (o RestockOutlook) Gone() bool { return o.Available == 0 && o.Unpaid == 0 }

// RestockOutlook reads the RestockOutlook of an item from Postgres.
func (s *Service) RestockOutlook(ctx context.Context, item id.Item) (RestockOutlook, error) {
	row, err := s.cfg.DB.Ent.SaleItem.Query().Where(saleitem.ID(item)).Only(ctx)
	if err != nil {
		return RestockOutlook{}, fmt.Errorf("read item %s: %w", item, err)
	}
	o := RestockOutlook{Available: row.Available, Unpaid: row.Held}
	if o.Unpaid > 0 {
		next, err := s.cfg.DB.Ent.Order.Query().
			Where(entorder.ItemID(item), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.PaymentDeadlineNotNil()).
			Order(ent.Asc(entorder.FieldPaymentDeadline)).First(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return RestockOutlook{}, fmt.Errorf("read deadlines of item %s: %w", item, err)
		}
		if next != nil {
			o.NextRelease = next.PaymentDeadline
		}
	}
	var found []struct {
		Status waitlistentry.Status `json:"status"`
		Count  int                  `json:"count"`
	}
	err = s.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(item)).
		GroupBy(waitlistentry.FieldStatus).Aggregate(ent.Count()).Scan(ctx, &found)
	if err != nil {
		return RestockOutlook{}, fmt.Errorf("count waitlist of item %s: %w", item, err)
	}
	for _, row := range found {
		switch row.Status {
		case waitlistentry.StatusWAITING:
			o.Waiting = row.Count
		case waitlistentry.StatusOFFERED:
			o.Offered = row.Count
		case waitlistentry.StatusREDEEMED, waitlistentry.StatusLEFT, waitlistentry.StatusEXPIRED:
			o.Ended += row.Count
		case waitlistentry.StatusENTERED: // of a draw, whose items are not asked about
		}
	}
	return o, nil
}

// restockOutlooksEvery is the interval at which a process reads the restock outlooks of sold-out
// items.
const restockOutlooksEvery = time.Second

// RestockOutlooks caches the restock outlooks of loaded items in one process, at most a second old:
// every refusal of a sold-out item contains one, and many refusals must not cause as
// many queries.
type RestockOutlooks struct {
	service *Service
	items   Items
	log     *slog.Logger

	mu         sync.RWMutex
	known      map[id.Item]RestockOutlook // guarded by mu; sold-out items only
	draws      map[id.Item]*Drawing       // guarded by mu; of draw sales
	hasEntries map[id.Item]bool           // guarded by mu; whether an item has or had an entry; absent = unknown
}

// Item is an item of a loaded sale.
type Item struct {
	ID      id.Item
	Draw    bool // of a draw sale
	SoldOut bool // its gate is loaded and no unit is for sale; not known of a draw
}

// Items lists the items of loaded sales.
type Items interface {
	Items(ctx context.Context) ([]Item, error)
}

// CatalogItems are the items of the catalogue with the gates as this process sees them.
type CatalogItems struct {
	Catalog *sale.Catalog
	Stock   *reservation.StockCache
}

// Items implements Items. An item whose gate is lost and not reloaded is not known to be
// sold out, but its waitlist still exists.
func (c CatalogItems) Items(ctx context.Context) (items []Item, err error) {
	loaded, err := c.Catalog.Loaded(ctx)
	now := c.Stock.ServerTime()
	for _, v := range loaded {
		for _, item := range v.Items {
			view, ok := c.Stock.View(item.ID)
			items = append(items, Item{ID: item.ID, Draw: v.Draw.On(),
				SoldOut: ok && !v.Draw.On() && view.ForSale(now) == 0})
		}
	}
	return items, err
}

// NewRestockOutlooks returns an empty cache.
func NewRestockOutlooks(service *Service, items Items, log *slog.Logger) *RestockOutlooks {
	return &RestockOutlooks{service: service, items: items, log: log, known: map[id.Item]RestockOutlook{},
		hasEntries: map[id.Item]bool{}}
}

// Loop returns the loop that refreshes the cache.
func (o *RestockOutlooks) Loop() periodic.Loop {
	return periodic.Loop{Name: "restock outlooks", Every: restockOutlooksEvery, Timeout: stepTimeout, Step: o.Step,
		Log: o.log}
}

// Of returns the restock outlook of a sold-out item; false if the item is not sold out, or has
// been for less than a second.
func (o *RestockOutlooks) Of(item id.Item) (RestockOutlook, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	known, ok := o.known[item]
	return known, ok
}

// Drawing returns the draw of an item of a loaded draw sale, at most a second old; nil = it has no
// entry, or is not known.
func (o *RestockOutlooks) Drawing(item id.Item) *Drawing {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.draws[item]
}

// HasEntries reports whether an item has or had a waitlist entry.
func (o *RestockOutlooks) HasEntries(item id.Item) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.hasEntries[item]
}

// Step reads all restock outlooks once. One that cannot be read is removed.
func (o *RestockOutlooks) Step(ctx context.Context) (map[string]int, error) {
	items, err := o.items.Items(ctx)
	if err != nil {
		return nil, err
	}
	hasEntries, failed := o.readHasEntries(ctx, items)
	var drawn []id.Item
	for _, item := range items {
		if item.Draw {
			drawn, hasEntries[item.ID] = append(drawn, item.ID), true // as far as it matters: each buyer is asked about
		}
	}
	draws, err := o.service.Drawings(ctx, drawn...)
	failed = errors.Join(failed, err)
	known := map[id.Item]RestockOutlook{}
	for _, item := range items {
		if !item.SoldOut {
			continue
		}
		restock, err := o.service.RestockOutlook(ctx, item.ID)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		known[item.ID] = restock
		hasEntries[item.ID] = hasEntries[item.ID] || restock.Waiting+restock.Offered > 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known, o.hasEntries, o.draws = known, hasEntries, draws
	return nil, failed
}

// readHasEntries returns which items have or had entries: known items from the cache, new
// items from Postgres.
func (o *RestockOutlooks) readHasEntries(ctx context.Context, items []Item) (map[id.Item]bool, error) {
	hasEntries := make(map[id.Item]bool, len(items))
	var fresh []id.Item
	o.mu.RLock()
	for _, item := range items {
		if known, ok := o.hasEntries[item.ID]; ok {
			hasEntries[item.ID] = known
		} else if !item.Draw {
			fresh = append(fresh, item.ID)
		}
	}
	o.mu.RUnlock()
	if len(fresh) == 0 {
		return hasEntries, nil
	}
	with, err := o.service.cfg.DB.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemIDIn(fresh...)).
		GroupBy(waitlistentry.FieldItemID).Strings(ctx)
	if err != nil {
		return hasEntries, fmt.Errorf("find items with waitlist entries: %w", err) // retried in the next step
	}
	for _, item := range fresh {
		hasEntries[item] = false
	}
	for _, text := range with {
		item, err := id.ParseUUID[id.Item](text)
		if err != nil {
			return hasEntries, fmt.Errorf("find items with waitlist entries: %w", err)
		}
		hasEntries[item] = true
	}
	return hasEntries, nil
}
