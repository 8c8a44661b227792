// Package batch implements group commit: requests that arrive while a batch is in
// flight are processed together in the next one. A request that finds none in flight is
// sent at once, or Config.Gather after the start of the last batch.
//
// The package owns the queue. Config.Process decides what a batch does: one query, one
// transaction or one pipeline for all its requests. It does not retry, and keeps nothing.
package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
)

// ErrFull is returned when too many requests wait, ErrClosed after Close; nothing was
// done.
var (
	ErrFull   = errors.New("too many requests wait for a batch")
	ErrClosed = errors.New("the batcher is closed")
)

// Result is the response to one request, or the error that prevented it.
type Result[A any] struct {
	Value A
	Err   error
}

// Config configures a Batcher. All fields but Size are required.
type Config[Q, A any] struct {
	// Process handles a batch and returns one result per request, in order. Its context
	// ends after Timeout, not with the context of a caller.
	Process     func(ctx context.Context, requests []Q) []Result[A]
	MaxBatch    int           // total size of one batch; a larger request is a batch by itself
	MaxInFlight int           // most concurrent batches
	MaxWaiting  int           // total size of the queued requests from which Do returns ErrFull
	Timeout     time.Duration // of one batch
	Size        func(Q) int   // of a request; nil = 1 each
	// Gather is the least time between the starts of two batches, so that small ones do not
	// follow each other. A batch that is full already, or the first after a pause, starts at
	// once. 0 = none.
	Gather time.Duration
}

// Batcher collects requests into batches. It is safe for concurrent use and keeps no
// goroutine while it is idle.
type Batcher[Q, A any] struct {
	cfg Config[Q, A]

	mu      sync.Mutex
	waiting []call[Q, A]  // guarded by mu
	size    int           // guarded by mu; of all in waiting
	running int           // guarded by mu; batches in flight
	began   time.Time     // guarded by mu; start of the last batch
	closed  bool          // guarded by mu
	idle    chan struct{} // closed when nothing runs after Close
}

type call[Q, A any] struct {
	ctx     context.Context // whether the caller still waits
	request Q
	size    int
	done    chan Result[A] // buffered, so that a batch never blocks on a caller that has returned
}

// New returns a Batcher.
func New[Q, A any](cfg Config[Q, A]) *Batcher[Q, A] {
	return &Batcher[Q, A]{cfg: cfg, idle: make(chan struct{})}
}

// Do processes one request in a batch. The error is that of Process, ErrFull, ErrClosed,
// or that of ctx: in the last case the request may have been or may still be processed.
// Requests whose ctx ended before their batch began are not processed.
func (b *Batcher[Q, A]) Do(ctx context.Context, request Q) (response A, err error) {
	c := call[Q, A]{ctx, request, 1, make(chan Result[A], 1)}
	if b.cfg.Size != nil {
		c.size = b.cfg.Size(request)
	}
	if err := b.enqueue(c); err != nil {
		return response, err
	}
	select {
	case r := <-c.done:
		return r.Value, r.Err
	case <-ctx.Done():
		return response, ctx.Err()
	}
}

// Close makes Do return ErrClosed, and waits until all requests before it are processed
// or ctx ends.
func (b *Batcher[Q, A]) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		if b.running == 0 {
			close(b.idle)
		}
	}
	b.mu.Unlock()
	select {
	case <-b.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Batcher[Q, A]) enqueue(c call[Q, A]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.size >= b.cfg.MaxWaiting:
		return ErrFull
	}
	b.waiting = append(b.waiting, c)
	b.size += c.size
	if b.running < b.cfg.MaxInFlight {
		b.running++
		go b.work()
	}
	return nil
}

// work processes batches until the queue is empty.
func (b *Batcher[Q, A]) work() {
	for {
		b.gather()
		calls := b.next()
		if len(calls) == 0 {
			return
		}
		requests := collect.Map(calls, func(c call[Q, A]) Q { return c.request })
		for i, r := range b.process(requests) {
			calls[i].done <- r
		}
	}
}

// gather waits until Gather has passed since the last batch began.
func (b *Batcher[Q, A]) gather() {
	if b.cfg.Gather == 0 {
		return
	}
	b.mu.Lock()
	wait := time.Until(b.began.Add(b.cfg.Gather))
	if b.size == 0 || b.size >= b.cfg.MaxBatch || b.closed {
		wait = 0
	}
	b.mu.Unlock()
	if wait > 0 {
		<-time.After(wait) // some milliseconds, also when the batcher is closed
	}
}

// next removes the calls of the next batch from the queue. When it returns none, the
// worker is no longer counted in running.
func (b *Batcher[Q, A]) next() []call[Q, A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := make([]call[Q, A], 0, min(len(b.waiting), b.cfg.MaxBatch))
	n, size := 0, 0
	for ; n < len(b.waiting); n++ {
		c := b.waiting[n]
		if size > 0 && size+c.size > b.cfg.MaxBatch {
			break
		}
		b.size -= c.size
		if c.ctx.Err() == nil {
			calls, size = append(calls, c), size+c.size
		}
	}
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	if len(calls) > 0 {
		b.began = time.Now()
	} else {
		b.running--
		if b.closed && b.running == 0 {
			close(b.idle)
		}
	}
	return calls
}

// process runs one batch. If Process panics, or returns a different number of results
// than requests, all requests fail.
func (b *Batcher[Q, A]) process(requests []Q) (results []Result[A]) {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.Timeout)
	defer cancel()
	defer func() {
		if v := fault.Caught(recover(), fault.InBatch); v != nil {
			results = Fail[A](len(requests), fmt.Errorf("batch: panic with a %T", v))
		}
	}()
	if results = b.cfg.Process(ctx, requests); len(results) != len(requests) {
		return Fail[A](len(requests), fmt.Errorf("batch: %d results for %d requests", len(results), len(requests)))
	}
	return results
}

// Fail returns n results with the same error.
func Fail[A any](n int, err error) []Result[A] {
	results := make([]Result[A], n)
	for i := range results {
		results[i].Err = err
	}
	return results
}
