package app

import (
	"context"
	"errors"
	"time"

	"seckill/internal/periodic"
	"seckill/internal/stream"
	"seckill/internal/telemetry"
)

// measureEvery is how often the depth of the streams is read.
const measureEvery = 5 * time.Second

// showGauges shows what is read when figures are asked for.
func (a *App) showGauges() {
	a.registry.GaugeFunc(telemetry.Desc{Package: "notifier", Name: "followers_count", Help: "Who waits for events of this process."},
		func() float64 { return float64(a.hub.Followers()) })
	if a.edge != nil && a.edge.sockets != nil {
		a.registry.GaugeFunc(telemetry.Desc{Package: "server", Name: "sockets_count", Help: "Open WebSockets and SSE streams."},
			func() float64 { return float64(a.edge.sockets.Count()) })
	}
	if a.worker != nil {
		a.registry.GaugeFunc(telemetry.Desc{Package: "stream", Name: "silent_seconds", Help: "Time since the worker's last good read."},
			func() float64 {
				last := a.worker.router.LastRead()
				if last.IsZero() {
					return 0 // has not begun
				}
				return a.clock.Now().Sub(last).Seconds()
			})
	}
}

// measureStreams reads how far the group is with each stream.
func (a *App) measureStreams(topics []string) periodic.Step {
	inspector := stream.Inspector{Client: a.svc.redis.Cmd, Dead: a.deadLetters, Clock: a.clock}
	return func(ctx context.Context) (map[string]int, error) {
		var errs []error
		for _, topic := range topics {
			s, err := inspector.Stats(ctx, topic, ordersGroup)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			a.streamMetrics.Unread.With(topic).Set(float64(s.Unread))
			a.streamMetrics.Pending.With(topic).Set(float64(s.Pending))
			a.streamMetrics.Oldest.With(topic).Set(s.OldestAge.Seconds())
		}
		return nil, errors.Join(errs...)
	}
}
