package system_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// limited is a live sale of five items with limits, without captchas.
type limited struct {
	*site
	sale  string
	items []string
}

// sellFive opens a sale of five items: at most two of each and three in all. The last one
// has a single unit.
func (s *site) sellFive() limited {
	s.t.Helper()
	operator, admin := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN")
	price := map[string]any{"amount": "49.00", "currencyCode": "CNY"}
	var items []any
	for i := range 5 {
		goods := s.mutate(operator, "createGoods", "goods { id }", map[string]any{"name": fmt.Sprint("Kettle ", i), "listPrice": price})
		stock, limit := 10, 2
		if i == 4 {
			stock, limit = 1, 1
		}
		items = append(items, map[string]any{"goodsId": goods.Goods["id"], "price": price, "stock": stock, "purchaseLimit": limit})
	}
	now := time.Now().UTC()
	draft := s.mutate(operator, "createSale", saleParts, map[string]any{
		"title": "Autumn", "startsAt": now.Add(30 * time.Minute).Format(time.RFC3339Nano), "endsAt": now.Add(time.Hour).Format(time.RFC3339Nano),
		"items": items, "purchaseLimit": 3,
	})
	if draft.why() != "" {
		s.t.Fatalf("createSale: %+v", draft.UserErrors)
	}
	l := limited{site: s, sale: draft.Sale["id"].(string)}
	for _, item := range draft.Sale["items"].([]any) {
		l.items = append(l.items, item.(map[string]any)["id"].(string))
	}
	s.onSale(operator, "submitSale", l.sale, "", "PENDING_APPROVAL")
	s.onSale(admin, "approveSale", l.sale, "fine", "APPROVED")
	s.opensIn(operator, l.sale, time.Second)
	s.onSale(operator, "preheatSale", l.sale, "", "PREHEATED LIVE")
	if p := s.byTwo(operator, "setSaleSwitches", saleParts, map[string]any{"saleId": l.sale, "captchaRequired": false}); p.why() != "" {
		s.t.Fatalf("setSaleSwitches: %+v", p.UserErrors)
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		var data struct {
			Sale struct {
				Status   string
				Switches struct{ CaptchaRequired bool }
			}
		}
		s.ask(operator, `query($id: ID!) { sale(by: {id: $id}) { status switches { captchaRequired } } }`, map[string]any{"id": l.sale}).into(s.t, &data)
		return data.Sale.Status == "LIVE" && !data.Sale.Switches.CaptchaRequired
	}, "the sale opens, without captchas")
	return l
}

// refusal is one of the userErrors.
type refusal struct {
	Typename                string `json:"__typename"`
	Code, Message           string
	Limit, Remaining        int
	UnitsLeft               *int
	WholeSale, WaitlistOpen bool
	Order, OrderTask        *struct{ ID string }
}

// buyOutcome is the answer of issueSeckillPath or placeOrder.
type buyOutcome struct {
	Path       *struct{ Token string }
	OrderTask  *struct{ ID string }
	UserErrors []refusal
}

const refusals = ` userErrors { __typename code message
  ... on PurchaseLimitError { limit remaining wholeSale }
  ... on AlreadyOrderedError { order { id } orderTask { id } }
  ... on SoldOutError { unitsLeft waitlistOpen } }`

// buy takes a path token and places an order. It returns the id of the task, or the first
// refusal.
func (l limited) buy(token string, item, quantity int) (task string, why refusal) {
	l.t.Helper()
	var data struct{ Out buyOutcome }
	out := l.ask(token, `mutation($i: ID!) { out: issueSeckillPath(input: {itemId: $i, captcha: {challengeId: "none", answer: "none"}}) { path { token }`+refusals+` } }`,
		map[string]any{"i": l.items[item]})
	if out.code() != "" {
		l.t.Fatalf("issueSeckillPath: %+v", out.Errors)
	}
	out.into(l.t, &data)
	if data.Out.Path == nil {
		return "", data.Out.UserErrors[0]
	}
	in := order(l.items[item], data.Out.Path.Token)
	in["quantity"] = quantity
	data.Out = buyOutcome{}
	l.ask(token, `mutation($in: PlaceOrderInput!) { out: placeOrder(input: $in) { orderTask { id }`+refusals+` } }`, map[string]any{"in": in}).into(l.t, &data)
	if len(data.Out.UserErrors) > 0 {
		return "", data.Out.UserErrors[0]
	}
	return data.Out.OrderTask.ID, refusal{}
}

