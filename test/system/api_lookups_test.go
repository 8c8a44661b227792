package system_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// An order and a product are found by each of their keys, by those who may see them.
func TestObjectsAreFoundByEachOfTheirKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker")
	admin := s.staff("admin@example.com", "ADMIN")
	_, erp := s.serviceToken(admin, "ORDERS_READ", "EVENTS_READ", "CATALOGUE_READ", "CATALOGUE_WRITE")
	made := s.seed(seed.Input{Users: 2, Stock: 2, PathTTL: time.Hour})
	owner, other := made.Users[0].AccessToken, made.Users[1].AccessToken
	p, err := s.place(owner, order(made.ItemID, made.Users[0].Path))
	if err != nil || p.OrderTask == nil {
		t.Fatalf("placed: %+v %v", p, err)
	}
	s.drained(made.SaleID, 1)
	var list struct {
		MyOrders struct {
			Nodes []struct{ ID, Number string }
			Edges []struct{ Node struct{ ID string } }
		}
	}
	s.ask(owner, `{ myOrders { nodes { id number } edges { node { id } } } }`, nil).into(t, &list)
	if len(list.MyOrders.Nodes) != 1 || len(list.MyOrders.Edges) != 1 || list.MyOrders.Edges[0].Node.ID != list.MyOrders.Nodes[0].ID {
		t.Fatalf("%+v", list)
	}
	id, number := list.MyOrders.Nodes[0].ID, list.MyOrders.Nodes[0].Number
	orderBy := func(token string, by map[string]any) string {
		var data struct{ Order *struct{ ID string } }
		if s.ask(token, `query($by: OrderLookup!) { order(by: $by) { id } }`, map[string]any{"by": by}).into(t, &data); data.Order == nil {
			return ""
		}
		return data.Order.ID
	}
	for key, value := range map[string]string{"id": id, "number": number, "taskId": p.OrderTask.ID} {
		for _, token := range []string{owner, admin, erp} {
			if got := orderBy(token, map[string]any{key: value}); got != id {
				t.Errorf("by %s: %q, want %s", key, got, id)
			}
		}
		if got := orderBy(other, map[string]any{key: value}); got != "" {
			t.Errorf("another buyer finds %s by %s", got, key)
		}
		if got := orderBy(owner, map[string]any{key: "no key"}); got != "" {
			t.Errorf("by an unknown %s: %s", key, got)
		}
	}
	if got := orderBy(owner, map[string]any{"number": " " + strings.ToLower(number)}); got != id {
		t.Errorf("by a typed number: %q", got)
	}
	price := map[string]any{"amount": "99.00", "currencyCode": "CNY"}
	kettle := s.mutate(erp, "upsertGoods", "goods { id }", map[string]any{"externalId": "erp:4711", "name": "Kettle", "listPrice": price}).Goods["id"]
	product := func(token string, by map[string]any) any {
		var data struct{ Product map[string]any }
		s.ask(token, `query($by: GoodsLookup!) { product(by: $by) { id } }`, map[string]any{"by": by}).into(t, &data)
		return data.Product["id"]
	}
	for key, value := range map[string]any{"id": kettle, "externalId": "erp:4711"} {
		if got := product(erp, map[string]any{key: value}); got != kettle {
			t.Errorf("the product by %s: %v, want %v", key, got, kettle)
		}
		if got := product(owner, map[string]any{key: value}); got != nil {
			t.Errorf("a buyer finds a product of no public sale by %s: %v", key, got)
		}
	}
	var catalogue struct {
		Sale struct {
			Items []struct{ Goods struct{ ID string } }
		}
	}
	s.ask("", `query($s: ID!) { sale(by: {id: $s}) { items { goods { id } } } }`, map[string]any{"s": made.SaleID}).into(t, &catalogue)
	if offered := catalogue.Sale.Items[0].Goods.ID; product("", map[string]any{"id": offered}) != offered {
		t.Errorf("a visitor does not find %s", offered)
	}
	s.eventOf(erp, number)
}

// eventOf checks the typed data of the event of an order.
func (s *site) eventOf(token, number string) {
	s.t.Helper()
	type data struct {
		Typename, Number, Status string
		Total                    struct {
			Amount, CurrencyCode string
			FractionDigits       int
		}
		Metadata []any
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		var events struct {
			Events struct{ Nodes []struct{ Data data } }
		}
		s.ask(token, `{ events(kinds: [ORDER_PLACED]) { nodes { data { typename: __typename ... on OrderEventData {
			number status total { amount currencyCode fractionDigits } metadata { key } } } } } }`, nil).into(s.t, &events)
		return slices.ContainsFunc(events.Events.Nodes, func(n struct{ Data data }) bool {
			d := n.Data
			return d.Typename == "OrderEventData" && d.Number == number && d.Status == "PENDING_PAYMENT" && d.Total.FractionDigits == 2 &&
				strings.Contains(d.Total.Amount, ".") && d.Metadata != nil
		})
	}, "the event has the order, typed")
}

// Another system prepares a sale with its own ids alone.
func TestASaleNamesItsProductsByTheirIdsInAnotherSystem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api")
	_, erp := s.serviceToken(s.staff("admin@example.com", "ADMIN"), "CATALOGUE_READ", "CATALOGUE_WRITE", "SALES_READ", "SALES_WRITE")
	price := map[string]any{"amount": "99.00", "currencyCode": "CNY"}
	kettle := s.mutate(erp, "upsertGoods", "goods { id }", map[string]any{"externalId": "erp:4711", "name": "Kettle", "listPrice": price}).Goods["id"]
	upsert := func(item map[string]any) (goods any, why, at string) {
		item["price"], item["stock"] = price, 5
		p := s.mutate(erp, "upsertSale", "sale { items { goods { id } } }", map[string]any{
			"externalReference": "drop-1", "title": "Drop", "startsAt": time.Now().Add(time.Hour), "endsAt": time.Now().Add(2 * time.Hour), "items": []any{item},
		})
		if len(p.UserErrors.UserErrors) > 0 {
			return nil, p.why(), strings.Join(p.UserErrors.UserErrors[0].Path, ".")
		}
		return p.Sale["items"].([]any)[0].(map[string]any)["goods"].(map[string]any)["id"], "", ""
	}
	for range 2 { // created, then unchanged
		if goods, why, at := upsert(map[string]any{"goodsExternalId": "erp:4711"}); goods != kettle || why != "" {
			t.Fatalf("goods %v, want %v; %s %s", goods, kettle, why, at)
		}
	}
	for name, c := range map[string]struct {
		item    map[string]any
		why, at string
	}{
		"unknown": {map[string]any{"goodsExternalId": "erp:1"}, "NOT_FOUND", "input.items.0.goodsExternalId"},
		"both":    {map[string]any{"goodsExternalId": "erp:4711", "goodsId": kettle}, "INVALID_INPUT", "input.items.0.goodsId"},
		"neither": {map[string]any{}, "INVALID_INPUT", "input.items.0.goodsId"},
	} {
		if _, why, at := upsert(c.item); why != c.why || at != c.at {
			t.Errorf("%s: %s at %s, want %s at %s", name, why, at, c.why, c.at)
		}
	}
}
