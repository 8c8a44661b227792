package order

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/identity/person"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
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

// ErrSuperseded reports a request whose gate was rebuilt since: its units may be sold again.
// Nothing was done. The caller reserves the units at the present gate, if they are not
// reserved there, and writes the request again with the epoch of that gate.
var ErrSuperseded = errors.New("the gate of this order was rebuilt")

// WriterConfig holds the dependencies of a Writer.
type WriterConfig struct {
	DB          *postgres.DB
	AfterCommit *AfterCommit    // nil = publish nothing
	Facts       Facts           // nil = pass nothing on
	Persons     *person.Hasher  // compares addresses with those that limits counted; nil = not compared
	Clock       clock.Clock     // nil = clock.System
	Tracer      *tracing.Tracer // nil = trace nothing
	Metrics     *Metrics        // nil = count nothing
	Timeout     time.Duration   // of one batch, including its retries; 0 = BatchTimeout
}

// Writer turns requests into orders with a group commit to Postgres. Requests that
// arrive while a transaction is running are written together in the next one, so that
// the stock row is updated once per batch. It is safe for concurrent use and has no
// goroutine while no request waits.
type Writer struct {
	db          *postgres.DB
	afterCommit *AfterCommit
	clock       clock.Clock
	metrics     *Metrics
	tracer      *tracing.Tracer
	facts       Facts
	persons     *person.Hasher
	terms       *termsCache
	rows        inserter
	maxBatch    int // requests of one transaction
	batches     *batch.Batcher[submission, map[id.Task]Result]
}

// submission is the requests of one caller, which are written in the same batch.
type submission struct {
	requests []Request
	traced   tracing.Orders // of the requests
	giveUp   string         // reason for which their tasks fail; "" = they become orders
}

// Result is how a request ended, or the error after which that is unknown.
type Result struct {
	Task     Task
	Order    *Order // set once SUCCEEDED
	Replayed bool   // the task had already ended, in an earlier delivery
	Err      error
}