// room returns what the sale says the next order of each item, and of any item, may have,
// and the number of items with an order.
func (l limited) room(token string) (rooms []int, most, orders int) {
	l.t.Helper()
	var data struct {
		Sale struct {
			Viewer struct {
				RemainingLimit int
				Items          []struct {
					RemainingLimit   int
					Order, OrderTask *struct{ ID string }
				}
			}
		}
	}
	l.ask(token, `query($i: ID!) { sale(by: {id: $i}) { viewer { remainingLimit items { remainingLimit order { id } orderTask { id } } } } }`,
		map[string]any{"i": l.sale}).into(l.t, &data)
	for _, item := range data.Sale.Viewer.Items {
		rooms = append(rooms, item.RemainingLimit)
		if item.Order != nil || item.OrderTask != nil {
			orders++
		}
	}
	return rooms, data.Sale.Viewer.RemainingLimit, orders
}

// unpaid returns the items of the buyer's orders that wait for payment, newest first.
func (l limited) unpaid(token string) (items []string) {
	l.t.Helper()
	var data struct {
		MyOrders struct {
			Edges []struct {
				Node struct{ Item struct{ ID string } }
			}
		}
	}
	l.ask(token, `{ myOrders(filter: {statuses: [PENDING_PAYMENT]}) { edges { node { item { id } } } } }`, nil).into(l.t, &data)
	for _, edge := range data.MyOrders.Edges {
		items = append(items, edge.Node.Item.ID)
	}
	return items
}

