package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// loadTimeout is the timeout of one load; a failed load is retried in the next round.
const loadTimeout = 3 * time.Second

// State is the state of a key at one revision.
type State[T any] struct {
	Value    T
	Revision int64 // grows with every change, from 1
	Terminal bool  // no later state follows
	Snapshot bool  // first state of a follower; set by Follow
}

// Follow returns the states of a key: first a snapshot, then only higher revisions.
// Intermediate states may be left out; the last one is always sent: a change that the
// hub loses is found by loading again, at least every five seconds. The channel is
// closed after a terminal state and when ctx ends.
//
// Follow subscribes to the hub before it loads for the first time, so that no change is
// missed in between. The error is that of load, or ErrFull; no channel is returned
// then. Later loads that fail are retried. A receiver that stops must end ctx.
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

// follower is the goroutine of Follow.
type follower[T any] struct {
	hub  *Hub
	sub  *Subscription
	load func(ctx context.Context) (State[T], error)
	out  chan State[T]

	next   State[T] // the latest state
	unsent bool     // next was not received yet

	loaded  chan loaded[T] // the result of the running load
	loading bool           // at most one load runs
	again   bool           // something changed after the load began
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

// pause returns the time until the next round: up to 20% less than Reread, at random,
// so that followers that started together do not load together.
func (f *follower[T]) pause() time.Duration {
	whole := f.hub.opts.Reread
	return whole - time.Duration(rand.Int64N(int64(whole)/5+1)) //nolint:gosec // jitter, not a secret
}

// hear processes the latest event. An event without a usable value starts a load.
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

// accept stores a state that is newer than the latest. A snapshot that was not received
// yet is replaced by the newer state.
func (f *follower[T]) accept(s State[T]) {
	if s.Revision <= f.next.Revision || f.next.Terminal {
		return
	}
	s.Snapshot = f.unsent && f.next.Snapshot
	f.next, f.unsent = s, true
}

// read starts a load, unless the end is known or a load is running. Loads run in their
// own goroutine: a slow database does not delay events.
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

// valueOf returns the value that an event carries, and whether it has the requested
// type.
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
