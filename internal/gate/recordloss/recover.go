package recordloss

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"seckill/ent/user"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// recover makes Redis follow the record again. Repeating it is harmless. The gates stop
// first, so that none sells what the record does not have, and are built last, so that
// they count the orders that are requested again.
func (w *Watch) recover(ctx context.Context, lost int64) (map[string]int, error) {
	gates, err := w.gates(ctx)
	if err != nil {
		return nil, err
	}
	for _, gate := range gates {
		if err := w.cfg.Gate.Suspend(ctx, gate); err != nil {
			return nil, err
		}
	}
	// Every process reads the catalogue again.
	if err := w.cfg.Versions.Write(ctx, func(context.Context) error { return nil }); err != nil {
		return nil, err
	}
	w.cfg.Catalog.Forget()
	if w.cfg.Users != nil {
		if err := w.cfg.Users.ForgetAll(ctx, w.cfg.Redis); err != nil {
			return nil, err
		}
	}
	counts, err := w.compare(ctx, lost)
	rebuilt, rebuildErr := w.cfg.Gates.Recover(ctx, gates)
	if counts == nil {
		counts = map[string]int{}
	}
	maps.Copy(counts, rebuilt)
	return counts, errors.Join(err, rebuildErr)
}

// gates lists the items with a gate in Redis.
func (w *Watch) gates(ctx context.Context) (refs []reservation.ItemRef, err error) {
	seen := map[reservation.ItemRef]bool{}
	err = w.cfg.Redis.EachKey(ctx, w.cfg.Keys.AnyItem(), func(keys []string) error {
		found, err := w.cfg.Gate.Refs(ctx, keys)
		for _, ref := range found {
			if !seen[ref] {
				seen[ref], refs = true, append(refs, ref)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the gates: %w", err)
	}
	return refs, nil
}

// compare compares all copies in Redis with the record, and gives every task that lost
// its end, and every order that lost its state, one again. It notes them as concerned by the
// loss at a mark.
func (w *Watch) compare(ctx context.Context, lost int64) (map[string]int, error) {
	counts := map[string]int{}
	err := w.cfg.Cache.EachCopy(ctx, w.cfg.Keys.AnyTasks(), func(copies []order.Copy) error {
		found, err := w.cfg.Orders.Unrecorded(ctx, copies)
		if err != nil {
			return err
		}
		if err := w.note(ctx, lost, found); err != nil {
			return err
		}
		return w.resolve(ctx, found, counts)
	})
	for what, n := range counts {
		if n > 0 {
			w.cfg.Log.WarnContext(ctx, "the record was behind its copies", slog.String("what", what), slog.Int("count", n))
		}
	}
	return counts, err
}

func (w *Watch) resolve(ctx context.Context, found order.Unrecorded, counts map[string]int) error {
	raised, err := w.cfg.Orders.Raise(ctx, found.Newer)
	if err != nil {
		return err
	}
	w.cfg.AfterCommit.Publish(ctx, raised...)
	counts["orders_back"] += len(raised)
	again, gone, err := w.divide(ctx, found.Orders)
	if err != nil {
		return err
	}
	if err := w.request(ctx, again); err != nil {
		return err
	}
	counts["requested_again"] += len(again)
	lost := found.Failures
	for _, o := range gone {
		lost = append(lost, o.Task())
	}
	for i, result := range w.cfg.Writer.FailLostTasks(ctx, lost, order.ReasonRecordLost) {
		if result.Err != nil {
			return fmt.Errorf("fail task %s: %w", lost[i].ID, result.Err)
		}
		w.cfg.Log.ErrorContext(ctx, "postgres lost the end of a task", slog.String("task", lost[i].ID.Public()))
		counts["failed"]++
	}
	if err := w.cfg.Orders.DropOrders(ctx, gone); err != nil {
		return err
	}
	return w.cfg.Orders.DropUnused(ctx, found)
}

// divide divides orders that the record does not have into those that are requested again,
// and those whose tasks fail: something had happened to them since, such as a payment or a
// cancellation, or the record does not have their sale or their user.
func (w *Watch) divide(ctx context.Context, orders []*order.Order) (again, gone []*order.Order, err error) {
	users, err := w.users(ctx, orders)
	if err != nil {
		return nil, nil, err
	}
	sales := map[id.Sale]bool{}
	for _, o := range orders {
		sells, known := sales[o.Sale]
		if !known {
			v, err := w.cfg.Sales.ByID(ctx, o.Sale)
			if err != nil {
				return nil, nil, err
			}
			sells = v != nil && (v.Status.Loaded() || v.Status == sale.Scheduled || v.Status == sale.Ended)
			sales[o.Sale] = sells
		}
		if sells && users[o.User] && o.Untouched() {
			again = append(again, o)
		} else {
			gone = append(gone, o)
		}
	}
	return again, gone, nil
}

// users returns the users of orders that the record has.
func (w *Watch) users(ctx context.Context, orders []*order.Order) (map[id.User]bool, error) {
	there := map[id.User]bool{}
	for part := range slices.Chunk(orders, idChunk) {
		ids := collect.Map(part, func(o *order.Order) id.User { return o.User })
		found, err := w.cfg.DB.Ent.User.Query().Where(user.IDIn(ids...)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up the users of %d orders: %w", len(part), err)
		}
		for _, u := range found {
			there[u] = true
		}
	}
	return there, nil
}

// request appends the messages of orders to their streams again.
func (w *Watch) request(ctx context.Context, orders []*order.Order) error {
	for _, o := range orders {
		msg, err := o.Request().Message()
		if err != nil {
			return fmt.Errorf("request order %s again: %w", o.ID, err)
		}
		if err := w.cfg.Streams.Append(ctx, w.cfg.Keys.Orders(id.ShardOf(o.Sale)), msg); err != nil {
			return fmt.Errorf("request order %s again: %w", o.ID, err)
		}
	}
	return nil
}
