package order

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// buyer identifies a user and an item; a buyer has at most one live order.
type buyer struct {
	item id.Item
	user id.User
}

// oneByOne decides the requests of a batch one by one. It locks the items first, so that
// what it reads stays valid: until it commits, no other transaction can end a task of
// these items or move their stock. It is slower than fast, and rarely needed.
func (b *orderBatch) oneByOne(ctx context.Context, tx *ent.Tx, requests []Request) error {
	stock, err := b.lockItems(ctx, tx, itemsOf(requests))
	if err != nil {
		return err
	}
	if err := b.recogniseEnds(ctx, tx, requests); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(requests), func(r Request) bool {
		_, ended := b.ends[r.Task]
		return ended
	})
	live, err := b.liveOrders(ctx, tx, left)
	if err != nil {
		return err
	}
	left, withoutAddress, err := b.refuseWithoutAddress(ctx, tx, left)
	if err != nil {
		return err
	}
	chosen, failed := b.choose(left, live, stock)
	if err := b.insertOrders(ctx, tx, chosen); err != nil {
		return err
	}
	return b.insertFailures(ctx, tx, append(failed, withoutAddress...))
}

// itemStock is what a batch reads of a locked item.
type itemStock struct {
	available int
	epoch     int64 // of the gate's newest build
	over      bool  // the sale has ended: its gate accepts nothing
}

// lockItems locks the rows of the existing items in the order of their ids, and returns
// their stock. The lock is an update that changes only the revision, because that works
// on every database.
func (b *orderBatch) lockItems(ctx context.Context, tx *ent.Tx, items []id.Item) (map[id.Item]*itemStock, error) {
	for _, item := range items {
		if err := tx.SaleItem.Update().Where(saleitem.ID(item)).AddRevision(1).Exec(ctx); err != nil {
			return nil, fmt.Errorf("lock item %s: %w", item, err)
		}
	}
	rows, err := tx.SaleItem.Query().Where(saleitem.IDIn(items...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read locked items: %w", err)
	}
	sales := collect.Map(rows, func(row *ent.SaleItem) id.Sale { return row.SaleID })
	ended, err := tx.Sale.Query().Where(entsale.IDIn(sales...),
		entsale.StatusIn(entsale.StatusENDED, entsale.StatusCANCELLED)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ended sales: %w", err)
	}
	stock := make(map[id.Item]*itemStock, len(rows))
	for _, row := range rows {
		stock[row.ID] = &itemStock{available: row.Available, epoch: row.GateEpoch, over: slices.Contains(ended, row.SaleID)}
	}
	return stock, nil
}

// recogniseEnds records the requests whose task has already ended.
func (b *orderBatch) recogniseEnds(ctx context.Context, tx *ent.Tx, requests []Request) error {
	ids := taskIDs(requests)
	orders, err := tx.Order.Query().Where(entorder.IDIn(id.As[id.Order](ids)...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read known orders: %w", err)
	}
	for _, row := range orders {
		o := FromRow(row)
		b.ends[id.Task(o.ID)] = Result{Task: o.Task(), Order: o, Replayed: true}
	}
	rows, err := tx.OrderFailure.Query().Where(orderfailure.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read known failures: %w", err)
	}
	var found []id.Task
	for _, row := range rows {
		b.ends[row.ID] = Result{Task: failureFromRow(row).Task(), Replayed: true}
		if row.Released && b.giveUp[row.ID] == "" {
			found = append(found, row.ID)
		}
	}
	if len(found) == 0 {
		return nil
	}
	// The message of a task that counted as lost exists after all. A reservation that came
	// with it, after the first release, must be released as well.
	if err := tx.OrderFailure.Update().Where(orderfailure.IDIn(found...)).SetReleased(false).Exec(ctx); err != nil {
		return fmt.Errorf("release failed tasks again: %w", err)
	}
	return nil
}

func (b *orderBatch) liveOrders(ctx context.Context, tx *ent.Tx, requests []Request) (map[buyer]id.Order, error) {
	live := map[buyer]id.Order{}
	if len(requests) == 0 {
		return live, nil
	}
	users := collect.Map(requests, func(r Request) id.User { return r.User })
	rows, err := tx.Order.Query().
		Where(entorder.ItemIDIn(itemsOf(requests)...), entorder.UserIDIn(users...), entorder.StatusIn(liveStatuses()...)).
		Select(entorder.FieldID, entorder.FieldItemID, entorder.FieldUserID).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read live orders: %w", err)
	}
	for _, row := range rows {
		live[buyer{row.ItemID, row.UserID}] = row.ID
	}
	return live, nil
}

// choose divides the requests into those that become orders, those that fail, and those
// that are superseded: the oldest reservation first, as many as fit. A large request that
// does not fit does not block a later, smaller one.
func (b *orderBatch) choose(requests []Request, live map[buyer]id.Order, stock map[id.Item]*itemStock) ([]Request,
	[]Failure) {
	byAge := slices.Clone(requests)
	slices.SortStableFunc(byAge, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.SubmittedAtMs, b.SubmittedAtMs), bytes.Compare(a.Task[:], b.Task[:]))
	})
	var chosen []Request
	var failed []Failure
	for _, r := range byAge {
		who := buyer{r.Item, r.User}
		other, has := live[who]
		if code, reason := b.rejectCode(r); reason != "" {
			failed = append(failed, b.failure(r, code, reason))
			continue
		}
		item := stock[r.Item]
		if item.over { // no gate can sell the units again
			r.Epoch = max(r.Epoch, item.epoch)
		}
		switch {
		case has:
			failed = append(failed, b.failure(r, fault.AlreadyOrdered, "live order "+other.String()))
		case r.Epoch < item.epoch:
			b.superseded = append(b.superseded, r.Task)
		case r.Quantity > item.available:
			reason := fmt.Sprintf("reserved %d units where the record has %d", r.Quantity, item.available)
			failed = append(failed, b.failure(r, fault.SoldOut, reason))
		default:
			item.available -= r.Quantity
			live[who] = id.Order(r.Task)
			chosen = append(chosen, r)
		}
	}
	slices.SortFunc(chosen, func(a, b Request) int { return bytes.Compare(a.Task[:], b.Task[:]) })
	return chosen, failed
}

