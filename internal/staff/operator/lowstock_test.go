package operator_test

import (
	"testing"

	"seckill/ent/webhookevent"
	"seckill/internal/buy/sale"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

func TestUnitsTakenOffSaleWriteALowStockEvent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		e.must(e.db.Ent.WebhookEndpoint.Create().SetID(id.New[id.Endpoint]()).SetURL("https://erp.example.com/").
			SetSecret([]byte("sealed")).SetCreatedAt(e.clock.Now()).SetUpdatedAt(e.clock.Now()).Exec(t.Context()))
		v := e.put(sale.Live, 40)
		item := v.Items[0].ID
		e.must(e.db.Ent.SaleItem.UpdateOneID(item).SetAvailable(10).SetSold(30).Exec(t.Context()))
		low := func() int {
			n, err := e.db.Ent.WebhookEvent.Query().Where(webhookevent.Kind(string(webhook.StockLow))).Count(t.Context())
			e.must(err)
			return n
		}
		for _, step := range []struct{ units, want int }{{-2, 0}, {-5, 1}, {-1, 1}, {2, 1}} { // 8 of 38, 3 of 33, 2 of 32, 4 of 34
			if act, refusal := e.adjust(v, step.units); refusal != nil || act.State != operator.Done {
				t.Fatalf("%+v, %v", act, refusal)
			}
			if n := low(); n != step.want {
				t.Errorf("%d events after %d units, want %d", n, step.units, step.want)
			}
		}
	})
}
