package orderintake

import (
	"context"
	"time"

	"seckill/internal/reservation"
	"seckill/internal/stream"
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

// Unread returns what no worker has read of a shard.
func (q Queue) Unread(ctx context.Context, shard int) (stream.Unread, error) {
	return q.Inspector.Unread(ctx, q.Keys.Orders(shard), q.Group)
}
