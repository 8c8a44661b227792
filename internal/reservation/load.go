package reservation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/internal/id"
)

// reservationChunk bounds the reservations that one script call writes.
const reservationChunk = 1000

// Contents is everything that the gate of an item holds, for building it.
type Contents struct {
	Sale, Item   uuid.UUID
	State        string // GateOpen, GatePaused or GateEnded
	Epoch        int64  // higher than any epoch built before
	Opens        time.Time
	Closes       time.Time
	Limit        int // most units that one buyer may have
	Total        int
	Stock        int   // units to take; Total minus sold minus reserved
	Revision     int64 // higher than any seen before
	Reservations []Reservation
	// SaleRevision is the revision of the sale that State comes from.
	SaleRevision int64
	// Acts are the adjustments that Total and Stock include, so that none of them is
	// counted again. Those that are complete may be left out.
	Acts []uuid.UUID
}

// Begin closes the gate of an item for a new epoch and removes its reservations. It
// returns false when the gate has that epoch, or a higher one, already: another
// process builds it, or has built it.
func (g *Gate) Begin(ctx context.Context, sale, item uuid.UUID, epoch int64) (bool, error) {
	shard := id.ShardOf(sale)
	keys := []string{g.keys.Item(shard, item), g.keys.Reservations(shard, item), g.keys.Permits(shard, item)}
	begun, err := beginScript.Run(ctx, g.client, keys, strconv.FormatInt(epoch, 10)).Int()
	if err != nil {
		return false, fmt.Errorf("begin gate of %s: %w", item, err)
	}
	return begun == 1, nil
}

// Open writes the contents of a gate that Begin closed for c.Epoch and opens it. It
// returns false when another build with a higher epoch has begun meanwhile.
func (g *Gate) Open(ctx context.Context, c Contents) (bool, error) {
	shard := id.ShardOf(c.Sale)
	reserved, err := g.addReservations(ctx, shard, c)
	if err != nil {
		return false, err
	}
	opened, err := openScript.Run(ctx, g.client, []string{g.keys.Item(shard, c.Item)},
		strconv.FormatInt(c.Epoch, 10), c.Revision,
		"sale", c.Sale.String(), "gate", c.State,
		"opens", c.Opens.UnixMilli(), "closes", c.Closes.UnixMilli(),
		"limit", c.Limit, "total", c.Total, "stock", c.Stock, "reserved", reserved,
		"srev", c.SaleRevision, "acts", c.acts(),
	).Int()
	if err != nil {
		return false, fmt.Errorf("open gate of %s: %w", c.Item, err)
	}
	return opened == 1, nil
}

// acts is how lua/adjust.lua keeps them.
func (c Contents) acts() string {
	texts := make([]string, len(c.Acts))
	for i, act := range c.Acts {
		texts[i] = act.String()
	}
	return strings.Join(texts, " ")
}

// addReservations writes the reservations of a gate that is being built and returns
// how many units they have. The script checks the epoch each time.
func (g *Gate) addReservations(ctx context.Context, shard int, c Contents) (reserved int, err error) {
	keys := []string{g.keys.Item(shard, c.Item), g.keys.Reservations(shard, c.Item)}
	args := make([]any, 1, 1+2*reservationChunk)
	args[0] = strconv.FormatInt(c.Epoch, 10)
	flush := func() error {
		if len(args) == 1 {
			return nil
		}
		if err := addReservationsScript.Run(ctx, g.client, keys, args...).Err(); err != nil {
			return fmt.Errorf("write reservations of %s: %w", c.Item, err)
		}
		args = args[:1]
		return nil
	}
	for _, r := range c.Reservations {
		reserved += r.Quantity
		args = append(args, r.User.String(), r.record())
		if len(args) == cap(args) {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	return reserved, flush()
}
