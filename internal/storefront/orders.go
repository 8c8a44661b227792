package storefront

import (
	"context"
	"math"

	"github.com/google/uuid"

	"seckill/internal/notifier"
	"seckill/internal/order"
)

// followedOrders bounds how many of a buyer's newest orders are followed.
const followedOrders = 50

// BuyerKey is the status bus key of all orders of a buyer. Its events carry no state,
// and have the revision BuyerRevision.
func BuyerKey(user uuid.UUID) string { return "buyer:" + user.String() }

// BuyerRevision is above the revision of any state of a buyer's orders, so that
// followers read the orders again.
const BuyerRevision = math.MaxInt64

// OrderChange is an order of a followed buyer: an open order at the start, or a changed
// one.
type OrderChange struct {
	Order    *order.Order
	Snapshot bool
}

// WatchOrders follows a buyer's newest orders until ctx ends: first a snapshot of each
// open order, then each order that is new or changed.
func (s *Storefront) WatchOrders(ctx context.Context, user uuid.UUID) (<-chan OrderChange, error) {
	reads := int64(0)
	states, err := notifier.Follow(ctx, s.hub, BuyerKey(user), func(ctx context.Context) (notifier.State[[]*order.Order], error) {
		page, err := s.orders.ListByUser(ctx, user, order.ListInput{Limit: followedOrders})
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
	out := make(chan OrderChange)
	go func() {
		defer close(out)
		seen := map[uuid.UUID]int64{}
		for state := range states.States() {
			for i := len(state.Value) - 1; i >= 0; i-- { // oldest first
				o := state.Value[i]
				if o.Version <= seen[o.ID] {
					continue
				}
				seen[o.ID] = o.Version
				if state.Snapshot && o.Status.Ended() {
					continue
				}
				select {
				case out <- OrderChange{Order: o, Snapshot: state.Snapshot}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}
