// Package push passes the events of a subscription from its resolver to the transport, so
// that the transport can send one response to all subscribers who would get the same one.
// It owns the shared stream of a resolver; it knows no connection and no protocol.
package push

import (
	"context"

	"seckill/internal/platform/notifier"
)

// Event identifies an event. Subscribers whose events have the same key and revision see
// the same state.
type Event struct {
	Key      string // empty = the event is of one subscriber alone
	Revision int64
	Snapshot bool   // the first event of a subscription
	Trace    string // traceparent of the change; "" = none
}

// Source is the events of one subscription. A transport calls Next, then either Emit or
// nothing, until it calls Close. Calls are sequential.
type Source interface {
	// Next waits for the next event; false means that no event follows.
	Next() (Event, bool)
	// Emit passes the event of the last Next to gqlgen. The transport must read gqlgen's
	// response before the next call.
	Emit()
	// Close ends the subscription for gqlgen and frees its resources.
	Close()
}

// Slot receives the source of a subscription while its resolver runs.
type Slot struct{ source Source }

type slotKey struct{}

// WithSlot returns a context for a subscription's resolver, and the slot.
func WithSlot(ctx context.Context) (context.Context, *Slot) {
	slot := new(Slot)
	return context.WithValue(ctx, slotKey{}, slot), slot
}

// Source returns the source; nil when the resolver's events only pass through gqlgen.
func (s *Slot) Source() Source { return s.source }

// Events returns gqlgen's channel of the events of states. With a slot in ctx the transport
// receives the states instead, and gqlgen's channel has only those that it emits (see
// transport/results.go): event is not called for the others.
func Events[T, E any](ctx context.Context, states notifier.Source[T], event func(value T, snapshot bool) E) <-chan E {
	s := &source[T, E]{states: states, event: event, events: make(chan E, 1)}
	if slot, ok := ctx.Value(slotKey{}).(*Slot); ok {
		slot.source = s
		return s.events
	}
	unbuffered := make(chan E)
	go func() {
		defer close(unbuffered)
		defer states.Close()
		for state, ok := states.Next(); ok; state, ok = states.Next() {
			select {
			case unbuffered <- event(state.Value, state.Snapshot):
			case <-ctx.Done():
				return
			}
		}
	}()
	return unbuffered
}

type source[T, E any] struct {
	states notifier.Source[T]
	event  func(value T, snapshot bool) E
	last   notifier.State[T]
	events chan E // holds at most the event of the last Emit
	closed bool
}

func (s *source[T, E]) Next() (Event, bool) {
	state, ok := s.states.Next()
	s.last = state
	return Event{Key: state.Key, Revision: state.Revision, Snapshot: state.Snapshot, Trace: state.Trace}, ok
}

func (s *source[T, E]) Emit() { s.events <- s.event(s.last.Value, s.last.Snapshot) }

func (s *source[T, E]) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.states.Close()
	close(s.events)
}
