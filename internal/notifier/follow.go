package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// loadTimeout bounds one read of a follower; the next try comes with the next
// round.
const loadTimeout = 3 * time.Second

// State is what a key stands for at one revision.
type State[T any] struct {
	Value    T
	Revision int64 // grows with every change, from 1
	Terminal bool  // no state follows
	Snapshot bool  // the first state that a follower gets; set by Follow
}

// Follow returns the states of a key: first a snapshot, then only higher
// revisions. States between may be left out, the last one always comes: what the
// hub loses is found by reading again, at least every five seconds. The channel
// is closed after a terminal state and when ctx ends.
//
// It joins the hub before it loads for the first time, so that no change falls
// between the two. The error is that load's, or ErrFull; there is no channel
// then. Later loads that fail are tried again. Whoever stops receiving ends ctx.
func Follow[T any](ctx context.Context, hub *Hub, key string, load func(ctx context.Context) (State[T], error)) (<-chan State[T], error) {
	sub, err := hub.Subscribe(key)
	if err != nil {
		return nil, err
	}
	first, err := load(ctx)
	if err != nil {
		sub.Close()
		return nil, err
	}
	first.Snapshot = true
	f := &follower[T]{
		hub: hub, sub: sub, load: load,
		out:    make(chan State[T]),
		loaded: make(chan loaded[T], 1),
		next:   first, unsent: true,
	}
	go f.run(ctx)
	return f.out, nil
}

// follower is the goroutine behind Follow.
type follower[T any] struct {
	hub  *Hub
	sub  *Subscription
	load func(ctx context.Context) (State[T], error)
	out  chan State[T]

	next   State[T] // the latest state
	unsent bool     // nobody has received it yet

	loaded  chan loaded[T] // the result of the load under way
	loading bool           // at most one load is under way
	again   bool           // something changed after it began
}

type loaded[T any] struct {
	state State[T]
	err   error
}

func (f *follower[T]) run(ctx context.Context) {
	loads, cancel := context.WithCancel(ctx)
	round := time.NewTimer(f.pause())
	defer func() {
		round.Stop()
		f.sub.Close()
		cancel()
		close(f.out)
		if f.loading {
			<-f.loaded
		}
	}()
	for {
		var out chan<- State[T]
		if f.unsent {
			out = f.out
		}
		select {
		case out <- f.next:
			f.unsent = false
			if f.next.Terminal {
				return
			}
		case <-ctx.Done():
			return
		case <-f.sub.Ready():
			f.hear(loads)
		case <-round.C:
			f.read(loads)
			round.Reset(f.pause())
		case result := <-f.loaded:
			f.finish(loads, result)
		}
	}
}

// pause returns how long to wait for the next round: a little less than the
// bound, by chance, so that followers that came together do not read together.
func (f *follower[T]) pause() time.Duration {
	whole := f.hub.opts.Reread
	return whole - time.Duration(rand.Int64N(int64(whole)/5+1)) //nolint:gosec // jitter, not a secret
}

// hear takes the latest event. One without a usable value makes it read.
func (f *follower[T]) hear(ctx context.Context) {
	e, filled := f.sub.Take()
	if !filled || e.Revision <= f.next.Revision {
		return
	}
	value, ok := valueOf[T](e.Value)
	if !ok {
		f.read(ctx)
		return
	}
	f.accept(State[T]{Value: value, Revision: e.Revision, Terminal: e.Terminal})
}

// accept takes a state that is newer than the latest. A snapshot that nobody has
// received yet is replaced by a newer one.
func (f *follower[T]) accept(s State[T]) {
	if s.Revision <= f.next.Revision || f.next.Terminal {
		return
	}
	s.Snapshot = f.unsent && f.next.Snapshot
	f.next, f.unsent = s, true
}

// read begins to load, unless the end is known or a load is under way. Loads run
// beside the follower: a slow database holds back no event.
func (f *follower[T]) read(ctx context.Context) {
	if f.next.Terminal {
		return
	}
	if f.loading {
		f.again = true
		return
	}
	f.loading = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, loadTimeout)
		defer cancel()
		var result loaded[T]
		defer func() {
			if p := recover(); p != nil {
				result.err = fmt.Errorf("load %s: panic with a %T", f.sub.key, p)
			}
			f.loaded <- result
		}()
		result.state, result.err = f.load(ctx)
	}()
}

func (f *follower[T]) finish(ctx context.Context, result loaded[T]) {
	f.loading = false
	if result.err == nil {
		f.accept(result.state)
	} else if ctx.Err() == nil && f.hub.opts.LoadFailed != nil {
		f.hub.opts.LoadFailed(f.sub.key, result.err)
	}
	if f.again {
		f.again = false
		f.read(ctx)
	}
}

// valueOf returns the value that an event carries, and whether it carries one of
// the type that is asked for.
func valueOf[T any](carried any) (value T, ok bool) {
	switch v := carried.(type) {
	case T:
		return v, true
	case json.RawMessage:
		if len(v) > 0 && json.Unmarshal(v, &value) == nil {
			return value, true
		}
	}
	return *new(T), false
}
