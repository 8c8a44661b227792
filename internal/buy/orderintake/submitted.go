package orderintake

import (
	"context"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// Submitted looks up tasks whose order is not written yet: their record is the
// reservation at the gate.
type Submitted struct {
	Gate  *reservation.Gate
	Items reservation.Items
}

// Task returns the task, or nil when no reservation is of the task. A Nil owner stands
// for any user: all reservations of the item are read.
func (s Submitted) Task(ctx context.Context, task id.Task, owner id.User) (*order.Task, error) {
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
