package reservation_test

import (
	"context"
	"sync"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// Buyers of two items, some of whom are refused: each call of the script appends one
// message with the orders that it took, and no other.
func TestOrdersThatAreTakenTogetherShareAMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const buyers, stock = 400, 150
		first := f.item
		f.open(stock)
		f.item = id.New[id.Item]()
		f.open(stock)
		second := f.item
		attempts := make([]reservation.Attempt, buyers)
		for i := range attempts {
			f.item = []id.Item{first, second}[i%2]
			attempts[i] = f.attempt(id.New[id.User]())
			attempts[i].OnlyItem = false
			attempts[i].Terms = []string{"1999|EUR|900", "2999|EUR|600"}[i%2]
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		accepted := map[id.Task]order.Request{}
		for i, a := range attempts {
			wg.Go(func() {
				o, err := f.gate.Reserve(context.Background(), a)
				if err != nil || o.Code != reservation.Accepted {
					if err != nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				accepted[a.Task] = order.Request{
					V: 1, Task: a.Task, User: a.User, Sale: a.Sale, Item: a.Item, Quantity: 1, Currency: "EUR",
					UnitPriceMinor: []int64{1999, 2999}[i%2], PaymentWindowSeconds: []int{900, 600}[i%2],
					IdempotencyKey: a.IdempotencyKey, Epoch: 1, SubmittedAtMs: o.At.UnixMilli(),
				}
			})
		}
		wg.Wait()
		orders := f.orders()
		if len(orders) != 2*stock || len(accepted) != 2*stock {
			t.Errorf("%d orders in messages, %d accepted", len(orders), len(accepted))
		}
		for _, r := range orders {
			if r != accepted[r.Task] {
				t.Errorf("order %+v, want %+v", r, accepted[r.Task])
			}
		}
		if n := f.client.XLen(t.Context(), f.keys.Orders(id.ShardOf(f.sale))).Val(); n == 0 || n > stock {
			t.Errorf("%d messages for %d orders", n, 2*stock)
		}
	})
}
