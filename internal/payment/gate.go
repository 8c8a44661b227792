package payment

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"seckill/internal/order"
	"seckill/internal/reservation"
)

// parallelReturns is how many units go back to Redis at once.
const parallelReturns = 8

// NoteStock hears how much of an item is left after a change: the local view of
// the gate, so that a sold-out mark is undone at once in this process.
type NoteStock func(claim order.Claim, epoch, revision int64, remaining int)

// RedisGate is the gate in Redis as payments see it.
type RedisGate struct {
	releaser *reservation.Releaser
	note     NoteStock
}

// NewRedisGate returns the gate; note may be nil.
func NewRedisGate(releaser *reservation.Releaser, note NoteStock) *RedisGate {
	if note == nil {
		note = func(order.Claim, int64, int64, int) {}
	}
	return &RedisGate{releaser: releaser, note: note}
}

// Retake takes units again.
func (g *RedisGate) Retake(ctx context.Context, c order.Claim) (Retaken, error) {
	r, err := g.releaser.Retake(ctx, reservation.Retake{Hold: hold(c), Before: c.Order, Quantity: c.Quantity})
	if err != nil {
		return "", err
	}
	switch r.Code {
	case reservation.RetakeDone, reservation.RetakeDoneBefore:
		g.note(c, r.Epoch, r.Revision, r.Remaining)
		return RetakeDone, nil
	case reservation.RetakeTooFew:
		return RetakeNone, nil
	case reservation.RetakeNotLoaded:
		return RetakeNoGate, nil
	case reservation.RetakeNotYet:
		return RetakeNotYet, nil
	case reservation.RetakeOther:
		return RetakeOther, nil
	}
	return "", fmt.Errorf("retake answered %d", r.Code)
}

// GiveBack returns units. It returns false while the gate is being built.
func (g *RedisGate) GiveBack(ctx context.Context, c order.Claim) (bool, error) {
	r, err := g.releaser.Release(ctx, hold(c))
	if err != nil {
		return false, err
	}
	if r.Done {
		g.note(c, r.Epoch, r.Revision, r.Remaining)
	}
	return !r.Building, nil
}

// GiveBackAll returns units of many claims, of ended orders or of failed tasks: it is an
// order.ReturnClaims.
func (g *RedisGate) GiveBackAll(ctx context.Context, claims []order.Claim) (building []uuid.UUID, err error) {
	var mu sync.Mutex
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(parallelReturns)
	for _, c := range claims {
		tasks.Go(func() error {
			done, err := g.GiveBack(ctx, c)
			if err != nil || done {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(building, c.Item) {
				building = append(building, c.Item)
			}
			return nil
		})
	}
	err = tasks.Wait()
	return building, err
}

func hold(c order.Claim) reservation.Hold {
	return reservation.Hold{Sale: c.Sale, Item: c.Item, User: c.User, Task: c.Name, Lapsed: c.Lapsed}
}
