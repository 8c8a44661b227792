// Package gather answers many callers at once (group commit): questions that come in
// while others are under way go together into the next trip. There is no timer; one
// that comes alone goes alone.
//
// It owns the queue. What a trip does is its user's: one query, one transaction or
// one pipeline for all of them. What every follower of a sale asks at the same moment
// passes here, so that a crowd costs a few trips and not one each.
package gather

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull says that too many wait; nothing was done.
var ErrFull = errors.New("too many ask at once")

// Result is the answer to one question, or why there is none.
type Result[A any] struct {
	Value A
	Err   error
}

// Config is how a Desk works.
type Config[Q, A any] struct {
	// Do answers questions, in their order: as many results as questions. Its context
	// ends after Timeout; it does not end with any caller's.
	Do       func(ctx context.Context, questions []Q) []Result[A]
	Most     int           // questions of one trip
	InFlight int           // trips under way at once
	Waiting  int           // questions that wait; past it Ask returns ErrFull
	Timeout  time.Duration // of one trip
}

// Desk takes questions. It is safe for concurrent use, and needs no goroutine of its
// own while nobody asks.
type Desk[Q, A any] struct {
	cfg Config[Q, A]

	mu      sync.Mutex
	waiting []ask[Q, A] // guarded by mu
	running int         // guarded by mu; trips under way
}

type ask[Q, A any] struct {
	question Q
	done     chan Result[A] // buffered: an answer never waits for a caller who left
}

// New returns a desk.
func New[Q, A any](cfg Config[Q, A]) *Desk[Q, A] { return &Desk[Q, A]{cfg: cfg} }

// Ask returns the answer to a question. The error is the trip's, ErrFull, or that of
// ctx: then the question may still be answered, and what that does is done.
func (d *Desk[Q, A]) Ask(ctx context.Context, question Q) (answer A, err error) {
	a := ask[Q, A]{question, make(chan Result[A], 1)}
	if !d.enqueue(a) {
		return answer, ErrFull
	}
	select {
	case r := <-a.done:
		return r.Value, r.Err
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

func (d *Desk[Q, A]) enqueue(a ask[Q, A]) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) >= d.cfg.Waiting {
		return false
	}
	d.waiting = append(d.waiting, a)
	if d.running < d.cfg.InFlight {
		d.running++
		go d.work()
	}
	return true
}

// work makes trips until nobody waits.
func (d *Desk[Q, A]) work() {
	for {
		asks := d.next()
		if len(asks) == 0 {
			return
		}
		questions := make([]Q, len(asks))
		for i, a := range asks {
			questions[i] = a.question
		}
		for i, r := range d.do(questions) {
			asks[i].done <- r
		}
	}
}

// next returns the questions of the next trip, none after having signed off.
func (d *Desk[Q, A]) next() []ask[Q, A] {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(d.waiting), d.cfg.Most)
	if n == 0 {
		d.waiting = nil
		d.running--
		return nil
	}
	asks := d.waiting[:n:n]
	d.waiting = d.waiting[n:]
	return asks
}

// do makes one trip. One that panics, or answers another number of questions, fails.
func (d *Desk[Q, A]) do(questions []Q) (results []Result[A]) {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			results = All[A](len(questions), fmt.Errorf("gather: panic with a %T", v))
		}
	}()
	if results = d.cfg.Do(ctx, questions); len(results) != len(questions) {
		return All[A](len(questions), fmt.Errorf("gather: %d results for %d questions", len(results), len(questions)))
	}
	return results
}

// All returns n results that are the same error.
func All[A any](n int, err error) []Result[A] {
	results := make([]Result[A], n)
	for i := range results {
		results[i].Err = err
	}
	return results
}
