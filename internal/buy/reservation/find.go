package reservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

// findPage is the COUNT of one HSCAN: it occupies Redis for less than 1 ms.
const findPage = 1_000

// errFound ends a scan early.
var errFound = errors.New("found")

// FoundTask is the reservation of a task.
type FoundTask struct {
	ItemRef
	Reservation
}

// FindTask returns the reservation of a task of a user among some items, or nil. While a
// gate is being built, its former reservations are found. A Nil user stands for any: all
// reservations of the items that the task may be of are read.
func (g *Gate) FindTask(ctx context.Context, items []ItemRef, task id.Task, user id.User) (*FoundTask, error) {
	for _, ref := range items {
		if !id.MayBeOf(task, ref.Sale, ref.Item) {
			continue
		}
		r, err := g.findIn(ctx, ref, task, user)
		if err != nil {
			return nil, fmt.Errorf("find task %s in item %s: %w", task, ref.Item, err)
		}
		if r != nil {
			return &FoundTask{ref, *r}, nil
		}
	}
	return nil, nil // no reservation is an answer
}

func (g *Gate) findIn(ctx context.Context, ref ItemRef, task id.Task, user id.User) (*Reservation, error) {
	shard := id.ShardOf(ref.Sale)
	former := g.keys.FormerReservations(shard, ref.Item)
	if user.IsZero() {
		r, err := g.scanFor(ctx, g.keys.Reservations(shard, ref.Item), task)
		if r == nil && err == nil {
			r, err = g.scanFor(ctx, former, task)
		}
		return r, err
	}
	held, err := g.Reservations(ctx, ref.Sale, []id.Item{ref.Item}, user)
	if err != nil {
		return nil, err
	}
	if r, ok := held[ref.Item]; ok {
		return ofTask(&r, task), nil
	}
	record, err := g.readClient.HGet(ctx, former, user.String()).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil // no reservation is an answer
	}
	if err != nil {
		return nil, err
	}
	r, err := ParseReservation(user, record)
	return ofTask(&r, task), err
}

// ofTask returns the reservation if it is of the task, else nil.
func ofTask(r *Reservation, task id.Task) *Reservation {
	if r.Task != task {
		return nil
	}
	return r
}

// scanFor looks for the reservation of a task in a hash of reservations.
func (g *Gate) scanFor(ctx context.Context, hash string, task id.Task) (found *Reservation, err error) {
	err = g.eachReservation(ctx, hash, func(page []Reservation) error {
		for _, r := range page {
			if r.Task == task {
				found = &r
				return errFound
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}
