package order_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"seckill/ent"
	"seckill/ent/webhookevent"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderfacts"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// subscribe adds an endpoint that receives all events.
func (e *env) subscribe() {
	e.t.Helper()
	e.must(e.db.WithTx(e.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.WebhookEndpoint.Create().SetID(id.New[id.Endpoint]()).SetURL("https://shop.example.com/").SetSecret([]byte("sealed")).
			SetCreatedAt(opening).SetUpdatedAt(opening).Exec(ctx)
	}))
}

// event is the content of an event of an order or item.
type event struct {
	Type webhook.Kind
	Data struct {
		OrderID, ItemID, Status string
		Type                    order.Kind
		UnitPrice               struct{ Amount, CurrencyCode string }
		Revision                int64
		Available               *int
	}
}

func (e *env) events() (events []event) {
	e.t.Helper()
	rows, err := e.db.Ent.WebhookEvent.Query().Order(ent.Asc(webhookevent.FieldID)).All(e.t.Context())
	e.must(err)
	for _, row := range rows {
		var one event
		e.must(json.Unmarshal(row.Payload, &one))
		if row.Subject != one.Data.OrderID && row.Subject != one.Data.ItemID {
			e.t.Errorf("the subject of %s is %s", row.Payload, row.Subject)
		}
		events = append(events, one)
	}
	return events
}

// webhooks returns what writes events for other systems.
func (e *env) webhooks() order.Facts {
	return orderfacts.Outbox{Webhooks: webhook.NewOutbox(e.clock, nil)}
}

func (e *env) writerWithEvents() *order.Writer {
	return order.NewWriter(order.WriterConfig{DB: e.db, Clock: e.clock, Facts: e.webhooks(), Timeout: testenv.Wait})
}

func TestABatchOfOrdersWritesItsEvents(t *testing.T) {
	onBoth(t, stock{units: 20, limit: 1}, func(t *testing.T, e *env) {
		e.subscribe()
		w := e.writerWithEvents()
		requests := e.requests(18)
		for _, r := range w.Write(t.Context(), requests...) {
			e.must(r.Err)
		}
		placed := map[string]bool{}
		low := 0
		for _, got := range e.events() {
			switch got.Type {
			case webhook.OrderPlaced:
				placed[got.Data.OrderID] = true
				if got.Data.Status != "PENDING_PAYMENT" || got.Data.UnitPrice.Amount != "19.99" || got.Data.UnitPrice.CurrencyCode != "EUR" || got.Data.Revision != 1 || got.Data.Type != order.Seckill {
					t.Errorf("the event of a new order is %+v", got)
				}
			case webhook.StockLow:
				low++
				if *got.Data.Available != 2 {
					t.Errorf("low stock: %+v", got)
				}
			default:
				t.Errorf("unexpected %+v", got)
			}
		}
		for _, r := range requests {
			if !placed[id.Order(r.Task).Public()] {
				t.Errorf("order %s has no event", r.Task)
			}
		}
		if len(placed) != 18 || low != 1 {
			t.Errorf("events of %d orders and %d of low stock, want 18 and 1", len(placed), low)
		}
		// A repeated delivery writes no order and no event.
		for _, r := range w.Write(t.Context(), requests[:3]...) {
			e.must(r.Err)
		}
		if n := len(e.events()); n != 19 {
			t.Errorf("%d events after a repeated delivery, want 19", n)
		}
	})
}

func TestExpiredOrdersWriteTheirEvents(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		e.subscribe()
		w := e.writer(nil)
		orders := map[string]*order.Order{}
		for _, r := range e.requests(3) {
			o := e.write(w, r).Order
			orders[o.ID.Public()] = o
		}
		expired, err := order.Expire(t.Context(), e.db, e.webhooks(), slices.Collect(maps.Values(orders)), e.clock.Now())
		e.must(err)
		for _, got := range e.events() {
			if got.Type != webhook.OrderExpired || got.Data.Status != "EXPIRED" || got.Data.Revision != 2 || orders[got.Data.OrderID] == nil {
				t.Errorf("unexpected %+v", got)
			}
			delete(orders, got.Data.OrderID)
		}
		if len(expired) != 3 || len(orders) != 0 {
			t.Errorf("%d orders expired, %d without an event", len(expired), len(orders))
		}
	})
}

func TestEveryMoveThatConcernsOthersWritesItsEvent(t *testing.T) {
	onBoth(t, stock{units: 5, limit: 1}, func(t *testing.T, e *env) {
		e.subscribe()
		outbox := e.webhooks()
		o := e.write(e.writer(nil), e.request()).Order
		for _, to := range []order.Status{order.Paid, order.Refunding, order.Paid, order.Refunding, order.Refunded} {
			var err error
			o, err = e.try(order.Move{Order: o, To: to, At: e.clock.Now(), Entry: entryOf(to), Facts: outbox})
			e.must(err)
		}
		var kinds []string
		for _, got := range e.events() {
			kinds = append(kinds, string(got.Type))
		}
		if got := strings.Join(kinds, " "); got != "order.paid order.refunded" {
			t.Errorf("events %q, want one of the payment and one of the refund", got)
		}
	})
}
