package storefront

import (
	"context"
	"encoding/json"
	"fmt"

	"seckill/internal/buy/order"
	"seckill/internal/buy/salestats"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/tracing"
)

// StatusPublisher sends changes to the subscribers of every process and to the sale's live
// log. Call it after the commit. Messages may be lost: subscribers read the state
// again.
type StatusPublisher struct {
	bus  *notifier.Bus
	feed *salestats.Feed
}

// NewStatusPublisher returns a StatusPublisher.
func NewStatusPublisher(bus *notifier.Bus, feed *salestats.Feed) *StatusPublisher {
	return &StatusPublisher{bus: bus, feed: feed}
}

// Tasks publishes ended tasks.
func (p *StatusPublisher) Tasks(ctx context.Context, tasks []order.Task) error {
	p.feed.Ended(tasks)
	traced := tracing.OrdersFrom(ctx)
	entries := make([]notifier.StatusEntry, 0, 2*len(tasks))
	for i := range tasks {
		t := &tasks[i]
		value, err := t.MarshalJSON() // json.Marshal would parse the result again
		if err != nil {
			return fmt.Errorf("publish task %s: %w", t.ID, err)
		}
		entries = append(entries,
			notifier.StatusEntry{
				Key: taskKey(t.ID), Revision: t.Revision, Terminal: t.Ended(), Value: value, Trace: tracing.FormatRef(traced[t.ID]),
			},
			buyerEntry(t.User))
	}
	return p.bus.Publish(ctx, entries)
}

// Orders publishes changed orders.
func (p *StatusPublisher) Orders(ctx context.Context, orders []*order.Order) error {
	p.feed.Moved(orders...)
	entries := make([]notifier.StatusEntry, 0, 2*len(orders))
	for _, o := range orders {
		value, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("publish order %s: %w", o.ID, err)
		}
		entries = append(entries,
			notifier.StatusEntry{Key: orderKey(o.ID), Revision: o.Version, Terminal: o.Status.Ended(), Value: value},
			buyerEntry(o.User))
	}
	return p.bus.Publish(ctx, entries)
}

// WaitlistEntries publishes changed waitlist entries.
func (p *StatusPublisher) WaitlistEntries(ctx context.Context, changed []*waitlist.Entry) error {
	entries := make([]notifier.StatusEntry, 0, len(changed))
	for _, e := range changed {
		value, err := json.Marshal(stateOf(e))
		if err != nil {
			return fmt.Errorf("publish waitlist entry %s: %w", e.ID, err)
		}
		entries = append(entries, notifier.StatusEntry{Key: entryKey(e.Sale, e.User), Revision: e.Moment(), Value: value})
	}
	return p.bus.Publish(ctx, entries)
}

// buyerEntry returns the event that makes followers of all orders of a buyer read them
// again.
func buyerEntry(user id.User) notifier.StatusEntry {
	return notifier.StatusEntry{Key: BuyerKey(user), Revision: BuyerRevision}
}
