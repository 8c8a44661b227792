package order

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

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
	outbox  *webhook.Outbox
	notices *notice.Outbox
	now     time.Time
	terms   map[id.Item]terms
	ends    map[id.Task]Outcome
	// superseded are the tasks that were not decided, because their gate was rebuilt.
	superseded []id.Task

	attempt int                // attempts to decide one by one so far; order numbers grow with it
	giveUp  map[id.Task]string // tasks that fail in any case, with the reason
}

func (w *Writer) newBatch(known map[id.Item]terms, size int) *orderBatch {
	return &orderBatch{rows: w.rows, outbox: w.outbox, notices: w.notices, now: instant(w.clock.Now()), terms: known, ends: make(map[id.Task]Outcome, size)}
}

// persist ends every request in one transaction. It takes the fast path when all
// requests are fresh and fit, and decides one by one otherwise. The tasks in giveUp fail
// unless they have ended before.
func (w *Writer) persist(ctx context.Context, requests []Requested, giveUp map[id.Task]string) (*orderBatch, error) {
	// All writers use the same order, so that batches that share rows lock them in the
	// same sequence and cannot deadlock.
	slices.SortFunc(requests, func(a, b Requested) int { return bytes.Compare(a.Task[:], b.Task[:]) })
	known, err := w.terms.load(ctx, itemsOf(requests), w.clock.Now())
	if err != nil {
		return nil, err
	}
	b, err := (*orderBatch)(nil), errNeedsOneByOne
	if !slices.ContainsFunc(requests, func(r Requested) bool { return giveUp[r.Task] != "" }) {
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

func (w *Writer) try(ctx context.Context, size int, known map[id.Item]terms, do func(context.Context, *ent.Tx, *orderBatch) error) (*orderBatch, error) {
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
func (b *orderBatch) fast(ctx context.Context, tx *ent.Tx, requests []Requested) error {
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
func (b *orderBatch) insertOrders(ctx context.Context, tx *ent.Tx, requests []Requested) error {
	if len(requests) == 0 {
		return nil
	}
	orders := make([]*Order, 0, len(requests))
	for _, r := range requests {
		o := b.draft(r)
		orders = append(orders, o)
		b.ends[id.Task(o.ID)] = Outcome{Task: o.Task(), Order: o}
	}
	if err := b.rows.insert(ctx, tx, orders); err != nil {
		return err
	}
	if err := b.copyRecipients(ctx, tx, orders); err != nil {
		return err
	}
	if err := writeEvents(ctx, tx, b.outbox, "", orders...); err != nil {
		return err
	}
	if err := b.notices.OrdersPlaced(ctx, tx, placed(orders)); err != nil {
		return err
	}
	return b.takeStock(ctx, tx, orders)
}

// placed returns orders as notices need them.
func placed(orders []*Order) []notice.Placed {
	out := make([]notice.Placed, len(orders))
	for i, o := range orders {
		out[i] = notice.Placed{Order: o.ID, User: o.User, At: o.CreatedAt, Deadline: *o.PaymentDeadline}
	}
	return out
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
		changed, err := tx.SaleItem.Update().Where(saleitem.ID(item), saleitem.AvailableGTE(t.units), saleitem.GateEpochLTE(t.epoch)).
			AddAvailable(-t.units).AddHeld(t.units).AddRevision(1).Save(ctx)
		if err != nil {
			return fmt.Errorf("take stock of item %s: %w", item, err)
		}
		if changed == 0 {
			return errNeedsOneByOne
		}
		if err := WriteLowStock(ctx, tx, b.outbox, item, LostUnits{Available: t.units, At: b.now}); err != nil {
			return err
		}
	}
	return nil
}

// reject returns why a request cannot become an order, regardless of stock, or "".
func (b *orderBatch) reject(r Requested) string {
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
func (b *orderBatch) draft(r Requested) *Order {
	t := b.terms[r.Item]
	deadline := b.now.Add(t.window)
	return &Order{
		ID: id.Order(r.Task), Number: Number(id.Order(r.Task), b.now, b.attempt), Sale: r.Sale, Item: r.Item, User: r.User,
		Kind: Seckill, Status: PendingPayment, Quantity: r.Quantity, UnitPriceMinor: t.priceMinor, Currency: t.currency,
		Version: 1, Epoch: r.Epoch, ReservedAt: r.submittedAt(), CreatedAt: b.now, UpdatedAt: b.now,
		PaymentDeadline: &deadline,
	}
}

func itemsOf(requests []Requested) []id.Item {
	items := map[id.Item]bool{}
	for _, r := range requests {
		items[r.Item] = true
	}
	return sortedIDs(maps.Keys(items))
}

func sortedIDs[T ~[16]byte](ids iter.Seq[T]) []T {
	return slices.SortedFunc(ids, func(a, b T) int { return bytes.Compare(a[:], b[:]) })
}

func taskIDs(requests []Requested) []id.Task {
	ids := make([]id.Task, 0, len(requests))
	for _, r := range requests {
		ids = append(ids, r.Task)
	}
	return ids
}
