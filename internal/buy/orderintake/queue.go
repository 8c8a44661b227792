package orderintake

import (
	"context"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// Queue is the queue of order messages: their streams, as the workers read them.
type Queue struct {
	Inspector stream.Inspector
	Keys      reservation.Keys
	Group     string
}

// Depth returns how many messages of a shard wait for a worker or are at one, and the age
// of the oldest.
func (q Queue) Depth(ctx context.Context, shard int) (depth int, age time.Duration, err error) {
	s, err := q.Inspector.Stats(ctx, q.Keys.Orders(shard), q.Group)
	return int(s.Unread + s.Pending), s.OldestAge, err
}

// Unfinished returns what no worker has acknowledged of a shard; earlier is an earlier
// reading, or the zero value.
func (q Queue) Unfinished(ctx context.Context, shard int, earlier stream.Unfinished) (stream.Unfinished, error) {
	return q.Inspector.Unfinished(ctx, q.Keys.Orders(shard), q.Group, earlier)
}

// Number returns the number of a task's order among those appended to its shard, and of all
// orders of its message; without that of the task if its message is no longer there.
func (q Queue) Number(ctx context.Context, t *order.Task, shard int) (map[id.Task]int64, error) {
	numbers := map[id.Task]int64{}
	err := q.Inspector.AppendedAt(ctx, q.Keys.Orders(shard), t.CreatedAt, func(m stream.Numbered) bool {
		requests, err := order.Decode(m.Message)
		if err != nil || m.First == 0 {
			return true // it will become a dead letter
		}
		for i, r := range requests {
			if _, again := numbers[r.Task]; !again {
				numbers[r.Task] = m.First + int64(i)
			}
		}
		_, found := numbers[t.ID]
		return !found
	})
	return numbers, err
}
