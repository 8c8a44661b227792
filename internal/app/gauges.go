package app

import (
	"context"
	"time"

	"seckill/internal/periodic"
	"seckill/internal/stream"
)

// measureEvery is how often the depth of the streams is read.
const measureEvery = 5 * time.Second

// measureStreams reads how far the group is with each stream.
func (a *App) measureStreams(topics []string) periodic.Step {
	inspector := stream.Inspector{Client: a.svc.redis.Cmd, Dead: a.deadLetters, Clock: a.clock}
	return func(ctx context.Context) (map[string]int, error) {
		return nil, inspector.Measure(ctx, a.streamMetrics, ordersGroup, topics)
	}
}
