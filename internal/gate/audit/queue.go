package audit

import (
	"context"
	"fmt"

	"seckill/internal/buy/order"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// chunk limits one read of dead letters.
const chunk = 1000

// readQueue reads the sale's messages that are not acknowledged. Entries without an order
// message of this sale are ignored.
func (a *Auditor) readQueue(ctx context.Context, sale id.Sale, s *state) error {
	for _, it := range s.items {
		it.queued, it.dead = map[id.Task]int{}, map[id.Task]int{}
	}
	key := a.Keys.Orders(id.ShardOf(sale))
	err := stream.Unacknowledged(ctx, a.Redis.Cmd, key, order.Group, func(msg *stream.Message, pending bool) {
		requests, _ := order.Decode(msg) // the valid ones: a worker splits the message
		n := s.enter(sale, requests, func(it *itemState) map[id.Task]int { return it.queued })
		if pending {
			s.queue.Pending += n
		} else {
			s.queue.Unread += n
		}
	})
	if err != nil {
		return err
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
