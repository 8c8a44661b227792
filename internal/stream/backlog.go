package stream

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// backlogPage is how many entries one read of Backlog takes.
const backlogPage = 1000

// Backlog calls visit with every message that stands in a stream, oldest first:
// those that no consumer has read, those that are pending, and those that were handled but
// not trimmed yet. Entries that cannot be decoded are passed over; they are set
// aside by whoever handles the stream.
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
