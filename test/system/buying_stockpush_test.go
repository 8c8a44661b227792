package system_test

import (
	"encoding/json"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
)

// stockEvent is the payload of an event of saleStock or saleStatus: one of the two.
type stockEvent struct {
	Kind  string
	Items []stockItem
	Sale  struct{ Items []stockItem }
}

type stockItem struct {
	Stock struct {
		Level     string
		Remaining *int
	}
}

// stock reads a stream to its next event.
func (k *socket) stock() stockEvent {
	k.t.Helper()
	f := k.read()
	var payload struct{ Data map[string]stockEvent }
	if err := json.Unmarshal(f.Payload, &payload); err != nil || f.Type != "next" {
		k.t.Fatalf("%s %s: %v", f.Type, f.Payload, err)
	}
	for _, e := range payload.Data {
		return e
	}
	return stockEvent{}
}

// A crowd follows the stock of a sale; its events are marshalled once for all who may see
// the same, and not for those who may see more.
func TestACrowdReceivesWhatEachMaySeeOfTheStock(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.seed(seed.Input{Users: 12, Stock: 11, PathTTL: 10 * time.Minute})
	saleID, err := id.ParseSale(made.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.database().Ent.Sale.UpdateOneID(saleID).SetHideExactStock(true).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start("api", "worker", "scheduler")
	s.awaitSale(made.SaleID)
	const items = `items { id price { amount currencyCode } goods { name } stock { level remaining revision total updatedAt } }`
	documents := []string{
		`subscription($id: ID!) { saleStock(saleId: $id) { kind serverTime ` + items + ` } }`,
		`subscription($id: ID!) { saleStatus(saleId: $id) { kind serverTime sale { id title phase revision ` + items + ` } } }`,
	}
	operator := s.staff("stock-operator@example.com", "OPERATOR")
	type follower struct {
		*socket
		operator bool
	}
	var crowd []follower
	for _, document := range documents {
		for n := range 11 {
			k := follower{s.dial(made.Users[n].AccessToken), false}
			if n == 10 {
				k = follower{s.dial(operator), true}
			}
			k.send(frame{ID: "s", Type: "subscribe", Payload: subscription(t, document, made.SaleID)})
			if e := k.stock(); e.Kind != "SNAPSHOT" {
				t.Fatalf("first event %+v", e)
			}
			crowd = append(crowd, k)
		}
	}
	buy := func(buyers ...seed.LoadUser) {
		t.Helper()
		for _, u := range buyers {
			p, err := s.place(u.AccessToken, order(made.ItemID, u.Path))
			if err != nil || p.why() != "" {
				t.Fatalf("placed: %+v %v", p, err)
			}
		}
	}
	buy(made.Users[0])
	if e := crowd[10].stock(); len(e.Items) != 1 || *e.Items[0].Stock.Remaining != 10 {
		t.Fatalf("the operator's first event %+v", e)
	}
	buy(made.Users[1:11]...) // sold out: both streams report it
	for i, k := range crowd {
		for n := 0; ; n++ {
			e := k.stock()
			seen := append(e.Items, e.Sale.Items...)
			if e.Kind != "UPDATE" || len(seen) != 1 {
				t.Fatalf("event %+v", e)
			}
			stock := seen[0].Stock
			if (stock.Remaining != nil) != k.operator {
				t.Fatalf("operator %v sees %v of a hidden stock", k.operator, stock.Remaining)
			}
			if i < 10 && n == 0 && stock.Level == "PLENTY" { // the event would show that a unit was sold
				t.Fatalf("an event without a change of the level: %+v", e)
			}
			if stock.Level == "SOLD_OUT" {
				break
			}
		}
	}
}
