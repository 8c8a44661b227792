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

// BuyerKey names all orders of a buyer on the status bus. Its events carry no state,
// and have the revision BuyerRevision.
func BuyerKey(user uuid.UUID) string { return "buyer:" + user.String() }

// BuyerRevision is above any state of a buyer's orders: whoever follows them reads
// again.
const BuyerRevision = math.MaxInt64

// OrderChange is an order of a followed buyer: an open one at the start, or one
// that has changed.
type OrderChange struct {
	Order    *order.Order
	Snapshot bool
}

// WatchOrders follows a buyer's newest orders until ctx ends: a snapshot of each
// open one, then each that is new or changed.
func (s *Storefront) WatchOrders(ctx context.Context, user uuid.UUID) (<-chan OrderChange, error) {
	reads := int64(0)
	states, err := notifier.Follow(ctx, s.hub, BuyerKey(user), func(ctx context.Context) (notifier.State[[]*order.Order], error) {
		page, err := s.orders.ListByUser(ctx, user, order.ListInput{Limit: followedOrders})
		if err != nil {
			return notifier.State[[]*order.Order]{}, err
		}
		// Neither times nor versions number many orders: changes commit in another order
		// than their times say, and orders leave the newest ones. Reads follow each other.
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
		for state := range states {
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
