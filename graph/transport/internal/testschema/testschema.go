// Package testschema is a small schema with every kind of answer that a
// transport has to carry: quick, failing, panicking, streaming, silent and
// endless. Tests alone use it.
package testschema

//go:generate go tool gqlgen generate

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"seckill/internal/platform/fault"
)

// Resolver answers the schema and counts what runs.
type Resolver struct {
	// Viewer returns the caller, from the context.
	Viewer func(ctx context.Context) string
	// Feed replaces the resolver of feed; nil = what Publish sends.
	Feed func(ctx context.Context, topic string) (<-chan string, error)
	// Sets counts executed mutations.
	Sets atomic.Int64
	// Streams counts subscriptions that run now.
	Streams atomic.Int64
	// Begun counts subscriptions that ran at any time.
	Begun atomic.Int64

	mu    sync.Mutex
	feeds map[string]map[chan string]struct{} // guarded by mu
}

// Publish sends a text to all clients subscribed to feed(topic) and returns how
// many there are.
func (r *Resolver) Publish(topic, text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ch := range r.feeds[topic] {
		ch <- text
	}
	return len(r.feeds[topic])
}

// Listeners returns how many are subscribed to feed(topic).
func (r *Resolver) Listeners(topic string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.feeds[topic])
}

// Mutation returns the resolvers of mutations.
func (r *Resolver) Mutation() MutationResolver { return mutations{r} }

// Query returns the resolvers of queries.
func (r *Resolver) Query() QueryResolver { return queries{r} }

// Subscription returns the resolvers of subscriptions.
func (r *Resolver) Subscription() SubscriptionResolver { return subscriptions{r} }

type (
	mutations     struct{ r *Resolver }
	queries       struct{ r *Resolver }
	subscriptions struct{ r *Resolver }
)

func (m mutations) Set(context.Context, SetInput) (*SetPayload, error) {
	m.r.Sets.Add(1)
	return &SetPayload{Ok: true}, nil
}

func (queries) Hello(_ context.Context, name *string) (string, error) {
	if name == nil {
		return "hello", nil
	}
	return "hello " + *name, nil
}

func (queries) Count(_ context.Context, n int) (int, error) { return n, nil }

func (queries) Things(_ context.Context, first, _ *int) (*ThingConnection, error) {
	n := 20
	if first != nil {
		n = *first
	}
	c := &ThingConnection{Total: &n}
	for range n {
		c.Edges = append(c.Edges, &ThingEdge{Cursor: "c", Node: &Thing{ID: "1", Name: "one"}})
	}
	return c, nil
}

func (queries) Thing(_ context.Context, by ThingLookup) (*Thing, error) {
	if by.ID != nil {
		return &Thing{ID: *by.ID, Name: "by id"}, nil
	}
	return &Thing{ID: "1", Name: *by.Name}, nil
}

func (queries) Fail(_ context.Context, code string) (*string, error) {
	return nil, fault.New(fault.Code(code), "failed on purpose")
}

func (queries) Panic(context.Context) (*string, error) { panic("on purpose") }

func (queries) Slow(ctx context.Context) (*string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (q queries) Viewer(ctx context.Context) (*string, error) {
	if q.r.Viewer == nil {
		return nil, nil
	}
	name := q.r.Viewer(ctx)
	if name == "" {
		return nil, nil
	}
	return &name, nil
}

// stream runs produce in a goroutine of its own until it returns.
func stream[T any](ctx context.Context, r *Resolver, produce func(send func(T) bool)) <-chan T {
	ch := make(chan T)
	r.Begun.Add(1)
	r.Streams.Add(1)
	go func() {
		defer r.Streams.Add(-1)
		defer close(ch)
		produce(func(v T) bool {
			select {
			case ch <- v:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return ch
}

func (s subscriptions) Ticks(ctx context.Context, n int) (<-chan int, error) {
	return stream(ctx, s.r, func(send func(int) bool) {
		for i := 1; i <= n && send(i); i++ {
		}
	}), nil
}

func (s subscriptions) Idle(ctx context.Context) (<-chan int, error) {
	return stream(ctx, s.r, func(send func(int) bool) {
		send(1)
		<-ctx.Done()
	}), nil
}

func (subscriptions) Refused(context.Context) (<-chan int, error) {
	return nil, fault.New(fault.Unauthenticated, "Sign in.")
}

func (s subscriptions) Flood(ctx context.Context, bytes int) (<-chan string, error) {
	text := strings.Repeat("x", bytes)
	return stream(ctx, s.r, func(send func(string) bool) {
		for send(text) {
		}
	}), nil
}

func (s subscriptions) Feed(ctx context.Context, topic string) (<-chan string, error) {
	if s.r.Feed != nil {
		return s.r.Feed(ctx, topic)
	}
	in := make(chan string, 16)
	s.r.mu.Lock()
	if s.r.feeds == nil {
		s.r.feeds = map[string]map[chan string]struct{}{}
	}
	if s.r.feeds[topic] == nil {
		s.r.feeds[topic] = map[chan string]struct{}{}
	}
	s.r.feeds[topic][in] = struct{}{}
	s.r.mu.Unlock()
	return stream(ctx, s.r, func(send func(string) bool) {
		defer func() {
			s.r.mu.Lock()
			delete(s.r.feeds[topic], in)
			s.r.mu.Unlock()
		}()
		for {
			select {
			case v := <-in:
				if !send(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}), nil
}
