package orderintake

import (
	"context"
	"time"

	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/reservation"
)

// VanishedAfter is the age from which an accepted task that no store knows is answered as
// FAILED. A lost gate is rebuilt, and in-flight messages are written, long before.
const VanishedAfter = time.Minute

// Vanished answers for tasks that are in no store: Redis lost the writes of its last
// seconds, and the process that accepted the task crashed, too. Otherwise LostTasks fails
// them.
type Vanished struct {
	Gate  *reservation.Gate
	Items reservation.Items
	Clock clock.Clock // of Redis
}

// Task returns a FAILED task for an old id that was generated for the owner, when
// neither Redis nor Postgres has the task; nil for any other id, and while the gate of
// its item is not built, because messages may be on their way. The quantity is not known
// and is 1.
func (v Vanished) Task(ctx context.Context, task id.Task, owner id.User) (*order.Task, error) {
	at := id.TimeOf(task)
	if !id.IsOf(task, owner) || v.Clock.Now().Sub(at) < VanishedAfter {
		return nil, nil //nolint:nilnil // not vanished is an answer
	}
	loaded, err := v.Items.Loaded(ctx)
	if err != nil {
		return nil, err
	}
	for _, ref := range loaded {
		if !id.MayBeOf(task, ref.Sale, ref.Item) {
			continue
		}
		state, err := v.Gate.State(ctx, ref.Sale, ref.Item)
		if err != nil || state.Stale || state.Gate == "" || state.Gate == reservation.GateLoading {
			return nil, err
		}
	}
	items, err := v.Items.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, ref := range items {
		if id.MayBeOf(task, ref.Sale, ref.Item) {
			return &order.Task{
				ID: task, User: owner, Sale: ref.Sale, Item: ref.Item, Quantity: 1,
				Status: order.Failed, Revision: order.RevisionEnded, Failure: fault.Conflict, Vanished: true,
				CreatedAt: at, UpdatedAt: at.Add(VanishedAfter),
			}, nil
		}
	}
	return nil, nil //nolint:nilnil // its item is unknown
}
