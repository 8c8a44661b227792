package reservation

import (
	"context"
	"fmt"

	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
)

// ReacquireCode is the outcome of Reacquire. The numbers are those of
// lua/reacquire.lua.
type ReacquireCode int

// Outcomes of Reacquire.
const (
	Reacquired         ReacquireCode = 1
	ReacquiredBefore   ReacquireCode = 2  // under the same task
	ReacquireTooFew    ReacquireCode = 0  // fewer units are left
	ReacquireNotLoaded ReacquireCode = -1 // the item has no gate in Redis
	// the gate is being built or stale, the former reservation is not released yet, or units per buyer are not counted
	ReacquireNotYet ReacquireCode = -2
	ReacquireOther  ReacquireCode = -3 // the user has a reservation for another order
	// the user's reservations leave too little of the limit of the sale, or those of the person of a limit
	ReacquireOverLimit ReacquireCode = -4
)

// Reacquire names units to reserve again, for an order that had expired, or for a task
// whose gate was lost.
type Reacquire struct {
	Ref               // Task is the task of the new reservation
	Before   id.Order // the task of the former reservation
	Quantity int
	// IdempotencyKey is the key of the attempt, which repeated calls find; "" = none.
	IdempotencyKey string
	Persons        person.Keys
}

// ReacquireOutcome is the result of Reacquire.
type ReacquireOutcome struct {
	Code      ReacquireCode
	Remaining int
	Revision  int64
	Epoch     int64
}

// Reacquire reserves units for an order that had expired, or for a task whose gate was lost. It ignores the
// window and the state of the gate, and takes the units once per task.
func (g *Gate) Reacquire(ctx context.Context, r Reacquire) (ReacquireOutcome, error) {
	shard := id.ShardOf(r.Sale)
	keys := []string{g.keys.Item(shard, r.Item), g.keys.Reservations(shard, r.Item), g.keys.Units(shard, r.Sale)}
	reply, err := reacquireScript.Run(ctx, g.client, keys, r.User.String(), r.Task.String(), r.Quantity, r.Before.String(),
		r.IdempotencyKey,
		r.Item.String(), r.Persons.String()).Int64Slice()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("reply of %d values", len(reply))
	}
	if err != nil {
		return ReacquireOutcome{}, fmt.Errorf("reacquire %s: %w", r.Task, err)
	}
	return ReacquireOutcome{Code: ReacquireCode(reply[0]), Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3]},
		nil
}
