package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"entgo.io/ent/dialect"

	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/tracing"
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
	// maxWaiting bounds the waiting requests. It is far above the number of messages
	// that the subscribers deliver concurrently.
	maxWaiting = 16_384
	// BatchTimeout bounds one batch, including its retries.
	BatchTimeout = 5 * time.Second
)

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
	maxBatch  int // requests of one transaction
	batches   *batch.Batcher[call, map[id.Task]Result]
}

// call is the requests of one caller, which are written in the same batch.
type call struct {
	requests []Requested
	traced   tracing.Orders // of the requests
	giveUp   string         // reason for which their tasks fail; "" = they become orders
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
		db: cfg.DB, publisher: cfg.Publisher, clock: cfg.Clock, rows: arrays{}, maxBatch: maxBatch,
		metrics: cfg.Metrics, tracer: cfg.Tracer, outbox: cfg.Outbox, notices: cfg.Notices, terms: newTermsCache(cfg.DB),
	}
	if w.clock == nil {
		w.clock = clock.System{}
	}
	if cfg.DB.Dialect == dialect.SQLite {
		w.rows, w.maxBatch = portable{}, maxBatchSQLite
	}
	queue := batch.Config[call, map[id.Task]Result]{
		Process: w.process, Size: func(c call) int { return len(c.requests) },
		MaxBatch: w.maxBatch, MaxInFlight: inFlight, MaxWaiting: maxWaiting, Timeout: cmp.Or(cfg.Timeout, BatchTimeout),
	}
	if cfg.DB.Dialect == dialect.SQLite {
		queue.MaxInFlight = 1
	}
	w.batches = batch.New(queue)
	return w
}

// Write turns requests into orders, or ends their tasks as failed, and returns after the
// commit. The results are in the order of the requests; one that cannot be written does
// not affect the others. Writing a request again, concurrently or later, returns the
// first end. An error means that the outcome is unknown; writing the same request again
// resolves it. batch.ErrFull and batch.ErrClosed mean that nothing was done.
func (w *Writer) Write(ctx context.Context, requests ...Requested) []Result {
	return w.do(ctx, call{requests: requests, traced: tracing.OrdersFrom(ctx)})
}

func (w *Writer) do(ctx context.Context, c call) []Result {
	ends, err := w.batches.Do(ctx, c)
	results := make([]Result, len(c.requests))
	for i, r := range c.requests {
		results[i] = ends[r.Task]
		if err != nil {
			results[i].Err = fmt.Errorf("end task %s: %w", r.Task, err)
		}
	}
	return results
}

// Close refuses new requests and waits until the earlier ones have ended, or ctx is done.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.batches.Close(ctx); err != nil {
		return fmt.Errorf("close order writer: %w", err)
	}
	return nil
}

// process writes one batch and returns the outcomes to its callers. It does so after
// updating Redis and publishing, so that a crash in between leads to a redelivery,
// which repeats both.
func (w *Writer) process(ctx context.Context, calls []call) []batch.Result[map[id.Task]Result] {
	var requests []Requested
	ended, giveUp := map[id.Task]Result{}, map[id.Task]string{}
	for _, c := range calls {
		for _, r := range c.requests {
			if _, twice := ended[r.Task]; !twice {
				ended[r.Task] = Result{Err: fmt.Errorf("order %s was not decided", r.Task)}
				requests = append(requests, r)
				if c.giveUp != "" {
					giveUp[r.Task] = c.giveUp
				}
			}
		}
	}
	ctx, span := w.traceBatch(ctx, calls, len(requests))
	ends, faults := w.settle(ctx, requests, giveUp)
	if len(ends) > 0 {
		w.publish(ctx, ends)
	} else {
		w.blameServer(requests, faults)
	}
	for task, end := range ends {
		ended[task] = Result{Outcome: end}
	}
	for task, err := range faults {
		ended[task] = Result{Err: err}
	}
	span.End(anyOf(faults))
	results := make([]batch.Result[map[id.Task]Result], len(calls))
	for i := range results {
		results[i].Value = ended // read only from here on
	}
	return results
}

// settle ends requests in one transaction. If the requests themselves cause a failure,
// and not the condition of the database, it tries each half, so that one request that
// cannot be written does not block the others.
func (w *Writer) settle(ctx context.Context, requests []Requested, giveUp map[id.Task]string) (map[id.Task]Outcome, map[id.Task]error) {
	began := time.Now()
	b, err := w.persist(ctx, requests, giveUp)
	w.metrics.batch(len(requests), time.Since(began), tracing.RefOf(ctx), err)
	if err == nil {
		superseded := make(map[id.Task]error, len(b.superseded))
		for _, task := range b.superseded {
			superseded[task] = ErrSuperseded
		}
		return b.ends, superseded
	}
	if half := len(requests) / 2; half > 0 && !IsTransient(err) {
		ends, faults := w.settle(ctx, requests[:half], giveUp)
		more, moreFaults := w.settle(ctx, requests[half:], giveUp)
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
