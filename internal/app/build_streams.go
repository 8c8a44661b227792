package app

import (
	"context"

	"seckill/internal/id"
	"seckill/internal/periodic"
)

// orderTopics returns the order streams of all shards.
func orderTopics(b base) []string {
	topics := make([]string, id.Shards)
	for shard := range topics {
		topics[shard] = b.keys.Orders(shard)
	}
	return topics
}

// measureStreams returns the loop that measures the order streams. Schedulers run it
// too: without any worker, they show that orders are delayed.
func measureStreams(b base, m messages) periodic.Loop {
	return periodic.Loop{Name: "measure streams", Every: measureEvery, Log: b.log, Step: func(ctx context.Context) (map[string]int, error) {
		return nil, m.inspector.Measure(ctx, b.streams, ordersGroup, orderTopics(b))
	}}
}
