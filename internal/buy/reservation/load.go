package reservation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// reservationChunk bounds the reservations that one script call writes.
const reservationChunk = 1000

// Contents is the full content of an item's gate, from which it is built.
type Contents struct {
	Sale         id.Sale
	Item         id.Item
	State        string // GateOpen, GatePaused or GateEnded
	Epoch        int64  // higher than any earlier epoch
	Opens        time.Time
	Closes       time.Time
	Limit        int // purchase limit per buyer
	SaleLimit    int // purchase limit per buyer over all items of the sale; 0 = none
	Total        int
	Stock        int // available units: Total minus sold minus reserved
	Shares       []Share
	BuyersWait   bool  // on the waitlist: available units are for them
	Revision     int64 // higher than any earlier revision
	Reservations []Reservation
	// Reserved is the number of units that AddReservations wrote before.
	Reserved int
	// SaleRevision is the revision of the sale that set State.
	SaleRevision int64
	// Acts are the adjustments that Total and Stock include, so that the gate does not
	// count them a second time. Completed adjustments may be left out.
	Acts []uuid.UUID
}

// Begin closes the gate of an item for a new epoch and removes its reservations. All
// items of a sale are begun before the first reservation is written. It returns false if the gate
// has that epoch or a higher one: another process builds it
// or has built it.
func (g *Gate) Begin(ctx context.Context, sale id.Sale, item id.Item, epoch int64) (bool, error) {
	shard := id.ShardOf(sale)
	keys := []string{g.keys.Item(shard, item), g.keys.Reservations(shard, item), g.keys.Permits(shard, item),
		g.keys.FormerReservations(shard, item), g.keys.Units(shard, sale)}
	begun, err := beginScript.Run(ctx, g.client, keys, strconv.FormatInt(epoch, 10)).Int()
	if err != nil {
		return false, fmt.Errorf("begin gate of %s: %w", item, err)
	}
	return begun == 1, nil
}

// Open writes the contents of a gate that Begin closed for c.Epoch and opens it. It
// returns false if another build with a higher epoch has begun in the meantime.
func (g *Gate) Open(ctx context.Context, c Contents) (bool, error) {
	written, err := g.AddReservations(ctx, &c, c.Reservations)
	if err != nil || !written {
		return false, err
	}
	shard := id.ShardOf(c.Sale)
	progress := func() error { // shows other processes that the build continues
		return g.addChunk(ctx, c, nil).Err()
	}
	if err := g.keepKeys(ctx, c.Sale, c.Item, g.keys.FormerReservations(shard, c.Item), progress); err != nil {
		return false, err
	}
	fields := []any{strconv.FormatInt(c.Epoch, 10), c.Revision, c.BuyersWait,
		"sale", c.Sale.String(), "gate", c.State,
		"opens", c.Opens.UnixMilli(), "closes", c.Closes.UnixMilli(),
		"limit", c.Limit, "salelimit", c.SaleLimit, "total", c.Total, "stock", c.Stock, "reserved", c.Reserved,
		"srev", c.SaleRevision, "acts", c.acts()}
	if len(c.Shares) > 0 {
		fields = append(fields, "kept", sharesText(bounded(c.Shares, c.Stock)))
	}
	opened, err := openScript.Run(ctx, g.client,
		[]string{g.keys.Item(shard, c.Item), g.keys.FormerReservations(shard, c.Item)}, fields...).Int()
	if err != nil {
		return false, fmt.Errorf("open gate of %s: %w", c.Item, err)
	}
	return opened == 1, nil
}

// acts returns the adjustments in the format of lua/adjust.lua.
func (c Contents) acts() string {
	texts := collect.Map(c.Acts, func(act uuid.UUID) string { return act.String() })
	return strings.Join(texts, " ")
}

// AddReservations writes reservations of a gate that Begin closed for c.Epoch, and adds
// their units to c.Reserved and c.Shares. A large gate is built by many calls, before Open; each call
// shows other processes that the build continues. In a sale with a limit, the gates of all
// items have their reservations before the first of them is opened. It returns false if
// another build with a higher epoch has begun, also for an empty list.
func (g *Gate) AddReservations(ctx context.Context, c *Contents, list []Reservation) (bool, error) {
	for first := true; first || len(list) > 0; first = false {
		chunk := list[:min(len(list), reservationChunk)]
		list = list[len(chunk):]
		written, err := g.addChunk(ctx, *c, chunk).Int()
		if err != nil {
			return false, fmt.Errorf("write reservations of %s: %w", c.Item, err)
		}
		if written != 1 {
			return false, nil
		}
		for _, r := range chunk {
			c.Reserved += r.Quantity
			for i := range c.Shares {
				if c.Shares[i].Key == r.Persons.Share {
					c.Shares[i].Taken += r.Quantity
				}
			}
		}
	}
	return true, nil
}

func (g *Gate) addChunk(ctx context.Context, c Contents, chunk []Reservation) *redis.Cmd {
	shard := id.ShardOf(c.Sale)
	keys := []string{g.keys.Item(shard, c.Item), g.keys.Reservations(shard, c.Item), g.keys.Units(shard, c.Sale)}
	counted := 0
	switch {
	case c.SaleLimit > 0:
		counted = 1
	case slices.ContainsFunc(chunk, func(r Reservation) bool { return !r.Persons.IsZero() }):
		counted = 2
	}
	args := append(make([]any, 0, 3+2*len(chunk)), strconv.FormatInt(c.Epoch, 10), counted, c.Item.String())
	for _, r := range chunk {
		args = append(args, r.User.String(), r.record())
	}
	return addReservationsScript.Run(ctx, g.client, keys, args...)
}
