package order

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

const (
	// bucketsPerRead bounds the buckets that one pipeline reads.
	bucketsPerRead = 16
	// copiesPerVisit is the least number of copies after which EachCopy visits them.
	copiesPerVisit = 500
)

// Copy is what Redis has of the end of a task: its order, or its failure.
type Copy struct {
	Order   *Order // nil = none
	Failure *Task  // nil = none
}

// EachCopy visits the copies in the buckets whose keys match a pattern, those of the newest
// tasks first. A copy that is written meanwhile may be left out.
func (c *Cache) EachCopy(ctx context.Context, pattern string, visit func(copies []Copy) error) error {
	var buckets []string
	err := c.conn.EachKey(ctx, pattern, func(keys []string) error {
		buckets = append(buckets, keys...)
		return nil
	})
	if err != nil {
		return err
	}
	moment := func(bucket string) string { return bucket[strings.LastIndexByte(bucket, ':')+1:] }
	slices.SortFunc(buckets, func(a, b string) int { return strings.Compare(moment(b), moment(a)) })
	buckets = slices.Compact(buckets)
	var copies []Copy
	for part := range slices.Chunk(buckets, bucketsPerRead) {
		read, err := c.read(ctx, part)
		if err != nil {
			return fmt.Errorf("read copies of tasks: %w", err)
		}
		if copies = append(copies, read...); len(copies) < copiesPerVisit {
			continue
		}
		if err := visit(copies); err != nil {
			return err
		}
		copies = nil
	}
	if len(copies) == 0 {
		return nil
	}
	return visit(copies)
}

// read returns the copies in some buckets. An unreadable one counts as missing.
func (c *Cache) read(ctx context.Context, buckets []string) (copies []Copy, err error) {
	pipe := c.conn.Cmd.Pipeline()
	replies := collect.Map(buckets, func(bucket string) *redis.MapStringStringCmd { return pipe.HGetAll(ctx, bucket) })
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for _, reply := range replies {
		fields, err := reply.Result()
		if err != nil {
			return nil, err
		}
		copies = append(copies, copiesOf(fields)...)
	}
	return copies, nil
}

func copiesOf(fields map[string]string) (copies []Copy) {
	texts := map[id.Order][]any{} // JSON and packed, as newestOf takes them
	textsOf := func(order id.Order) []any {
		if texts[order] == nil {
			texts[order] = make([]any, 2)
		}
		return texts[order]
	}
	for field, text := range fields {
		if name, ok := strings.CutPrefix(field, "order:"); ok {
			if order, err := id.ParseUUID[id.Order](name); err == nil {
				textsOf(order)[0] = text
			}
			continue
		}
		if strings.HasPrefix(field, "task:") {
			var t Task
			if json.Unmarshal([]byte(text), &t) == nil && t.Status == Failed {
				copies = append(copies, Copy{Failure: &t})
			}
			continue
		}
		if order := (id.Order{}); len(field) == len(order) {
			copy(order[:], field)
			textsOf(order)[1] = text
		}
	}
	for order, both := range texts {
		if newest := newestOf(order, both); newest.Order != nil {
			copies = append(copies, Copy{Order: newest.Order})
		}
	}
	return copies
}

// drop removes the copies of orders, and those of failures.
func (c *Cache) drop(ctx context.Context, orders, failures []id.Task) error {
	if len(orders)+len(failures) == 0 {
		return nil
	}
	pipe := c.conn.Cmd.Pipeline()
	c.remove(ctx, pipe, orders, fieldsOfOrder)
	c.remove(ctx, pipe, failures, func(task id.Task) []string { return []string{taskField(task)} })
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("drop copies of %d orders and %d failures: %w", len(orders), len(failures), err)
	}
	return nil
}

func (c *Cache) remove(ctx context.Context, pipe redis.Pipeliner, tasks []id.Task, fields func(task id.Task) []string) {
	for _, task := range tasks {
		if shard, err := id.TaskShard(task); err == nil { // else such a task cannot exist
			pipe.HDel(ctx, c.bucket(shard, task), fields(task)...)
		}
	}
}

func fieldsOfOrder(task id.Task) []string {
	return []string{orderField(id.Order(task)), packedField(id.Order(task))}
}

// Unrecorded is what copies have that Postgres has not.
type Unrecorded struct {
	Orders   []*Order // orders without a row and without a failure
	Failures []Task   // failures without a row and without an order
	Newer    []*Order // states of orders that their rows do not have
	// unused are copies of orders whose tasks have failed, and of failures whose tasks have
	// orders.
	unusedOrders, unusedFailures []id.Task
}

