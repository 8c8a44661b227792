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
	entorder "seckill/ent/order"
	"seckill/ent/saleitem"
	"seckill/internal/postgres"
)

// maxAttempts bounds how often a batch is decided anew because another writer
// came between, or an order number was taken.
const maxAttempts = 4

var (
	// errUnusual ends the fast way: the batch holds something else than fresh
	// requests that all fit. Nothing of it was committed.
	errUnusual = errors.New("batch needs the careful way")
	// errAgain says that another writer came between.
	errAgain = errors.New("batch must be decided anew")
)

// batch is the work of one transaction. It is made anew for each try, since a
// transaction may be run several times.
type batch struct {
	id    uuid.UUID // tells own rows from rows that were there
	rows  inserter
	now   time.Time
	terms map[uuid.UUID]terms
	ends  map[uuid.UUID]Outcome

	giveUp string // why all its tasks are to end as failed; "" = they are not
}

func (w *Writer) newBatch(known map[uuid.UUID]terms, size int) *batch {
	return &batch{id: w.newID(), rows: w.rows, now: instant(w.clock.Now()), terms: known, ends: make(map[uuid.UUID]Outcome, size)}
}

// persist ends every request in one transaction: the fast way when all are fresh
// and fit, else the careful way.
func (w *Writer) persist(ctx context.Context, requests []Requested) (map[uuid.UUID]Outcome, error) {
	// One order for all writers, so that two batches that share rows meet
	// them in the same sequence.
	slices.SortFunc(requests, func(a, b Requested) int { return bytes.Compare(a.Task[:], b.Task[:]) })
	known, err := w.terms.load(ctx, itemsOf(requests), w.clock.Now())
	if err != nil {
		return nil, err
	}
	ends, err := w.try(ctx, len(requests), known, func(ctx context.Context, tx *ent.Tx, b *batch) error {
		return b.fast(ctx, tx, requests)
	})
	for attempt := 0; attempt < maxAttempts && (errors.Is(err, errUnusual) || errors.Is(err, errAgain)); attempt++ {
		ends, err = w.try(ctx, len(requests), known, func(ctx context.Context, tx *ent.Tx, b *batch) error {
			return b.careful(ctx, tx, requests)
		})
	}
	return ends, err
}

func (w *Writer) try(ctx context.Context, size int, known map[uuid.UUID]terms, do func(context.Context, *ent.Tx, *batch) error) (map[uuid.UUID]Outcome, error) {
	var b *batch
	err := w.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		b = w.newBatch(known, size)
		return do(ctx, tx, b)
	})
	if err != nil {
		return nil, err
	}
	return b.ends, nil
}

// fast inserts all requests first and takes the stock last, so that the lock on
// the item's row, which everybody needs, is held for one statement and the
// commit. Requests that were written before are recognised. Anything else ends
// it with errUnusual.
func (b *batch) fast(ctx context.Context, tx *ent.Tx, requests []Requested) error {
	ctx = postgres.Keep(ctx)
	for _, r := range requests {
		if b.reject(r) != "" {
			return errUnusual
		}
	}
	written, err := b.insertOrders(ctx, tx, requests)
	if err != nil {
		return err
	}
	if len(b.ends) < len(requests) {
		return errUnusual
	}
	if err := b.takeStock(ctx, tx, written); err != nil {
		return err
	}
	// The item's row is locked now, and with it the right to end its tasks: a
	// task that another writer failed is visible.
	failed, err := b.rows.anyFailed(ctx, tx, taskIDs(requests))
	if err != nil {
		return fmt.Errorf("look for failed tasks: %w", err)
	}
	if failed {
		return errUnusual
	}
	return nil
}

