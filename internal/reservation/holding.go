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

	"seckill/internal/id"
)

// Holdings reads who holds what.
type Holdings struct {
	client redis.UniversalClient
	keys   Keys
}

// NewHoldings returns a reader of holders.
func NewHoldings(client redis.UniversalClient, keys Keys) *Holdings {
	return &Holdings{client: client, keys: keys}
}

// Of returns what a user holds of the given items of one sale, by item, in one
// round trip. Items of which the user holds nothing are left out.
func (h *Holdings) Of(ctx context.Context, sale uuid.UUID, items []uuid.UUID, user uuid.UUID) (map[uuid.UUID]Holder, error) {
	held, _, err := h.WithLines(ctx, sale, items, user, nil)
	return held, err
}

// WithLines is Of, and tells in the same round trip whether people wait in line for
// one of some items. Whoever has just joined is among them.
func (h *Holdings) WithLines(ctx context.Context, sale uuid.UUID, items []uuid.UUID, user uuid.UUID, soldOut []uuid.UUID) (map[uuid.UUID]Holder, bool, error) {
	shard := id.ShardOf(sale)
	pipe := h.client.Pipeline()
	lines := make([]*redis.BoolCmd, len(soldOut))
	for i, item := range soldOut {
		lines[i] = pipe.HExists(ctx, h.keys.Item(shard, item), "line")
	}
	cmds := make([]*redis.SliceCmd, len(items))
	for i, item := range items {
		cmds[i] = pipe.HMGet(ctx, h.keys.Holders(shard, item), user.String())
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, false, fmt.Errorf("read holdings: %w", err)
	}
	held := make(map[uuid.UUID]Holder)
	for i, item := range items {
		text, ok := cmds[i].Val()[0].(string)
		if !ok {
			continue
		}
		holder, err := ParseHolder(user, text)
		if err != nil {
			return nil, false, fmt.Errorf("read holding of %s: %w", item, err)
		}
		held[item] = holder
	}
	lined := slices.ContainsFunc(lines, func(line *redis.BoolCmd) bool { return line.Val() })
	return held, lined, nil
}

// ParseHolder reads the record "task|quantity|at|idempotency key".
func ParseHolder(user uuid.UUID, text string) (Holder, error) {
	parts := strings.SplitN(text, "|", 4)
	if len(parts) != 4 {
		return Holder{}, fmt.Errorf("holder record has %d parts", len(parts))
	}
	task, err := uuid.Parse(parts[0])
	if err != nil {
		return Holder{}, fmt.Errorf("holder record: %w", err)
	}
	quantity, err := strconv.Atoi(parts[1])
	if err != nil {
		return Holder{}, fmt.Errorf("holder record: %w", err)
	}
	at, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Holder{}, fmt.Errorf("holder record: %w", err)
	}
	return Holder{User: user, Task: task, Quantity: quantity, At: time.UnixMilli(at).UTC(), IdempotencyKey: parts[3]}, nil
}
