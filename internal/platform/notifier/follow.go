package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"seckill/internal/platform/fault"
)

// loadTimeout is the timeout of one load; a failed load is retried in the next round.
const loadTimeout = 3 * time.Second

// State is the state of a key at one revision.
type State[T any] struct {
	Value    T
	Key      string // of the hub; empty when the state is not that of one key
	Revision int64  // grows with every change, from 1
	Terminal bool   // no later state follows
	Snapshot bool   // first state of a follower; set by Follow
	Trace    string // of the event that carried the state
}

// Source is a sequence of states. A receiver that stops must call Close, or end the
// context of the source.
type Source[T any] interface {
	// Next waits for the next state; false means that no state follows.
	Next() (State[T], bool)
	Close()
}

// FromChannel returns the states of a channel, until it is closed or ctx ends. The sender
// stops when ctx ends, not on Close.
func FromChannel[T any](ctx context.Context, states <-chan State[T]) Source[T] {
	return &received[T]{states, ctx.Done()}
}

type received[T any] struct {
	states <-chan State[T]
	done   <-chan struct{}
}

func (r *received[T]) Next() (State[T], bool) {
	select {
	case state, ok := <-r.states:
		return state, ok
	case <-r.done:
		return State[T]{}, false
	}
}

func (r *received[T]) Close() {}

// Follow returns the states of a key: first a snapshot, then only higher revisions.
// Intermediate states may be left out; the last one is always sent: a change that the
// hub loses is found by loading again, at least every five seconds. The states end after
// a terminal one and when ctx ends.
//
// Follow subscribes to the hub before it loads for the first time, so that no change is
// missed in between. The error is that of load, or ErrFull. Later loads that fail are
// retried.
func Follow[T any](ctx context.Context, hub *Hub, key string,
	load func(ctx context.Context) (State[T], error)) (*Follower[T], error) {
	sub, err := hub.Subscribe(key)
	if err != nil {
		return nil, err
	}
	first, err := load(ctx)
	if err != nil {
		sub.Close()
		return nil, err
	}
	first.Key, first.Snapshot = key, true
	f := &Follower[T]{
		hub: hub, sub: sub, load: load,
		loaded: make(chan loaded[T], 1),
		next:   first, unsent: true,
	}
	f.ctx, f.cancel = context.WithCancel(ctx) //nolint:gosec // Close calls it
	f.round = time.NewTimer(f.pause())
	context.AfterFunc(f.ctx, f.release)
	return f, nil
}

