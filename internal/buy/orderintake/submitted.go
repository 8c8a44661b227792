package orderintake

import (
	"context"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// ReservedTasks looks up tasks whose order is not written yet: their record is the
// reservation at the gate.
type ReservedTasks struct {
	Gate  *reservation.Gate
	Items reservation.Items
}

// Task returns the task, or nil when no reservation is of the task. A zero owner stands
// for any user: all reservations of the item are read.
func (s ReservedTasks) Task(ctx context.Context, task id.Task, owner id.User) (*order.Task, error) {
	// All items, because the catalogue of this process may be from before a gate was loaded
	// that already takes orders.
	items, err := s.Items.All(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.Gate.FindTask(ctx, items, task, owner)
	if r == nil || err != nil || r.IdempotencyKey == "" { // an offer, or units of an order
		return nil, err
	}
	return order.NewSubmitted(order.Task{ID: task, User: r.User, Sale: r.Sale, Item: r.Item, Quantity: r.Quantity}, r.At),
		nil
}

// maxAhead is how far the clock of the process that generated an id may be ahead.
const maxAhead = time.Minute

// Vanished answers for tasks that are in no store: Redis lost the writes of its last
// seconds, and another process accepted the task.
type Vanished struct {
	Items reservation.Items
	Clock clock.Clock // of Redis
}

// Task returns a SUBMITTED task for an id that was generated for the owner and a known
// item; nil for any other id. The quantity is not known and is 1. LostTasks ends the task,
// unless its reservation or its message is found.
func (v Vanished) Task(ctx context.Context, task id.Task, owner id.User) (*order.Task, error) {
	at := id.TimeOf(task)
	if !id.IsOf(task, owner) || at.Sub(v.Clock.Now()) > maxAhead {
		return nil, nil // not vanished is an answer
	}
	items, err := v.Items.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, ref := range items {
		if id.MayBeOf(task, ref.Sale, ref.Item) {
			return order.NewSubmitted(order.Task{
				ID: task, User: owner, Sale: ref.Sale, Item: ref.Item, Quantity: 1, Vanished: true,
			}, at), nil
		}
	}
	return nil, nil // its item is unknown
}
