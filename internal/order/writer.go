package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"entgo.io/ent/dialect"

	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/notice"
	"seckill/internal/postgres"
	"seckill/internal/tracing"
	"seckill/internal/webhook"
)

const (
	// maxBatch bounds the requests of one transaction. Larger batches gain nothing
	// (performance notes) and hold the lock on the item's row for longer.
	maxBatch = 500
	// maxBatchSQLite is the bound for SQLite, which is slower with larger batches.
	maxBatchSQLite = 100
	// inFlight is how many batches are written concurrently: one commits while the next
	// is inserted. SQLite has a single writer anyway.
	inFlight = 2
	// maxPending bounds the waiting requests. It is far above the number of messages
	// that the subscribers deliver concurrently.
	maxPending = 16_384
	// BatchTimeout bounds one batch, including its retries.
	BatchTimeout = 5 * time.Second
)

// ErrBusy reports that too many requests wait for the database; nothing was done.
var ErrBusy = errors.New("order writer: too many requests wait")

// ErrClosed reports that the writer is closed; nothing was done.
var ErrClosed = errors.New("order writer: closed")

// ErrSuperseded reports a request whose gate was rebuilt since: unless the build counted
// it, its units may be sold again. Nothing was done. The caller reserves the units at the
// present gate, unless they are reserved there, then writes the request again with its
// epoch.
var ErrSuperseded = errors.New("the gate of this order was rebuilt")

// WriterConfig holds the dependencies of a Writer.
type WriterConfig struct {
	DB        *postgres.DB
	Publisher *Publisher      // nil = publish nothing
	Outbox    *webhook.Outbox // nil = write no events
	Notices   *notice.Outbox  // nil = buyers get no notices
	Clock     clock.Clock     // nil = clock.System
	Tracer    *tracing.Tracer // nil = trace nothing
	Metrics   *Metrics        // nil = count nothing
	Timeout   time.Duration   // of one batch, including its retries; 0 = BatchTimeout
}

// Writer turns requests into orders with a group commit to Postgres. Requests that
// arrive while a transaction is running are written together in the next one, so that
// the stock row is updated once per batch. It is safe for concurrent use and has no
// goroutine while no request waits.
type Writer struct {
	db        *postgres.DB
	publisher *Publisher
	clock     clock.Clock
	metrics   *Metrics
	tracer    *tracing.Tracer
	outbox    *webhook.Outbox
	notices   *notice.Outbox
	terms     *termsCache
	rows      inserter
	maxBatch  int
	inFlight  int
	timeout   time.Duration // of one batch

	mu      sync.Mutex
	pending []*call       // guarded by mu
	waiting int           // guarded by mu; requests of pending
	running int           // guarded by mu; running batches
	closed  bool          // guarded by mu
	idle    chan struct{} // guarded by mu; closed when running reaches 0 after Close
}

// call is the requests of one caller, which are written in the same batch.
type call struct {
	requests []Requested
	traced   tracing.Orders          // of the requests
	done     chan map[id.Task]Result // buffered: sending never blocks when the caller is gone
}

// Result is how a request ended, or the error after which that is unknown.
type Result struct {
	Outcome Outcome
	Err     error
}

// Outcome is the end of a request.
type Outcome struct {
	Task     Task
	Order    *Order // set once SUCCEEDED
	Replayed bool   // the task had already ended, in an earlier delivery
}

// NewWriter returns a writer. Close waits for its running batches.
func NewWriter(cfg WriterConfig) *Writer {
	w := &Writer{
		db: cfg.DB, publisher: cfg.Publisher, clock: cfg.Clock,
		metrics: cfg.Metrics, tracer: cfg.Tracer, outbox: cfg.Outbox, notices: cfg.Notices, terms: newTermsCache(cfg.DB),
		maxBatch: maxBatch, inFlight: inFlight, timeout: cmp.Or(cfg.Timeout, BatchTimeout), idle: make(chan struct{}),
	}
	if w.clock == nil {
		w.clock = clock.System{}
	}
	w.rows = arrays{}
	if cfg.DB.Dialect == dialect.SQLite {
		w.rows, w.maxBatch, w.inFlight = portable{}, maxBatchSQLite, 1
	}
	return w
}

// Write turns a request into an order, or ends its task as failed, and returns after
// the commit. Writing a request again, concurrently or later, returns the first end. An
// error means that the outcome is unknown; writing the same request again resolves it.
func (w *Writer) Write(ctx context.Context, r Requested) (Outcome, error) {
	results := w.WriteAll(ctx, []Requested{r})
	return results[0].Outcome, results[0].Err
}