// Follower is the result of Follow. It needs no goroutine of its own: the receiver waits
// in Next. Only one goroutine may receive.
type Follower[T any] struct {
	hub    *Hub
	sub    *Subscription
	load   func(ctx context.Context) (State[T], error)
	ctx    context.Context // of the follower; ended by Close
	cancel context.CancelFunc
	round  *time.Timer // the next load

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

// Next implements Source.
func (f *Follower[T]) Next() (State[T], bool) {
	for f.ctx.Err() == nil {
		if f.unsent {
			select {
			case <-f.sub.Ready(): // a later state may be there
				f.handleEvent()
			default:
			}
			f.unsent = false
			return f.next, true
		}
		if f.next.Terminal {
			f.Close()
			return State[T]{}, false
		}
		f.wait(nil)
	}
	return State[T]{}, false
}

// States returns a channel of the states, for receivers that wait for other things too.
// Until a state is received, a later one replaces it. It takes the place of Next.
func (f *Follower[T]) States() <-chan State[T] {
	states := make(chan State[T])
	go func() {
		defer close(states)
		defer f.Close()
		for f.ctx.Err() == nil && (f.unsent || !f.next.Terminal) {
			if f.unsent {
				f.wait(states)
			} else {
				f.wait(nil)
			}
		}
	}()
	return states
}

// Close ends the states. It may be called more than once.
func (f *Follower[T]) Close() {
	f.cancel()
	f.release()
}

func (f *Follower[T]) release() {
	f.round.Stop()
	f.sub.Close()
}

// Either waits until one of its followers has a state that its Next will return at once,
// and returns the number of the first such one: 0, 1 or 2. ok is false when a has ended. c
// may be nil.
func Either[A, B, C any](a *Follower[A], b *Follower[B], c *Follower[C]) (which int, ok bool) {
	var ready <-chan struct{}
	var round <-chan time.Time
	var read <-chan loaded[C]
	if c != nil {
		ready, round, read = c.sub.Ready(), c.round.C, c.loaded
	}
	for a.ctx.Err() == nil && (a.unsent || !a.next.Terminal) {
		switch {
		case a.unsent:
			return 0, true
		case b.unsent:
			return 1, true
		case c != nil && c.unsent:
			return 2, true
		}
		select {
		case <-a.ctx.Done():
		case <-a.sub.Ready():
			a.handleEvent()
		case <-a.round.C:
			a.reread()
		case result := <-a.loaded:
			a.finish(result)
		case <-b.sub.Ready():
			b.handleEvent()
		case <-b.round.C:
			b.reread()
		case result := <-b.loaded:
			b.finish(result)
		case <-ready:
			c.handleEvent()
		case <-round:
			c.reread()
		case result := <-read:
			c.finish(result)
		}
	}
	return 0, false
}

// wait processes one change, or sends the latest state to out.
func (f *Follower[T]) wait(out chan<- State[T]) {
	select {
	case out <- f.next:
		f.unsent = false
	case <-f.ctx.Done():
	case <-f.sub.Ready():
		f.handleEvent()
	case <-f.round.C:
		f.reread()
	case result := <-f.loaded:
		f.finish(result)
	}
}

// reread starts the load of a round.
func (f *Follower[T]) reread() {
	f.read()
	f.round.Reset(f.pause())
}

// pause returns the time until the next round: up to 20% less than Reread, at random,
// so that followers that started together do not load together.
func (f *Follower[T]) pause() time.Duration {
	whole := f.hub.opts.Reread
	return whole - time.Duration(rand.Int64N(int64(whole)/5+1)) //nolint:gosec // jitter, not a secret
}

// handleEvent processes the latest event. An event without a usable value starts a load.
func (f *Follower[T]) handleEvent() {
	e, filled := f.sub.Take()
	if !filled || e.Revision <= f.next.Revision {
		return
	}
	value, ok := valueOf[T](e.Value)
	if !ok {
		f.read()
		return
	}
	f.accept(State[T]{Value: value, Revision: e.Revision, Terminal: e.Terminal, Trace: e.Trace})
}

// accept stores a state that is newer than the latest. A snapshot that was not received
// yet is replaced by the newer state.
func (f *Follower[T]) accept(s State[T]) {
	if s.Revision <= f.next.Revision || f.next.Terminal {
		return
	}
	s.Key, s.Snapshot = f.sub.key, f.unsent && f.next.Snapshot
	f.next, f.unsent = s, true
}

// read starts a load, unless the end is known or a load is running. Loads run in their
// own goroutine: a slow database does not delay events.
func (f *Follower[T]) read() {
	if f.next.Terminal {
		return
	}
	if f.loading {
		f.again = true
		return
	}
	f.loading = true
	go func() {
		ctx, cancel := context.WithTimeout(f.ctx, loadTimeout)
		defer cancel()
		var result loaded[T]
		defer func() {
			if p := fault.Caught(recover(), fault.InFollower); p != nil {
				result.err = fmt.Errorf("load %s: panic with a %T", f.sub.key, p)
			}
			f.loaded <- result
		}()
		result.state, result.err = f.load(ctx)
	}()
}

func (f *Follower[T]) finish(result loaded[T]) {
	f.loading = false
	if result.err == nil {
		f.accept(result.state)
	} else if f.ctx.Err() == nil && f.hub.opts.Log != nil {
		f.hub.opts.Log.WarnContext(f.ctx, "a followed state cannot be read", slog.String("key", f.sub.key),
			slog.Any("error", result.err))
	}
	if f.again {
		f.again = false
		f.read()
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
