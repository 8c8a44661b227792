package storefront

import (
	"context"
	"math"

	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
)

// taskKey is the status bus key of an order task.
func taskKey(task id.Task) string { return "task:" + task.String() }

// orderKey is the status bus key of an order.
func orderKey(o id.Order) string { return "order:" + o.String() }

// errGone ends a stream whose subject no longer exists.
func errGone(what string) error { return fault.New(fault.NotFound, "There is no such "+what+".") }

// WatchTask follows an order task of a user until it ends.
func (s *Storefront) WatchTask(ctx context.Context, taskID id.Task, owner id.User) (*notifier.Follower[*order.Task],
	error) {
	return notifier.Follow(ctx, s.cfg.Hub, taskKey(taskID),
		func(ctx context.Context) (notifier.State[*order.Task], error) {
			t, err := s.cfg.Orders.Task(ctx, taskID, owner)
			if err == nil && t == nil {
				err = errGone("attempt")
			}
			if err != nil {
				return notifier.State[*order.Task]{}, err
			}
			return notifier.State[*order.Task]{Value: t, Revision: t.Revision, Terminal: t.Ended()}, nil
		})
}

// WatchOrder follows an order until it ends.
func (s *Storefront) WatchOrder(ctx context.Context, orderID id.Order) (*notifier.Follower[*order.Order], error) {
	return notifier.Follow(ctx, s.cfg.Hub, orderKey(orderID),
		func(ctx context.Context) (notifier.State[*order.Order], error) {
			o, err := s.cfg.Orders.Order(ctx, orderID)
			if err == nil && o == nil {
				err = errGone("order")
			}
			if err != nil {
				return notifier.State[*order.Order]{}, err
			}
			return notifier.State[*order.Order]{Value: o, Revision: o.Version, Terminal: o.Status.Ended()}, nil
		})
}

// followedOrders bounds how many of a buyer's newest orders are followed.
const followedOrders = 50

// BuyerKey is the status bus key of all orders of a buyer. Its events carry no state,
// and have the revision BuyerRevision.
func BuyerKey(user id.User) string { return "buyer:" + user.String() }

// BuyerRevision is above the revision of any state of a buyer's orders, so that
// followers read the orders again.
const BuyerRevision = math.MaxInt64

// WatchOrders follows a buyer's newest orders until ctx ends: first a snapshot of each
// open order, then each order that is new or changed.
func (s *Storefront) WatchOrders(ctx context.Context, user id.User) (notifier.Source[*order.Order], error) {
	reads := int64(0)
	states, err := notifier.Follow(ctx, s.cfg.Hub, BuyerKey(user),
		func(ctx context.Context) (notifier.State[[]*order.Order], error) {
			page, err := s.cfg.Orders.ListByUser(ctx, user, order.ListInput{Limit: followedOrders})
			if err != nil {
				return notifier.State[[]*order.Order]{}, err
			}
			// The count of reads is the revision, because neither times nor versions order
			// the states of many orders: changes do not commit in the order of their times,
			// and orders leave the list of the newest. Reads are sequential.
			reads++
			return notifier.State[[]*order.Order]{Value: page.Orders, Revision: reads}, nil
		})
	if err != nil {
		return nil, err
	}
	return &orderChanges{pages: states, seen: map[id.Order]int64{}}, nil
}

// orderChanges are the changes of single orders between the pages of a buyer's newest
// orders.
type orderChanges struct {
	pages   notifier.Source[[]*order.Order]
	seen    map[id.Order]int64 // versions by order
	waiting []notifier.State[*order.Order]
}

// Next implements notifier.Source.
func (c *orderChanges) Next() (notifier.State[*order.Order], bool) {
	for len(c.waiting) == 0 {
		page, ok := c.pages.Next()
		if !ok {
			return notifier.State[*order.Order]{}, false
		}
		for i := len(page.Value) - 1; i >= 0; i-- { // oldest first
			o := page.Value[i]
			if o.Version <= c.seen[o.ID] {
				continue
			}
			c.seen[o.ID] = o.Version
			if !page.Snapshot || !o.Status.Ended() {
				c.waiting = append(c.waiting, notifier.State[*order.Order]{Value: o, Snapshot: page.Snapshot})
			}
		}
	}
	next := c.waiting[0]
	c.waiting = c.waiting[1:]
	return next, true
}

// Close implements notifier.Source.
func (c *orderChanges) Close() { c.pages.Close() }