func (b *orderBatch) rejectCode(r Request) (fault.Reason, string) {
	if reason := b.giveUp[r.Task]; reason != "" {
		return fault.Conflict, reason
	}
	reason := b.reject(r)
	if t, ok := b.terms[r.Item]; ok && t.sale == r.Sale {
		return fault.PurchaseLimitReached, reason
	}
	return fault.Unknown, reason
}

func (b *orderBatch) failure(r Request, code fault.Reason, reason string) Failure {
	return Failure{
		ID: r.Task, Sale: r.Sale, Item: r.Item, User: r.User, Quantity: r.Quantity,
		Code: code, Reason: reason, ReservedAt: r.submittedAt(), CreatedAt: b.now,
	}
}

// insertFailures ends tasks as failed. The row marks their units as due, and the
// release loop returns them in Redis later.
func (b *orderBatch) insertFailures(ctx context.Context, tx *ent.Tx, failed []Failure) error {
	if len(failed) == 0 {
		return nil
	}
	rows := sql.Insert(orderfailure.Table).Columns(orderfailure.Columns...)
	for _, f := range failed {
		rows.Values(f.ID, f.Sale, f.Item, f.User, f.Quantity, string(f.Code), f.Reason, false, f.ReservedAt, f.CreatedAt)
		b.ends[f.ID] = Result{Task: f.Task()}
	}
	// A task of an unknown item has no row to lock, so another writer may have failed
	// it in the same way.
	if err := postgres.Insert(ctx, tx, rows.OnConflict(sql.DoNothing())); err != nil {
		return fmt.Errorf("insert failures: %w", err)
	}
	return nil
}

func liveStatuses() []entorder.Status {
	var live []entorder.Status
	for _, s := range Live() {
		live = append(live, entorder.Status(s))
	}
	return live
}

const (
	// minAlike is the smallest batch for which one SQLSTATE for all requests is blamed on
	// the server.
	minAlike = 3
	// alikeFor is how long requests that fail with the same SQLSTATE are retried without
	// being counted.
	alikeFor = 15 * time.Minute
)

// errAlike marks the error of requests that failed with the same SQLSTATE.
var errAlike = errors.New("all orders of a batch fail with the same SQLSTATE")

// retryAlike marks the errors of a batch as transient if all of its requests failed
// with the same SQLSTATE: a full disk, a trigger or a constraint that an operator has
// added. Older requests are not marked, so that each becomes a dead letter in the end.
func (w *Writer) retryAlike(requests []Request, faults map[id.Task]error) {
	if len(requests) < minAlike || len(faults) < len(requests) {
		return
	}
	state := ""
	for _, err := range faults {
		s, ok := errors.AsType[interface {
			error
			SQLState() string
		}](err)
		if !ok || state != "" && s.SQLState() != state {
			return
		}
		state = s.SQLState()
	}
	after := w.clock.Now().Add(-alikeFor)
	for _, r := range requests {
		if r.submittedAt().After(after) {
			faults[r.Task] = fmt.Errorf("%w: %w", errAlike, faults[r.Task])
		}
	}
}
