package audit

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

const (
	// orderGroup is the consumer group of the order streams.
	orderGroup = "orders"
	// chunk limits one read of entries.
	chunk = 1000
)

// readQueue reads the sale's messages that are not acknowledged. Entries without an order
// message of this sale are ignored.
func (a *Auditor) readQueue(ctx context.Context, sale id.Sale, s *state) error {
	for _, it := range s.items {
		it.queued, it.dead = map[id.Task]int{}, map[id.Task]int{}
	}
	key := a.Keys.Orders(id.ShardOf(sale))
	queued := func(it *itemState) map[id.Task]int { return it.queued }
	// Pending before unread: a message delivered in between is then seen twice, not
	// missed; the maps hold it once.
	pending, last, err := a.pending(ctx, key)
	if err != nil {
		return fmt.Errorf("read pending messages: %w", err)
	}
	for _, entry := range pending {
		s.queue.Pending += s.enter(sale, ordersOf(entry), queued)
	}
	for from := "(" + last; ; {
		entries, err := a.Redis.Cmd.XRangeN(ctx, key, from, "+", chunk).Result()
		if err != nil {
			return fmt.Errorf("read unread messages: %w", err)
		}
		for _, entry := range entries {
			s.queue.Unread += s.enter(sale, ordersOf(entry), queued)
			from = "(" + entry.ID
		}
		if len(entries) < chunk {
			break
		}
	}
	if err := a.readDead(ctx, sale, key, s); err != nil {
		return fmt.Errorf("read messages set aside: %w", err)
	}
	return nil
}

// readDead reads the dead letters of the sale's stream. They are few: an operator has to
// handle each.
func (a *Auditor) readDead(ctx context.Context, sale id.Sale, key string, s *state) error {
	letters := deadletter.NewStore(deadletter.Config{DB: a.DB})
	for in := (deadletter.List{Stream: key, Limit: chunk, Fields: true}); ; {
		page, err := letters.List(ctx, in)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, letter := range page {
			in.After = letter.ID
			s.queue.Dead += s.enter(sale, ordersOfLetter(letter), func(it *itemState) map[id.Task]int { return it.dead })
		}
	}
}

// ordersOf returns the valid orders of an entry.
func ordersOf(entry redis.XMessage) []order.Request {
	msg, ok := stream.FromEntry(entry)
	if !ok {
		return nil
	}
	requests, _ := order.Decode(msg) // a worker splits a message with invalid ones
	return requests
}

func ordersOfLetter(letter stream.Letter) []order.Request {
	msg, ok := letter.Message()
	if !ok {
		return nil
	}
	requests, _ := order.Decode(msg)
	return requests
}

// enter records the orders of this sale and returns how many are new.
func (s *state) enter(sale id.Sale, requests []order.Request, set func(*itemState) map[id.Task]int) (fresh int) {
	for _, r := range requests {
		it := s.item(r.Item)
		if r.Sale != sale || it == nil {
			continue
		}
		tasks := set(it)
		if _, known := tasks[r.Task]; !known {
			tasks[r.Task] = r.Quantity
			fresh++
		}
	}
	return fresh
}

// pending returns the entries that were delivered and not acknowledged, and the id of the
// last delivered one: "0" if no group reads the stream.
func (a *Auditor) pending(ctx context.Context, key string) ([]redis.XMessage, string, error) {
	groups, err := a.Redis.Cmd.XInfoGroups(ctx, key).Result()
	if err != nil {
		if redis.HasErrorPrefix(err, "no such key") {
			return nil, "0", nil
		}
		return nil, "", err
	}
	last := ""
	for _, g := range groups {
		if g.Name == orderGroup {
			last = g.LastDeliveredID
		}
	}
	if last == "" {
		return nil, "0", nil
	}
	var entries []redis.XMessage
	for start := "-"; ; {
		list, err := a.Redis.Cmd.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: key, Group: orderGroup, Start: start, End: "+", Count: chunk,
		}).Result()
		if err != nil {
			return nil, "", err
		}
		found, err := a.entries(ctx, key, list)
		if err != nil {
			return nil, "", err
		}
		entries = append(entries, found...)
		if len(list) < chunk {
			return entries, last, nil
		}
		start = "(" + list[len(list)-1].ID
	}
}

// entries fetches entries by id in one pipeline. Trimmed entries are left out.
func (a *Auditor) entries(ctx context.Context, key string, list []redis.XPendingExt) ([]redis.XMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	pipe := a.Redis.Cmd.Pipeline()
	ranges := make([]*redis.XMessageSliceCmd, len(list))
	for i, p := range list {
		ranges[i] = pipe.XRange(ctx, key, p.ID, p.ID)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	var entries []redis.XMessage
	for _, r := range ranges {
		entries = append(entries, r.Val()...)
	}
	return entries, nil
}
