package storefront

import (
	"context"

	"seckill/internal/notifier"
)

// Events converts followed states to events, the first of which is the snapshot. The
// channel is closed after the last state, or when ctx ends.
func Events[T, E any](ctx context.Context, states <-chan notifier.State[T], event func(value T, snapshot bool) E) <-chan E {
	return Map(ctx, states, func(s notifier.State[T]) E { return event(s.Value, s.Snapshot) })
}

// Map converts the values of one channel and sends them to another, until the first is
// closed or ctx ends.
func Map[T, E any](ctx context.Context, in <-chan T, event func(T) E) <-chan E {
	out := make(chan E)
	go func() {
		defer close(out)
		for v := range in {
			select {
			case out <- event(v):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