// NewWriter returns a writer. Close waits for its running batches.
func NewWriter(cfg WriterConfig) *Writer {
	w := &Writer{
		db: cfg.DB, afterCommit: cfg.AfterCommit, clock: cfg.Clock, rows: arrays{}, maxBatch: maxBatch,
		metrics: cfg.Metrics, tracer: cfg.Tracer, facts: orNone(cfg.Facts), persons: cfg.Persons,
		terms: newTermsCache(cfg.DB),
	}
	if w.clock == nil {
		w.clock = clock.System{}
	}
	if cfg.DB.Dialect == dialect.SQLite {
		w.rows, w.maxBatch = portable{}, maxBatchSQLite
	}
	queue := batch.Config[submission, map[id.Task]Result]{
		Process: w.process, Size: func(c submission) int { return len(c.requests) },
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
// not affect the others. Writing a request again, concurrently or later, returns how
// it ended the first time. An error means that the outcome is unknown; writing the same request again
// resolves it. batch.ErrFull and batch.ErrClosed mean that nothing was done.
func (w *Writer) Write(ctx context.Context, requests ...Request) []Result {
	return w.do(ctx, submission{requests: requests, traced: tracing.OrdersFrom(ctx)})
}

func (w *Writer) do(ctx context.Context, c submission) []Result {
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
func (w *Writer) process(ctx context.Context, submissions []submission) []batch.Result[map[id.Task]Result] {
	var requests []Request
	ended, giveUp := map[id.Task]Result{}, map[id.Task]string{}
	for _, c := range submissions {
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
	ctx, span := w.traceBatch(ctx, submissions, len(requests))
	ends, faults := w.settle(ctx, requests, giveUp)
	if len(ends) > 0 {
		w.publish(ctx, ends)
	} else {
		w.retryAlike(requests, faults)
	}
	for task, end := range ends {
		ended[task] = end
	}
	for task, err := range faults {
		ended[task] = Result{Err: err}
	}
	span.End(anyOf(faults))
	results := make([]batch.Result[map[id.Task]Result], len(submissions))
	for i := range results {
		results[i].Value = ended // read only from here on
	}
	return results
}

// settle ends requests in one transaction. If the requests themselves cause a failure,
// and not the condition of the database, it tries each half, so that one request that
// cannot be written does not block the others.
func (w *Writer) settle(ctx context.Context, requests []Request, giveUp map[id.Task]string) (map[id.Task]Result,
	map[id.Task]error) {
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
func (w *Writer) publish(ctx context.Context, ends map[id.Task]Result) {
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
	w.afterCommit.publishEnds(ctx, tasks, orders)
}

// maxAttempts bounds the attempts at one batch. An attempt is repeated when another
// writer changed the same rows or an order number was taken.
const maxAttempts = 4

// errNeedsOneByOne reports that a batch must be decided one by one: some requests are not
// fresh, do not fit the stock or have a former gate. Nothing was committed.
var errNeedsOneByOne = errors.New("batch must be decided order by order")

// orderBatch is the work of one transaction. A new one is made for each attempt, because a
// transaction may run several times.
type orderBatch struct {
	rows    inserter
	facts   Facts
	persons *person.Hasher
	now     time.Time
	terms   map[id.Item]terms
	ends    map[id.Task]Result
	// superseded are the tasks that were not decided, because their gate was rebuilt.
	superseded []id.Task

	attempt int                // attempts to decide one by one so far; order numbers grow with it
	giveUp  map[id.Task]string // tasks that fail in any case, with the reason
}

func (w *Writer) newBatch(known map[id.Item]terms, size int) *orderBatch {
	return &orderBatch{rows: w.rows, facts: w.facts, persons: w.persons, now: instant(w.clock.Now()), terms: known,
		ends: make(map[id.Task]Result, size)}
}

// persist ends every request in one transaction. It takes the fast path when all
// requests are fresh and fit, and decides one by one otherwise. The tasks in giveUp fail
// unless they have ended before.
func (w *Writer) persist(ctx context.Context, requests []Request, giveUp map[id.Task]string) (*orderBatch, error) {
	// All writers use the same order, so that batches that share rows lock them in the
	// same sequence and cannot deadlock.
	slices.SortFunc(requests, func(a, b Request) int { return bytes.Compare(a.Task[:], b.Task[:]) })
	known, err := w.terms.load(ctx, itemsOf(requests), w.clock.Now())
	if err != nil {
		return nil, err
	}
	b, err := (*orderBatch)(nil), errNeedsOneByOne
	if !slices.ContainsFunc(requests, func(r Request) bool { return giveUp[r.Task] != "" }) {
		b, err = w.try(ctx, len(requests), known, func(ctx context.Context, tx *ent.Tx, b *orderBatch) error {
			return b.fast(ctx, tx, requests)
		})
	}
	for attempt := 0; attempt < maxAttempts && (errors.Is(err, errNeedsOneByOne) || postgres.IsUnique(err)); attempt++ {
		b, err = w.try(ctx, len(requests), known, func(ctx context.Context, tx *ent.Tx, b *orderBatch) error {
			b.attempt, b.giveUp = attempt, giveUp
			return b.oneByOne(ctx, tx, requests)
		})
	}
	return b, err
}

func (w *Writer) try(ctx context.Context, size int, known map[id.Item]terms,
	do func(context.Context, *ent.Tx, *orderBatch) error) (*orderBatch, error) {
	var b *orderBatch
	err := w.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		b = w.newBatch(known, size)
		return do(ctx, tx, b)
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// fast inserts all orders first and updates the stock last, so that the lock on the
// item's row, which all writers of the item contend for, is held for one statement and
// the commit. A request that does not fit ends it with errNeedsOneByOne. A repeated
// request, a buyer with a live order, or a taken number violates a unique index.
// Redeliveries are rare, so detecting them afterwards costs less than a query for each
// request.
func (b *orderBatch) fast(ctx context.Context, tx *ent.Tx, requests []Request) error {
	ctx = postgres.WithPrepared(ctx)
	for _, r := range requests {
		if b.reject(r) != "" {
			return errNeedsOneByOne
		}
	}
	if err := b.insertOrders(ctx, tx, requests); err != nil {
		return err
	}
	// The item's row is locked from here on, and only the holder of that lock ends
	// tasks of the item. A task that another writer failed is visible now.
	failed, err := b.rows.anyFailed(ctx, tx, taskIDs(requests))
	if err != nil {
		return fmt.Errorf("look for failed tasks: %w", err)
	}
	if failed {
		return errNeedsOneByOne
	}
	return nil
}

// insertOrders ends requests as orders: it inserts the rows and then moves the units.
func (b *orderBatch) insertOrders(ctx context.Context, tx *ent.Tx, requests []Request) error {
	if len(requests) == 0 {
		return nil
	}
	orders := make([]*Order, 0, len(requests))
	for _, r := range requests {
		o := b.draft(r)
		orders = append(orders, o)
		b.ends[id.Task(o.ID)] = Result{Task: o.Task(), Order: o}
	}
	if err := b.rows.insert(ctx, tx, orders); err != nil {
		return err
	}
	if err := b.copyRecipients(ctx, tx, orders); err != nil {
		return err
	}
	if err := b.facts.Moved(ctx, tx, "", orders...); err != nil {
		return err
	}
	return b.takeStock(ctx, tx, orders)
}

// taking is the units that fresh orders take from one item.
type taking struct {
	first id.Order // the order named in the ledger line
	units int
	epoch int64 // the lowest of the orders
}

// takeStock moves the units of fresh orders from available to held: one ledger line and
// one guarded update per item, in the order of the item ids. It takes nothing for an
// order whose gate was rebuilt since: the build may not have counted it.
func (b *orderBatch) takeStock(ctx context.Context, tx *ent.Tx, orders []*Order) error {
	taken := map[id.Item]taking{}
	for _, o := range orders {
		t, ok := taken[o.Item]
		if !ok {
			t.first, t.epoch = o.ID, o.Epoch
		}
		t.epoch = min(t.epoch, o.Epoch)
		t.units += o.Quantity
		taken[o.Item] = t
	}
	for _, item := range sortedIDs(maps.Keys(taken)) {
		t := taken[item]
		err := tx.StockMovement.Create().SetID(id.New[uuid.UUID]()).SetOrderID(t.first.UUID()).SetItemID(item).
			SetKind(stockmovement.KindHOLD).SetQuantity(t.units).SetCreatedAt(b.now).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write the ledger of item %s: %w", item, err)
		}
		changed, err := tx.SaleItem.Update().Where(saleitem.ID(item), saleitem.AvailableGTE(t.units),
			saleitem.GateEpochLTE(t.epoch)).
			AddAvailable(-t.units).AddHeld(t.units).AddRevision(1).Save(ctx)
		if err != nil {
			return fmt.Errorf("take stock of item %s: %w", item, err)
		}
		if changed == 0 {
			return errNeedsOneByOne
		}
		if err := b.facts.UnitsLost(ctx, tx, item, LostUnits{Available: t.units, At: b.now}); err != nil {
			return err
		}
	}
	return nil
}

// reject returns why a request cannot become an order, regardless of stock, or "".
func (b *orderBatch) reject(r Request) string {
	t, ok := b.terms[r.Item]
	switch {
	case !ok || t.sale != r.Sale:
		return "no such item in this sale"
	case r.Quantity > t.limit:
		return fmt.Sprintf("quantity %d is over the limit of %d", r.Quantity, t.limit)
	}
	return ""
}

// draft returns the order for a request under the current terms.
func (b *orderBatch) draft(r Request) *Order {
	t := b.terms[r.Item]
	deadline := b.now.Add(t.window)
	return &Order{
		ID: id.Order(r.Task), Number: Number(id.Order(r.Task), b.now, b.attempt), Sale: r.Sale, Item: r.Item, User: r.User,
		Kind: Seckill, Status: PendingPayment, Quantity: r.Quantity, UnitPriceMinor: t.priceMinor, Currency: t.currency,
		Version: 1, Epoch: r.Epoch, ReservedAt: r.submittedAt(), CreatedAt: b.now, UpdatedAt: b.now,
		PaymentDeadline: &deadline, Persons: r.Persons, Origin: r.Origin,
	}
}

func itemsOf(requests []Request) []id.Item {
	items := map[id.Item]bool{}
	for _, r := range requests {
		items[r.Item] = true
	}
	return sortedIDs(maps.Keys(items))
}

func sortedIDs[T ~[16]byte](ids iter.Seq[T]) []T {
	return slices.SortedFunc(ids, func(a, b T) int { return bytes.Compare(a[:], b[:]) })
}

func taskIDs(requests []Request) []id.Task {
	return collect.Map(requests, func(r Request) id.Task { return r.Task })
}