func TestPurchaseLimitsOfItemAndSaleMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.PreloadEvery = 200 * time.Millisecond })
	s.start("api", "worker", "scheduler")
	l := s.sellFive()
	buyer := s.staff("buyer@example.com", "CUSTOMER")
	rooms := func(want []int, most, orders int) {
		t.Helper()
		if got, limit, n := l.room(buyer); !reflect.DeepEqual(got, want) || limit != most || n != orders {
			t.Errorf("the sale offers %v, at most %d, with %d orders; want %v, %d, %d", got, limit, n, want, most, orders)
		}
	}
	refused := func(item, quantity int, want refusal) refusal {
		t.Helper()
		task, why := l.buy(buyer, item, quantity)
		got := why
		got.Order, got.OrderTask = nil, nil
		if got != want || task != "" {
			t.Errorf("%d of item %d: task %q, %+v; want %+v", quantity, item, task, why, want)
		}
		return why
	}
	bought := func(item, quantity int) string {
		t.Helper()
		task, why := l.buy(buyer, item, quantity)
		if task == "" {
			t.Fatalf("%d of item %d: %+v", quantity, item, why)
		}
		return task
	}
	var data struct {
		Sale struct {
			PurchaseLimit *int
			Items         []struct{ PurchaseLimit int }
		}
	}
	l.ask("", `query($i: ID!) { sale(by: {id: $i}) { purchaseLimit items { purchaseLimit } } }`, map[string]any{"i": l.sale}).into(t, &data)
	if data.Sale.PurchaseLimit == nil || *data.Sale.PurchaseLimit != 3 || data.Sale.Items[0].PurchaseLimit != 2 || data.Sale.Items[4].PurchaseLimit != 1 {
		t.Errorf("limits: %+v", data.Sale)
	}

	rooms([]int{2, 2, 2, 2, 1}, 2, 0)
	refused(0, 3, refusal{
		Typename: "PurchaseLimitError", Code: "PURCHASE_LIMIT_REACHED", Limit: 2, Remaining: 2, Message: "One buyer may have at most 2 of this item.",
	})
	first := bought(0, 1)
	rooms([]int{0, 2, 2, 2, 1}, 2, 1)
	s.drained(l.sale, 1)
	again := refused(0, 1, refusal{ // although one of the two units of the limit is left
		Typename: "AlreadyOrderedError", Code: "ALREADY_ORDERED", Message: "You already have an order for this item. Each buyer may have one at a time.",
	})
	if again.OrderTask == nil || again.OrderTask.ID != first || again.Order == nil {
		t.Errorf("the refusal of a second order comes with %+v and %+v, want those of %s", again.OrderTask, again.Order, first)
	}
	bought(1, 1)
	rooms([]int{0, 0, 1, 1, 1}, 1, 2)
	refused(2, 2, refusal{
		Typename: "PurchaseLimitError", Code: "PURCHASE_LIMIT_REACHED", Limit: 3, Remaining: 1, WholeSale: true,
		Message: "One buyer may have at most 3 in this sale; you may buy 1 more.",
	})
	bought(2, 1)
	rooms([]int{0, 0, 0, 0, 0}, 0, 3)
	used := refusal{
		Typename: "PurchaseLimitError", Code: "PURCHASE_LIMIT_REACHED", Limit: 3, WholeSale: true,
		Message: "One buyer may have at most 3 in this sale, and you have them.",
	}
	refused(3, 1, used)
	s.drained(l.sale, 3)
	// In any order: the shared clock may be corrected by more than the orders are apart.
	if got, want := slices.Sorted(slices.Values(l.unpaid(buyer))), slices.Sorted(slices.Values(l.items[:3])); !slices.Equal(got, want) {
		t.Errorf("the buyer's unpaid orders are of %v, want %v", got, want)
	}

	// A rebuilt gate knows the units of each buyer.
	conn, err := redisconn.Open(t.Context(), s.cfg.RedisURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	keys, saleID := reservation.Keys{Prefix: s.cfg.RedisPrefix}, parsed[id.Sale](t, id.KindSale, l.sale)
	units := keys.Units(id.ShardOf(saleID), saleID)
	if err := conn.Cmd.Del(context.Background(), units, keys.Item(id.ShardOf(saleID), parsed[id.Item](t, id.KindItem, l.items[3]))).Err(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		_, why := l.buy(buyer, 3, 1)
		return why == used
	}, "the gates are rebuilt and the limit is used up")

	s.cancel(buyer, first)
	testenv.Eventually(t, testenv.Wait, func() bool {
		_, most, _ := l.room(buyer)
		return most == 1
	}, "the unit of a cancelled order may be bought again")
	bought(3, 1)
	refused(0, 1, used)
	s.drained(l.sale, 3) // live ones
}

func TestFewerLeftThanAskedForIsNotSoldOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.PreloadEvery = 200 * time.Millisecond })
	s.start("api", "worker", "scheduler")
	l := s.sellFive()
	for i := range 4 { // eight of ten units
		if task, why := l.buy(s.staff(fmt.Sprintf("buyer%d@example.com", i), "CUSTOMER"), 0, 2); task == "" {
			t.Fatalf("%+v", why)
		}
	}
	if task, why := l.buy(s.staff("one@example.com", "CUSTOMER"), 0, 1); task == "" {
		t.Fatalf("%+v", why)
	}
	if _, why := l.buy(s.staff("two@example.com", "CUSTOMER"), 0, 2); why.Code != "TOO_FEW_LEFT" || why.UnitsLeft == nil || *why.UnitsLeft != 1 {
		t.Errorf("two of one unit: %+v", why)
	}
}

// parsed returns the UUID of a public id.
func parsed[T ~[16]byte](t testing.TB, kind id.Kind, public string) T {
	t.Helper()
	u, err := id.Parse(kind, public)
	if err != nil {
		t.Fatal(err)
	}
	return T(u)
}
