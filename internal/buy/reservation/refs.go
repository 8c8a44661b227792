package reservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

// Refs returns the items of gates by their keys. A gate that was never open has no sale,
// and is left out.
func (g *Gate) Refs(ctx context.Context, keys []string) ([]ItemRef, error) {
	var refs []ItemRef
	for _, key := range keys {
		item, ok := g.keys.ItemOf(key)
		if !ok {
			continue
		}
		text, err := g.readClient.HGet(ctx, key, "sale").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read the sale of item %s: %w", item, err)
		}
		if sale, err := id.ParseUUID[id.Sale](text); err == nil {
			refs = append(refs, ItemRef{Sale: sale, Item: item})
		}
	}
	return refs, nil
}

// Suspend stops an open gate until it is rebuilt, or its state is set.
func (g *Gate) Suspend(ctx context.Context, ref ItemRef) error {
	if err := suspendScript.Run(ctx, g.client, []string{g.keys.Item(id.ShardOf(ref.Sale), ref.Item)}).Err(); err != nil {
		return fmt.Errorf("suspend gate of %s: %w", ref.Item, err)
	}
	return nil
}
