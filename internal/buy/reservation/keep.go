package reservation

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

// keepKeys records the idempotency keys of the reservations in a hash that is about to
// be removed, so that they answer repeated calls for another day. Doing it twice is
// harmless. A recorded key stays: its quantity is that of the attempt, also when units of
// the reservation were released. It calls progress after each page.
func (g *Gate) keepKeys(ctx context.Context, sale id.Sale, item id.Item, hash string, progress func() error) error {
	keys := g.keys.IdempotencyKeys(id.ShardOf(sale), sale)
	err := g.eachReservation(ctx, hash, func(page []Reservation) error {
		page = slices.DeleteFunc(page, func(r Reservation) bool { return r.IdempotencyKey == "" })
		if len(page) == 0 {
			return progress()
		}
		_, err := g.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, r := range page {
				pipe.HSetNX(ctx, keys, r.User.String()+":"+r.IdempotencyKey, fmt.Sprintf("%s|%s|%d", r.Task, item, r.Quantity))
			}
			return pipe.PExpire(ctx, keys, recordTTL).Err()
		})
		if err != nil {
			return err
		}
		return progress()
	})
	if err != nil {
		return fmt.Errorf("keep idempotency keys of %s: %w", item, err)
	}
	return nil
}

// eachReservation visits the readable reservations in a hash page by page; some may be
// visited twice.
func (g *Gate) eachReservation(ctx context.Context, hash string, visit func(page []Reservation) error) error {
	for cursor := uint64(0); ; {
		fields, next, err := g.readClient.HScan(ctx, hash, cursor, "", findPage).Result()
		if err != nil {
			return err
		}
		page := make([]Reservation, 0, len(fields)/2)
		for i := 0; i+1 < len(fields); i += 2 { // field, value, …
			user, err := id.ParseUUID[id.User](fields[i])
			if err != nil {
				continue // no code writes such a field
			}
			if r, err := ParseReservation(user, fields[i+1]); err == nil {
				page = append(page, r)
			}
		}
		if err := visit(page); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
