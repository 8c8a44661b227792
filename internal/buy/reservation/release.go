package reservation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

// Ref identifies a reservation.
type Ref struct {
	Sale id.Sale
	Item id.Item
	User id.User
	Task id.Task // or the waitlist entry of an offer
	// Expired counts the release as an expiry of the buyer, who did not pay in time.
	Expired bool
	// Oversold removes the units instead of returning them: Postgres refused the order
	// because it has no available units.
	Oversold bool
	// Withdrawn removes the units instead of returning them: they are no longer part of
	// the sale.
	Withdrawn bool
	// Keep is how many units of the reservation are not released; 0 = none.
	Keep int
}

// end returns what becomes of the units, in the format of lua/release.lua.
func (r Ref) end() int {
	switch {
	case r.Oversold:
		return 1
	case r.Withdrawn:
		return 2
	}
	return 0
}

const (
	// MaxExpired is the number of expired reservations in a sale after which a person
	// has to wait: an unpaid reservation withholds units from others.
	MaxExpired = 2
	// ExpiredWait is the first wait, counted from the last expiry. It doubles with each further
	// one, up to LongestWait.
	ExpiredWait = 15 * time.Minute
	// LongestWait bounds the wait.
	LongestWait = 12 * time.Hour
	// expiriesKept is how long expiries are counted after the last: longer than the longest wait,
	// so that the next expiry after a wait continues the count.
	expiriesKept = 24 * time.Hour
)

// Expiries are those of a user or a person key in a sale.
type Expiries struct {
	Subject string
	Count   int
	Last    time.Time
}

// ExpiriesSince is the time from which expiries count at a time.
func ExpiriesSince(now time.Time) time.Time { return now.Add(-expiriesKept) }

// RestoreExpiries sets the expiries in a sale after Redis lost them; those that it has stay if they
// are more.
func (g *Gate) RestoreExpiries(ctx context.Context, sale id.Sale, all []Expiries, now time.Time) error {
	prefix := []string{g.keys.ExpiriesPrefix(id.ShardOf(sale), sale)}
	for chunk := range slices.Chunk(all, reservationChunk) {
		args := make([]any, 0, 3*len(chunk))
		for _, e := range chunk {
			args = append(args, e.Subject, e.Count, max(1, e.Last.Add(expiriesKept).Sub(now).Milliseconds()))
		}
		if err := restoreExpiriesScript.Run(ctx, g.client, prefix, args...).Err(); err != nil {
			return fmt.Errorf("restore expiries in sale %s: %w", sale, err)
		}
	}
	return nil
}

// Released is the outcome of a release.
type Released struct {
	Done      bool // false: no reservation has that task, or no gate is loaded; nothing changed
	Building  bool // the gate is being built and may contain the reservation: release again later
	Remaining int
	Revision  int64
	Epoch     int64
}

// Release returns the units of one reservation to the available stock, once per task, or
// all but those to keep.
func (g *Gate) Release(ctx context.Context, r Ref) (Released, error) {
	shard := id.ShardOf(r.Sale)
	keys := []string{g.keys.Item(shard, r.Item), g.keys.Reservations(shard, r.Item), g.keys.ExpiriesPrefix(shard, r.Sale),
		g.keys.IdempotencyKeys(shard, r.Sale), g.keys.Units(shard, r.Sale)}
	reply, err := releaseScript.Run(ctx, g.client, keys, r.User.String(), r.Task.String(), r.Expired, r.end(),
		recordTTL.Milliseconds(), r.Item.String(), r.Keep).Int64Slice()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("reply of %d values", len(reply))
	}
	if err != nil {
		return Released{}, fmt.Errorf("release %s: %w", r.Task, err)
	}
	return Released{
		Done: reply[0] == 1, Building: reply[0] == -2,
		Remaining: int(reply[1]), Revision: reply[2], Epoch: reply[3],
	}, nil
}

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
