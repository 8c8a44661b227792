package waitlist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/saleitem"
	"seckill/ent/waitlistentry"
	"seckill/internal/periodic"
)

// Outlook is what may still be hoped for of an item.
type Outlook struct {
	Available   int        // units nobody has, by the record; some may be held for offers
	Unpaid      int        // units in unpaid orders: they may come back
	NextRelease *time.Time // the earliest moment at which one of them lapses; nil = none can
	Waiting     int        // places in line
	Offered     int        // offers that are out
}

// Gone tells whether the item is sold out for good, as far as anybody knows.
func (o Outlook) Gone() bool { return o.Available == 0 && o.Unpaid == 0 }

// Outlook returns what may still be hoped for of an item.
func (s *Service) Outlook(ctx context.Context, item uuid.UUID) (Outlook, error) {
	row, err := s.db.Ent.SaleItem.Query().Where(saleitem.ID(item)).Only(ctx)
	if err != nil {
		return Outlook{}, fmt.Errorf("read item %s: %w", item, err)
	}
	o := Outlook{Available: row.Available, Unpaid: row.Held}
	if o.Unpaid > 0 {
		next, err := s.db.Ent.Order.Query().
			Where(entorder.ItemID(item), entorder.StatusEQ(entorder.StatusPENDING_PAYMENT), entorder.PaymentDeadlineNotNil()).
			Order(ent.Asc(entorder.FieldPaymentDeadline)).First(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return Outlook{}, fmt.Errorf("read deadlines of item %s: %w", item, err)
		}
		if next != nil {
			o.NextRelease = next.PaymentDeadline
		}
	}
	var open []struct {
		Status waitlistentry.Status `json:"status"`
		Count  int                  `json:"count"`
	}
	err = s.db.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemID(item), waitlistentry.StatusIn(openStatuses...)).
		GroupBy(waitlistentry.FieldStatus).Aggregate(ent.Count()).Scan(ctx, &open)
	if err != nil {
		return Outlook{}, fmt.Errorf("count waitlist of item %s: %w", item, err)
	}
	for _, row := range open {
		if row.Status == waitlistentry.StatusWAITING {
			o.Waiting = row.Count
		} else {
			o.Offered = row.Count
		}
	}
	return o, nil
}

// outlooksEvery is how often a process reads what may be hoped for of the items
// that are sold out.
const outlooksEvery = time.Second

// Outlooks is what one process knows of the items of its gates, a second old at
// most: every refusal of a sold-out item says whether something may still come,
// and a crowd of refusals must not reach the database.
type Outlooks struct {
	service *Service
	items   func(ctx context.Context) ([]Item, error)
	log     *slog.Logger

	mu    sync.RWMutex
	known map[uuid.UUID]Outlook // guarded by mu; of items that are sold out
	lined map[uuid.UUID]bool    // guarded by mu; whether anybody has, or had, a place; absent = not known
}

// Item is an item of a sale that is loaded.
type Item struct {
	ID      uuid.UUID
	SoldOut bool // it has a gate, and nothing is on open sale now
}

// NewOutlooks returns what is known of items, nothing at first. The function lists
// the items of sales that are loaded.
func NewOutlooks(service *Service, items func(ctx context.Context) ([]Item, error), log *slog.Logger) *Outlooks {
	return &Outlooks{service: service, items: items, log: log, known: map[uuid.UUID]Outlook{}, lined: map[uuid.UUID]bool{}}
}

// Loop returns what keeps outlooks fresh.
func (o *Outlooks) Loop() periodic.Loop {
	return periodic.Loop{Name: "outlooks", Every: outlooksEvery, Timeout: stepTimeout, Step: o.Step, Log: o.log}
}

// Of returns the outlook of an item that is sold out; false when it is not, or has
// been for less than a second.
func (o *Outlooks) Of(item uuid.UUID) (Outlook, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	known, ok := o.known[item]
	return known, ok
}

// Lined tells whether anybody has, or had, a place for an item.
func (o *Outlooks) Lined(item uuid.UUID) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.lined[item]
}

// Step reads all outlooks once. One that cannot be read is not known any more.
func (o *Outlooks) Step(ctx context.Context) (map[string]int, error) {
	items, err := o.items(ctx)
	if err != nil {
		return nil, err
	}
	lined, failed := o.readLined(ctx, items)
	known := map[uuid.UUID]Outlook{}
	for _, item := range items {
		if !item.SoldOut {
			continue
		}
		outlook, err := o.service.Outlook(ctx, item.ID)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		known[item.ID] = outlook
		lined[item.ID] = lined[item.ID] || outlook.Waiting+outlook.Offered > 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known, o.lined = known, lined
	return nil, failed
}

// readLined returns which items have, or had, a line: what was known before, and
// for new items what the record says.
func (o *Outlooks) readLined(ctx context.Context, items []Item) (map[uuid.UUID]bool, error) {
	lined := make(map[uuid.UUID]bool, len(items))
	var fresh []uuid.UUID
	o.mu.RLock()
	for _, item := range items {
		if known, ok := o.lined[item.ID]; ok {
			lined[item.ID] = known
		} else {
			fresh = append(fresh, item.ID)
		}
	}
	o.mu.RUnlock()
	if len(fresh) == 0 {
		return lined, nil
	}
	with, err := o.service.db.Ent.WaitlistEntry.Query().Where(waitlistentry.ItemIDIn(fresh...)).
		GroupBy(waitlistentry.FieldItemID).Strings(ctx)
	if err != nil {
		return lined, fmt.Errorf("find items with a line: %w", err) // and asked again
	}
	for _, item := range fresh {
		lined[item] = false
	}
	for _, text := range with {
		item, err := uuid.Parse(text)
		if err != nil {
			return lined, fmt.Errorf("find items with a line: %w", err)
		}
		lined[item] = true
	}
	return lined, nil
}