// WriteAll is Write for the requests of one message. It returns their results in the
// same order; requests that cannot be written do not affect the others.
func (w *Writer) WriteAll(ctx context.Context, requests []Requested) []Result {
	results := make([]Result, len(requests))
	fail := func(err error) []Result {
		for i, r := range requests {
			results[i].Err = fmt.Errorf("write order %s: %w", r.Task, err)
		}
		return results
	}
	c := &call{requests: requests, traced: tracing.OrdersFrom(ctx), done: make(chan map[id.Task]Result, 1)}
	if err := w.enqueue(c); err != nil {
		return fail(err)
	}
	select {
	case ends := <-c.done:
		for i, r := range requests {
			results[i] = ends[r.Task]
		}
		return results
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

// Close refuses new requests and waits until the pending ones have ended, or ctx is
// done.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		if w.running == 0 {
			close(w.idle)
		}
	}
	w.mu.Unlock()
	select {
	case <-w.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close order writer: %w", ctx.Err())
	}
}

func (w *Writer) enqueue(c *call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return ErrClosed
	case w.waiting >= maxPending:
		return ErrBusy
	}
	w.pending = append(w.pending, c)
	w.waiting += len(c.requests)
	if w.running < w.inFlight {
		w.running++
		go w.drain()
	}
	return nil
}

// drain writes batches until nothing waits.
func (w *Writer) drain() {
	for {
		calls := w.take()
		if calls == nil {
			return
		}
		w.process(calls)
	}
}

// take returns the calls of the next batch: at least one, and more while their requests
// fit. With nothing pending, it decrements running and returns nil.
func (w *Writer) take() []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.pending) && (n == 0 || size+len(w.pending[n].requests) <= w.maxBatch) {
		size += len(w.pending[n].requests)
		n++
	}
	if n == 0 {
		w.running--
		if w.closed && w.running == 0 {
			close(w.idle)
		}
		return nil
	}
	calls := make([]*call, n)
	copy(calls, w.pending)
	rest := copy(w.pending, w.pending[n:])
	clear(w.pending[rest:])
	w.pending = w.pending[:rest]
	w.waiting -= size
	return calls
}

// process writes one batch and returns the outcomes to its callers. It does so after
// updating Redis and publishing, so that a crash in between leads to a redelivery,
// which repeats both.
func (w *Writer) process(calls []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	var requests []Requested
	results := map[id.Task]Result{}
	for _, c := range calls {
		for _, r := range c.requests {
			if _, twice := results[r.Task]; !twice {
				results[r.Task] = Result{Err: fmt.Errorf("order %s was not decided", r.Task)}
				requests = append(requests, r)
			}
		}
	}
	ctx, span := w.traceBatch(ctx, calls, len(requests))
	ends, faults := w.settle(ctx, requests)
	if len(ends) > 0 {
		w.publish(ctx, ends)
	} else {
		w.blameServer(requests, faults)
	}
	for task, end := range ends {
		results[task] = Result{Outcome: end}
	}
	for task, err := range faults {
		results[task] = Result{Err: err}
	}
	span.End(anyOf(faults))
	for _, c := range calls {
		c.done <- results // read only from here on
	}
}

// settle ends requests in one transaction. If the requests themselves cause a failure,
// and not the condition of the database, it tries each half, so that one request that
// cannot be written does not block the others.
func (w *Writer) settle(ctx context.Context, requests []Requested) (map[id.Task]Outcome, map[id.Task]error) {
	began := time.Now()
	b, err := w.persist(ctx, requests)
	w.metrics.batch(len(requests), time.Since(began), tracing.RefOf(ctx), err)
	if err == nil {
		superseded := make(map[id.Task]error, len(b.superseded))
		for _, task := range b.superseded {
			superseded[task] = ErrSuperseded
		}
		return b.ends, superseded
	}
	if half := len(requests) / 2; half > 0 && !IsTransient(err) {
		ends, faults := w.settle(ctx, requests[:half])
		more, moreFaults := w.settle(ctx, requests[half:])
		return merge(ends, more), merge(faults, moreFaults)
	}
	faults := make(map[id.Task]error, len(requests))
	for _, r := range requests {
		faults[r.Task] = fmt.Errorf("write batch of %d orders: %w", len(requests), err)
	}
	return nil, faults
}

// IsTransient reports whether an error is independent of the requests, so that the same
// batch may succeed later. That includes statements that Postgres rejects whatever their
// values, and errors that all requests of a batch have in common (errAlike).
func IsTransient(err error) bool {
	return errors.Is(err, postgres.ErrCommitUnknown) || errors.Is(err, errNeedsOneByOne) || errors.Is(err, errAlike) ||
		postgres.Retryable(err) || postgres.IsRefusal(err) || fault.IsTransient(err)
}

func merge[K comparable, V any](a, b map[K]V) map[K]V {
	if a == nil {
		return b
	}
	maps.Copy(a, b)
	return a
}

// publish counts and publishes how the tasks of a batch ended.
func (w *Writer) publish(ctx context.Context, ends map[id.Task]Outcome) {
	tasks := make([]Task, 0, len(ends))
	orders := make([]*Order, 0, len(ends))
	for _, end := range ends {
		tasks = append(tasks, end.Task)
		if end.Order != nil {
			orders = append(orders, end.Order)
		}
		if !end.Replayed {
			w.metrics.ended(end.Task.Status, string(end.Task.Failure))
		}
	}
	w.publisher.publishEnds(ctx, tasks, orders)
}