// Unrecorded compares copies with Postgres. They must have been read before.
func (s *Store) Unrecorded(ctx context.Context, copies []Copy) (found Unrecorded, err error) {
	for part := range slices.Chunk(copies, maxIDs) {
		if err := s.unrecorded(ctx, part, &found); err != nil {
			return found, fmt.Errorf("compare %d copies with postgres: %w", len(part), err)
		}
	}
	return found, nil
}

func (s *Store) unrecorded(ctx context.Context, copies []Copy, found *Unrecorded) error {
	tasks := make([]id.Task, len(copies))
	for i, c := range copies {
		if c.Order != nil {
			tasks[i] = id.Task(c.Order.ID)
		} else {
			tasks[i] = c.Failure.ID
		}
	}
	rows, err := s.db.Ent.Order.Query().Where(entorder.IDIn(id.As[id.Order](tasks)...)).All(ctx)
	if err != nil {
		return err
	}
	orders := collect.Index(rows, func(row *ent.Order) id.Task { return id.Task(row.ID) })
	failed, err := s.db.Ent.OrderFailure.Query().Where(orderfailure.IDIn(tasks...)).IDs(ctx)
	if err != nil {
		return err
	}
	for i, c := range copies {
		row, fails := orders[tasks[i]], slices.Contains(failed, tasks[i])
		switch {
		case c.Order != nil && row != nil:
			if differs(c.Order, row) {
				found.Newer = append(found.Newer, c.Order)
			}
		case c.Order != nil && fails:
			found.unusedOrders = append(found.unusedOrders, tasks[i])
		case c.Order != nil:
			found.Orders = append(found.Orders, c.Order)
		case row != nil:
			found.unusedFailures = append(found.unusedFailures, tasks[i])
		case !fails:
			found.Failures = append(found.Failures, *c.Failure)
		}
	}
	return nil
}

// differs reports whether a copy has a state that the row of its order does not have. A row
// with a higher version is newer.
func differs(have *Order, row *ent.Order) bool {
	return have.Version > row.Version ||
		have.Version == row.Version && (have.Status != Status(row.Status) ||
			have.UpdatedAt.UnixMilli() != row.UpdatedAt.UnixMilli())
}

// DropUnused removes the copies that contradict the record.
func (s *Store) DropUnused(ctx context.Context, found Unrecorded) error {
	return s.cache.drop(ctx, found.unusedOrders, found.unusedFailures)
}

// DropOrders removes the copies of orders that Postgres does not have.
func (s *Store) DropOrders(ctx context.Context, orders []*Order) error {
	tasks := collect.Map(orders, func(o *Order) id.Task { return id.Task(o.ID) })
	return s.cache.drop(ctx, tasks, nil)
}

// Raise gives orders whose copies are newer than their rows a version above that of the
// copies, so that Redis, subscribers and clients, who have seen those, take the state of
// the record. It returns the orders that it changed.
func (s *Store) Raise(ctx context.Context, newer []*Order) (raised []*Order, err error) {
	var changed []id.Order
	for _, o := range newer {
		n := 0
		err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			n, err = tx.Order.Update().Where(entorder.ID(o.ID), entorder.VersionLTE(o.Version)).SetVersion(o.Version + 1).
				Save(ctx)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("raise the version of order %s: %w", o.ID, err)
		}
		if n > 0 {
			changed = append(changed, o.ID)
		}
	}
	for part := range slices.Chunk(changed, maxIDs) {
		found, err := s.reload(ctx, part)
		if err != nil {
			return raised, err
		}
		for _, o := range found {
			raised = append(raised, o)
		}
	}
	return raised, nil
}

// Request returns the message from which an order was written, with its own gate's epoch.
// It has no idempotency key: the gate records that of a reservation that ends.
func (o *Order) Request() Request {
	return Request{
		V: requestVersion, Task: id.Task(o.ID), User: o.User, Sale: o.Sale, Item: o.Item, Quantity: o.Quantity,
		UnitPriceMinor: o.UnitPriceMinor, Currency: o.Currency, PaymentWindowSeconds: max(1, o.windowSeconds()),
		Epoch: o.Epoch, SubmittedAtMs: o.ReservedAt.UnixMilli(),
	}
}

func (o *Order) windowSeconds() int {
	if o.PaymentDeadline == nil {
		return 1
	}
	return int(o.PaymentDeadline.Sub(o.CreatedAt).Seconds())
}

// Untouched reports whether nothing has happened to an order since it was placed.
func (o *Order) Untouched() bool { return o.fresh() }
