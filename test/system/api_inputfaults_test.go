package system_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
)

// refused is a refusal of an input with its message.
type refused struct {
	Code, Message, Rule string
	Path                []string
}

// faults runs a mutation with one input and returns its refusals by path, joined by dots.
func (s *site) faults(token, field string, input map[string]any) map[string]refused {
	s.t.Helper()
	name := strings.ToUpper(field[:1]) + field[1:] + "Input!"
	out := s.ask(token, "mutation M($in: "+name+") { payload: "+field+"(input: $in) { userErrors { code message path ... on InputError { rule } } } }",
		map[string]any{"in": input})
	var data struct {
		Payload struct{ UserErrors []refused }
	}
	if err := json.Unmarshal(out.Data, &data); err != nil || out.code() != "" {
		s.t.Fatalf("%s: %s %+v %v", field, out.Data, out.Errors, err)
	}
	found := map[string]refused{}
	for _, r := range data.Payload.UserErrors {
		found[strings.Join(r.Path[1:], ".")] = r
	}
	return found
}

// wantFaults checks the messages by path.
func wantFaults(t *testing.T, got map[string]refused, want map[string]string) {
	t.Helper()
	for path, message := range want {
		if got[path].Message != message {
			t.Errorf("%s: %q, want %q", path, got[path].Message, message)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d faults, want %d: %+v", len(got), len(want), got)
	}
}

func TestAllFaultsOfAnInputAreReturnedAtOnceWithFieldAndBound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	price := func(amount string) map[string]any { return map[string]any{"amount": amount, "currencyCode": "CNY"} }
	goods := s.mutate(ann, "createGoods", "goods { id }", map[string]any{"name": "Kettle", "listPrice": price("49.00")}).Goods["id"]
	at := func(d time.Duration) string { return time.Now().UTC().Add(d).Format(time.RFC3339Nano) }
	bad := map[string]any{
		"title": "", "startsAt": at(-2 * time.Hour), "endsAt": at(-3 * time.Hour), "paymentWindowSeconds": 10, "slug": "No Slug",
		"items": []any{
			map[string]any{"goodsId": goods, "price": price("49.01"), "stock": 3, "purchaseLimit": 4},
			map[string]any{"goodsId": id.New[id.Goods]().Public(), "price": price("0.00"), "stock": 0},
		},
	}
	want := map[string]string{
		"title": "Title: must not be empty.", "slug": "Slug: only a–z, 0–9 and single hyphens, at most 64 characters.",
		"startsAt": "Start: must be in the future.", "endsAt": "End: must be after the start.",
		"paymentWindowSeconds": "Seconds to pay: at least 30.",
		"items.0.price":        "Price of item 1: at most 49.00.", "items.0.purchaseLimit": "Purchase limit of item 1: at most 3.",
		"items.1.goodsId": "There is nothing with that id.", "items.1.price": "Price of item 2: must be more than zero.", "items.1.stock": "Stock of item 2: at least 1.",
	}
	wantFaults(t, s.faults(ann, "createSale", bad), want)
	bad["saleId"] = s.draft(ann)
	wantFaults(t, s.faults(ann, "updateSale", bad), want)

	good := map[string]any{
		"title": "Autumn", "startsAt": at(time.Hour), "endsAt": at(2 * time.Hour), "purchaseLimit": 5,
		"items": []any{map[string]any{"goodsId": goods, "price": price("49.00"), "stock": 4}},
	}
	wantFaults(t, s.faults(ann, "createSale", good), map[string]string{"purchaseLimit": "Purchase limit: at most 4."})
	good["purchaseLimit"] = 4
	wantFaults(t, s.faults(ann, "createSale", good), nil)

	wantFaults(t, s.faults(ann, "createGoods", map[string]any{"name": " ", "description": strings.Repeat("x", 10_001), "imageAlt": strings.Repeat("x", 201), "listPrice": price("0.00")}), map[string]string{
		"imageAlt": "Alternative text: at most 200 characters.", "name": "Name: must not be empty.", "description": "Description: at most 10000 characters.", "listPrice": "List price: must be more than zero.",
	})
	wantFaults(t, s.faults("", "register", map[string]any{"account": "unnamed", "password": "short", "displayName": "", "captcha": map[string]any{"challengeId": "x", "answer": "1"}}), map[string]string{
		"account": "Account: must be an e-mail address, or a phone number with country code.", "password": "Password: at least 10 characters.",
		"displayName": "Name: must not be empty.",
	})
}

