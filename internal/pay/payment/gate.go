package payment

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// parallelReturns is how many returns to Redis run concurrently.
const parallelReturns = 8

// NoteStock receives the units left of an item after a change. It updates the in-memory
// copy of the gate, so that this process clears a sold-out mark at once.
type NoteStock func(r order.Reservation, epoch, revision int64, remaining int)

// RedisGate is the part of the gate in Redis that payments use.
type RedisGate struct {
	gate *reservation.Gate
	note NoteStock
}

// NewRedisGate returns a RedisGate; note may be nil.
func NewRedisGate(gate *reservation.Gate, note NoteStock) *RedisGate {
	if note == nil {
		note = func(order.Reservation, int64, int64, int) {}
	}
	return &RedisGate{gate: gate, note: note}
}

// Reacquire reserves units again.
func (g *RedisGate) Reacquire(ctx context.Context, c order.Reservation) (ReacquireOutcome, int64, error) {
	r, err := g.gate.Reacquire(ctx, reservation.Reacquire{Ref: gateReservation(c), Before: c.Order, Quantity: c.Quantity,
		Persons: c.Persons})
	if err != nil {
		return "", 0, err
	}
	switch r.Code {
	case reservation.Reacquired, reservation.ReacquiredBefore:
		g.note(c, r.Epoch, r.Revision, r.Remaining)
		return ReacquireDone, r.Epoch, nil
	case reservation.ReacquireTooFew:
		return ReacquireNone, r.Epoch, nil
	case reservation.ReacquireNotLoaded:
		return ReacquireNoGate, 0, nil
	case reservation.ReacquireNotYet:
		return ReacquireNotYet, r.Epoch, nil
	case reservation.ReacquireOther, reservation.ReacquireOverLimit:
		return ReacquireOther, r.Epoch, nil
	}
	return "", 0, fmt.Errorf("reacquire answered %d", r.Code)
}

// Return returns units. It returns false while the gate is being rebuilt.
func (g *RedisGate) Return(ctx context.Context, c order.Reservation) (bool, error) {
	r, err := g.gate.Release(ctx, gateReservation(c))
	if err != nil {
		return false, err
	}
	if r.Done {
		g.note(c, r.Epoch, r.Revision, r.Remaining)
	}
	return !r.Building, nil
}

// ReturnAll returns units of many reservations, of ended orders or failed tasks: it is
// an order.ReturnReservations. After a failure it skips the other reservations of that
// shard, because each of them would wait for the same server.
func (g *RedisGate) ReturnAll(ctx context.Context, reservations []order.Reservation) (waiting []id.Item, err error) {
	var mu sync.Mutex
	items, unreachable := map[id.Item]bool{}, map[int]bool{}
	var failed []error
	var calls errgroup.Group
	calls.SetLimit(parallelReturns)
	for _, r := range reservations {
		calls.Go(func() error {
			shard := id.ShardOf(r.Sale)
			mu.Lock()
			skip := unreachable[shard]
			items[r.Item] = items[r.Item] || skip
			mu.Unlock()
			if skip {
				return nil
			}
			done, err := g.Return(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			items[r.Item] = items[r.Item] || !done
			if err != nil {
				unreachable[shard] = true
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = calls.Wait() // all failures are in failed
	for item, waits := range items {
		if waits {
			waiting = append(waiting, item)
		}
	}
	return waiting, errors.Join(failed...)
}

func gateReservation(c order.Reservation) reservation.Ref {
	return reservation.Ref{Sale: c.Sale, Item: c.Item, User: c.User, Task: c.Name, Expired: c.Expired,
		Oversold: c.Oversold, Withdrawn: c.Withdrawn, Keep: c.Keep}
}