// insertOrders writes a row and a ledger line for each request that has none, and
// notes those that have one as ended. A request that stays without a row meets a
// live order of the same user and item. It returns the orders that are ours.
func (b *batch) insertOrders(ctx context.Context, tx *ent.Tx, requests []Requested) ([]*Order, error) {
	var written []*Order
	left := requests
	for attempt := 0; attempt < maxAttempts && len(left) > 0; attempt++ {
		drafts := make([]*Order, 0, len(left))
		for _, r := range left {
			drafts = append(drafts, b.draft(r, attempt))
		}
		ours, err := b.rows.insert(ctx, tx, b.id, drafts)
		if err != nil {
			return nil, err
		}
		for _, o := range ours {
			b.ends[o.ID] = Outcome{Task: o.Task(), Order: o}
		}
		written = append(written, ours...)
		if len(ours) == len(left) {
			return written, nil
		}
		if left, err = b.retry(ctx, tx, left, attempt); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// retry recognises the requests whose order was there already, and returns those
// that are left and worth another attempt: their number was taken.
func (b *batch) retry(ctx context.Context, tx *ent.Tx, requests []Requested, attempt int) ([]Requested, error) {
	without := func() []Requested {
		return slices.DeleteFunc(slices.Clone(requests), func(r Requested) bool { return b.ended(r.Task) })
	}
	if err := b.recognise(ctx, tx, taskIDs(without())); err != nil {
		return nil, err
	}
	left := without()
	taken, err := b.anyNumberTaken(ctx, tx, left, attempt)
	if err != nil || !taken {
		return nil, err
	}
	return left, nil
}

// recognise notes requests whose order was there already.
func (b *batch) recognise(ctx context.Context, tx *ent.Tx, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Order.Query().Where(entorder.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read known orders: %w", err)
	}
	for _, row := range rows {
		o := FromRow(row)
		b.ends[o.ID] = Outcome{Task: o.Task(), Order: o, Replayed: true}
	}
	return nil
}

// anyNumberTaken tells whether a request was left without a row because of its
// number, and is worth another attempt.
func (b *batch) anyNumberTaken(ctx context.Context, tx *ent.Tx, left []Requested, attempt int) (bool, error) {
	numbers := make([]string, 0, len(left))
	for _, r := range left {
		numbers = append(numbers, Number(r.Task, b.now, attempt))
	}
	taken, err := tx.Order.Query().Where(entorder.NumberIn(numbers...)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("look for order numbers: %w", err)
	}
	return taken, nil
}

// takeStock moves the units of fresh orders from available to held, one guarded
// update per item, items in the order of their ids.
func (b *batch) takeStock(ctx context.Context, tx *ent.Tx, orders []*Order) error {
	units := map[uuid.UUID]int{}
	for _, o := range orders {
		units[o.Item] += o.Quantity
	}
	for _, item := range sortedIDs(maps.Keys(units)) {
		n := units[item]
		changed, err := tx.SaleItem.Update().Where(saleitem.ID(item), saleitem.AvailableGTE(n)).
			AddAvailable(-n).AddHeld(n).AddRevision(1).Save(ctx)
		if err != nil {
			return fmt.Errorf("take stock of item %s: %w", item, err)
		}
		if changed == 0 {
			return errUnusual
		}
	}
	return nil
}

// reject returns why no order can come of a request whatever the stock, or "".
func (b *batch) reject(r Requested) string {
	t, ok := b.terms[r.Item]
	switch {
	case !ok || t.sale != r.Sale:
		return "no such item in this sale"
	case r.Quantity > t.limit:
		return fmt.Sprintf("quantity %d is over the limit of %d", r.Quantity, t.limit)
	}
	return ""
}

func (b *batch) ended(task uuid.UUID) bool {
	_, ok := b.ends[task]
	return ok
}

// draft is the order that a request asks for, under the terms of now.
func (b *batch) draft(r Requested, attempt int) *Order {
	t := b.terms[r.Item]
	deadline := b.now.Add(t.window)
	return &Order{
		ID: r.Task, Number: Number(r.Task, b.now, attempt), Sale: r.Sale, Item: r.Item, User: r.User,
		Kind: Seckill, Status: PendingPayment, Quantity: r.Quantity, UnitPriceMinor: t.priceMinor, Currency: t.currency,
		Version: 1, Epoch: r.Epoch, ReservedAt: r.submittedAt(), CreatedAt: b.now, UpdatedAt: b.now,
		PaymentDeadline: &deadline,
	}
}

func itemsOf(requests []Requested) []uuid.UUID {
	items := map[uuid.UUID]bool{}
	for _, r := range requests {
		items[r.Item] = true
	}
	return sortedIDs(maps.Keys(items))
}

func sortedIDs(ids iter.Seq[uuid.UUID]) []uuid.UUID {
	return slices.SortedFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}

func taskIDs(requests []Requested) []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(requests))
	for _, r := range requests {
		ids = append(ids, r.Task)
	}
	return ids
}
