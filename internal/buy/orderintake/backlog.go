package orderintake

import (
	"context"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/stream"
)

// Backlog reads the order messages that are not handled yet: their units are reserved,
// but no row exists.
type Backlog struct {
	conn    *redisconn.Conn
	keys    reservation.Keys
	letters *DeadLetters
}

// NewBacklog returns a backlog.
func NewBacklog(conn *redisconn.Conn, keys reservation.Keys, letters *DeadLetters) *Backlog {
	return &Backlog{conn: conn, keys: keys, letters: letters}
}

// Requests returns the valid orders of the messages in a shard's stream and among its dead
// letters. Handled messages that are not trimmed yet are included.
func (b *Backlog) Requests(ctx context.Context, shard int) ([]order.Request, error) {
	return b.read(ctx, shard, func(key string, visit func(*stream.Message)) error {
		return stream.Backlog(ctx, b.conn.Cmd, key, visit)
	})
}

// Unhandled is Requests without acknowledged messages. Each of their orders has a row in Postgres,
// unless a commit was lost; no worker will write it again.
func (b *Backlog) Unhandled(ctx context.Context, shard int) ([]order.Request, error) {
	return b.read(ctx, shard, func(key string, visit func(*stream.Message)) error {
		return stream.Unacknowledged(ctx, b.conn.Cmd, key, order.Group, func(msg *stream.Message, _ bool) { visit(msg) })
	})
}

// read reads the dead letters before and after the stream, so that a message that moves between the two
// in the meantime is seen; it may be returned twice.
func (b *Backlog) read(ctx context.Context, shard int,
	messages func(key string, visit func(*stream.Message)) error,
) ([]order.Request, error) {
	key := b.keys.Orders(shard)
	out, err := b.letters.waiting(ctx, key)
	if err != nil {
		return nil, err
	}
	err = messages(key, func(msg *stream.Message) {
		requests, _ := order.Decode(msg) // the valid ones: the worker splits the message
		out = append(out, requests...)
	})
	if err != nil {
		return nil, err
	}
	again, err := b.letters.waiting(ctx, key)
	return append(out, again...), err
}

func (b *Backlog) tasksIn(ctx context.Context, shard int) (map[id.Task]bool, error) {
	requests, err := b.Unhandled(ctx, shard)
	if err != nil {
		return nil, err
	}
	tasks := make(map[id.Task]bool, len(requests))
	for _, r := range requests {
		tasks[r.Task] = true
	}
	return tasks, nil
}
