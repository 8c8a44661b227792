package reservation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

// holderChunk bounds one script call while holders are written.
const holderChunk = 1000

// Gate states as they stand in the item hash.
const (
	GateOpen    = "open"
	GatePaused  = "paused"
	GateEnded   = "ended"
	GateLoading = "loading"
)

// Holder is who holds units of an item.
type Holder struct {
	User, Task     uuid.UUID
	Quantity       int
	At             time.Time
	IdempotencyKey string
}

// Gate is everything that Redis knows of an item, for building it.
type Gate struct {
	Sale, Item uuid.UUID
	State      string // GateOpen, GatePaused or GateEnded
	Epoch      int64  // higher than any epoch built before
	Opens      time.Time
	Closes     time.Time
	Limit      int // most units that one person may hold
	Total      int
	Stock      int   // units to take; Total minus sold minus what the holders have
	Revision   int64 // higher than any seen before
	Holders    []Holder
	// SaleRevision is the revision of the sale that State comes from.
	SaleRevision int64
	// Acts are the adjustments of stock that Total and Stock have in them, so
	// that none of them is counted again. Those that are done with may be left out.
	Acts []uuid.UUID
}

// Loader builds gates in Redis.
type Loader struct {
	client redis.UniversalClient
	keys   Keys
}

// NewLoader returns a loader.
func NewLoader(client redis.UniversalClient, keys Keys) *Loader {
	return &Loader{client: client, keys: keys}
}

// Keeper returns a keeper of the gates that the loader builds.
func (l *Loader) Keeper() *Keeper { return NewKeeper(l.client, l.keys) }

// Begin closes the gate of an item for a new epoch and clears its holders. It
// returns false when the gate has that epoch, or a higher one, already: then
// another process builds it, or has built it.
func (l *Loader) Begin(ctx context.Context, sale, item uuid.UUID, epoch int64) (bool, error) {
	shard := id.ShardOf(sale)
	keys := []string{l.keys.Item(shard, item), l.keys.Holders(shard, item), l.keys.Permits(shard, item)}
	begun, err := beginScript.Run(ctx, l.client, keys, strconv.FormatInt(epoch, 10)).Int()
	if err != nil {
		return false, fmt.Errorf("begin gate of %s: %w", item, err)
	}
	return begun == 1, nil
}

// Open writes the holders and opens the gate that Begin closed for g.Epoch. It
// returns false when another build with a higher epoch has begun meanwhile.
func (l *Loader) Open(ctx context.Context, g Gate) (bool, error) {
	shard := id.ShardOf(g.Sale)
	reserved, err := l.writeHolders(ctx, shard, g)
	if err != nil {
		return false, err
	}
	opened, err := openScript.Run(ctx, l.client, []string{l.keys.Item(shard, g.Item)},
		strconv.FormatInt(g.Epoch, 10),
		"sale", g.Sale.String(), "gate", g.State,
		"opens", g.Opens.UnixMilli(), "closes", g.Closes.UnixMilli(),
		"limit", g.Limit, "total", g.Total, "stock", g.Stock, "reserved", reserved, "rev", g.Revision,
		"srev", g.SaleRevision, "acts", g.acts(),
	).Int()
	if err != nil {
		return false, fmt.Errorf("open gate of %s: %w", g.Item, err)
	}
	return opened == 1, nil
}

// acts is how lua/adjust.lua keeps them.
func (g Gate) acts() string {
	texts := make([]string, len(g.Acts))
	for i, act := range g.Acts {
		texts[i] = act.String()
	}
	return strings.Join(texts, " ")
}

// writeHolders writes the holders of a gate that is being built. The script
// checks the epoch each time; a build that was overtaken is told so by open.
func (l *Loader) writeHolders(ctx context.Context, shard int, g Gate) (reserved int, err error) {
	keys := []string{l.keys.Item(shard, g.Item), l.keys.Holders(shard, g.Item)}
	args := make([]any, 1, 1+2*holderChunk)
	args[0] = strconv.FormatInt(g.Epoch, 10)
	flush := func() error {
		if len(args) == 1 {
			return nil
		}
		if err := holdersScript.Run(ctx, l.client, keys, args...).Err(); err != nil {
			return fmt.Errorf("write holders of %s: %w", g.Item, err)
		}
		args = args[:1]
		return nil
	}
	for _, h := range g.Holders {
		reserved += h.Quantity
		args = append(args, h.User.String(),
			fmt.Sprintf("%s|%d|%d|%s", h.Task, h.Quantity, h.At.UnixMilli(), h.IdempotencyKey))
		if len(args) == cap(args) {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	return reserved, flush()
}
