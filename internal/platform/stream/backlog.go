package stream

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// backlogPage is how many entries one read of Backlog takes.
const backlogPage = 1000

// Backlog calls visit with every message in a stream, oldest first: unread, pending,
// and handled but not trimmed yet. It skips entries that cannot be decoded; the router
// of the stream moves them to the dead letters.
func Backlog(ctx context.Context, client redis.UniversalClient, key string, visit func(msg *Message)) error {
	from := "-"
	for {
		entries, err := client.XRangeN(ctx, key, from, "+", backlogPage).Result()
		if err != nil {
			return fmt.Errorf("read backlog of %s: %w", key, err)
		}
		for _, e := range entries {
			if msg, reason := unmarshal(e.Values); reason == "" {
				visit(msg)
			}
		}
		if len(entries) < backlogPage {
			return nil
		}
		from = "(" + entries[len(entries)-1].ID
	}
}
