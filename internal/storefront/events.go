package storefront

import (
	"context"

	"seckill/internal/notifier"
)

// Events turns followed states into events, the first of which is the snapshot.
// The channel is closed after the last state, or when ctx ends.
func Events[T, E any](ctx context.Context, states <-chan notifier.State[T], event func(value T, snapshot bool) E) <-chan E {
	out := make(chan E)
	go func() {
		defer close(out)
		for s := range states {
			select {
			case out <- event(s.Value, s.Snapshot):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