// Rules of the schema and of the domains are broken in one input of each mutation.
func TestEachMutationReturnsAllFaultsOfItsInputAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, withPush(t))
	s.start("api", "worker", "scheduler")
	ann, admin := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	buyer := made.Users[0].AccessToken
	orderID := "ord_" + strings.TrimPrefix(s.bought(buyer, made), "tsk_")
	s.drained(made.SaleID, 1)
	draft := s.draft(ann)
	long := strings.Repeat("x", 10_001)
	past := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339Nano)
	price := map[string]any{"amount": "0.00", "currencyCode": "CNY"}
	address := map[string]any{"name": long, "phone": "call me", "country": "1x", "city": "", "street": "a\u202eb", "postalCode": "?"}
	addressFaults := "name phone country city street postalCode"
	ofOrder := func(more map[string]any) map[string]any {
		in := map[string]any{"orderId": orderID}
		maps.Copy(in, more)
		return in
	}
	for _, c := range []struct {
		token, field string
		input        map[string]any
		want         string
	}{
		{buyer, "saveAddress", address, addressFaults},
		{buyer, "correctRecipient", ofOrder(address), addressFaults},
		{buyer, "requestRefund", ofOrder(map[string]any{"quantity": 9, "reason": "", "idempotencyKey": "short"}), "quantity reason idempotencyKey"},
		{buyer, "subscribePush", map[string]any{"endpoint": "https://example.com", "p256dh": "x", "auth": "x", "label": long}, "endpoint p256dh auth label"},
		{ann, "setFulfilment", ofOrder(map[string]any{"state": "SHIPPED", "carrier": long, "trackingUrl": "http://example.com"}), "carrier trackingUrl"},
		{ann, "voidOrder", ofOrder(map[string]any{"quantity": 9, "note": ""}), "quantity note"},
		{ann, "adjustStock", map[string]any{"itemId": made.ItemID, "units": 0, "note": " ", "idempotencyKey": "short"}, "units note idempotencyKey"},
		{ann, "extendSale", map[string]any{"saleId": made.SaleID, "endsAt": past, "note": ""}, "endsAt note"},
		{
			ann, "setSaleSwitches", map[string]any{
				"saleId": draft, "permitRatio": -1, "limitPerSecond": -1, "proofOfWorkMax": 1, "inflowPerSecond": -1, "limitBurst": -1, "note": long,
			}, "permitRatio limitPerSecond proofOfWorkMax inflowPerSecond limitBurst note",
		},
		{ann, "scheduleSale", map[string]any{"saleId": draft, "startsAt": past, "endsAt": past, "preheatAt": "2100-01-01T00:00:00Z", "note": long}, "startsAt endsAt preheatAt note"},
		{ann, "duplicateSale", map[string]any{"saleId": draft, "startsAt": past, "endsAt": past, "title": ""}, "startsAt endsAt title"},
		{ann, "createSaleFromTemplate", map[string]any{"templateId": "tpl_1", "startsAt": past, "endsAt": past, "title": ""}, "startsAt endsAt title"},
		{ann, "upsertGoods", map[string]any{"externalId": "", "name": "", "listPrice": price, "description": long, "imageAlt": long}, "externalId name listPrice description imageAlt"},
		{
			ann, "upsertSale", map[string]any{"externalReference": "1", "title": "", "rules": long, "startsAt": past, "endsAt": past, "items": []any{}, "slug": "No Slug"},
			"title rules startsAt endsAt items slug",
		},
		{admin, "createServiceToken", map[string]any{"name": long, "scopes": []any{}, "expiresInDays": 0}, "name scopes expiresInDays"},
		{admin, "createWebhookEndpoint", map[string]any{"url": "ftp://example.com", "description": long}, "url description"},
	} {
		got := s.faults(c.token, c.field, c.input)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if paths := slices.Sorted(maps.Keys(got)); !slices.Equal(paths, want) {
			t.Errorf("%s: faults of %v, want %v", c.field, paths, want)
		}
		for path, r := range got {
			if r.Code != "INVALID_INPUT" || r.Rule == "" || r.Message == "" {
				t.Errorf("%s: %s has %+v", c.field, path, r)
			}
		}
	}
}
