package queue_test

import (
	"testing"

	"github.com/google/uuid"

	"seckill/internal/buy/admission/queue"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// The buyers entered both rooms when they could still buy. Admitting them would spend a
// permit on an attempt that is refused.
func TestWhoCannotBuyAnyMoreLeavesTheLineWithTheReason(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.set("salelimit", 2, "stock", 1)
		f.rules.Store(&queue.Rules{PerMille: 1000, Inflow: 2})
		limited, holding, within := f.enter(id.New[id.User]()), f.enter(id.New[id.User]()), f.enter(id.New[id.User]())
		f.must(f.redis.HSet(t.Context(), f.keys.Units(f.shard, f.sale),
			"epoch", 7, limited.User.String(), 2, within.User.String(), 1).Err()) // of other items of the sale
		f.must(f.redis.HSet(t.Context(), f.keys.Reservations(f.shard, f.item), holding.User.String(), id.New[uuid.UUID]().String()+"|1|0|k").Err())
		if counts := f.step(); counts["admitted"] != 1 || counts["freed"] != 2 {
			t.Errorf("counts %v, want one buyer admitted and two places freed", counts)
		}
		for name, c := range map[string]struct {
			ticket *queue.Ticket
			status queue.Status
			why    fault.Reason
		}{
			"at the limit of the sale": {limited, queue.Left, fault.PurchaseLimitReached},
			"with an order":            {holding, queue.Left, fault.AlreadyOrdered},
			"within the limit":         {within, queue.Admitted, ""},
		} {
			if got := f.ticket(c.ticket); got.Status != c.status || got.Ended != c.why {
				t.Errorf("%s: %s, %q", name, got.Status, got.Ended)
			}
		}
		if _, err := f.queue.Leave(t.Context(), within.ID, within.User); err != nil {
			t.Fatal(err)
		}
		if got := f.ticket(within); got.Status != queue.Left || got.Ended != "" {
			t.Errorf("left by the buyer: %+v", got)
		}
	})
}
