package system_test

import (
	"testing"
	"time"

	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// mainButton is the button of a sale for one user, and why it is disabled.
type mainButton struct {
	Action         string
	DisabledReason *string
}

func (l limited) button(token string) mainButton {
	l.t.Helper()
	var data struct{ Sale struct{ Viewer mainButton } }
	l.ask(token, `query($i: ID!) { sale(by: {id: $i}) { viewer { action disabledReason } } }`, map[string]any{"i": l.sale}).into(l.t, &data)
	return data.Sale.Viewer
}

func TestStaffDoNotBuyInSalesThatTheyPreparedOrApproved(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.PreloadEvery = 200 * time.Millisecond })
	s.start("api", "worker", "scheduler")
	l := s.sellFive()
	for who, account := range map[string]string{"who prepared it": "ann@example.com", "who approved it": "carla@example.com"} {
		token := s.login(account, "a long password")
		if _, why := l.buy(token, 0, 1); why.Code != "OWN_SALE" {
			t.Errorf("the path for the user %s: %q, want OWN_SALE", who, why.Code)
		}
		var data struct{ Out buyOutcome }
		l.ask(token, `mutation($in: PlaceOrderInput!) { out: placeOrder(input: $in) { orderTask { id }`+refusals+` } }`,
			map[string]any{"in": order(l.items[0], "any-path-token")}).into(t, &data)
		if len(data.Out.UserErrors) != 1 || data.Out.UserErrors[0].Code != "OWN_SALE" {
			t.Errorf("the order of the user %s: %+v, want OWN_SALE", who, data.Out)
		}
		for _, field := range []string{"enterQueue", "joinWaitlist"} {
			in := map[string]any{"itemId": l.items[0]}
			selection := "waitlistEntry { id }"
			if field == "enterQueue" {
				in["captcha"] = map[string]any{"challengeId": "none", "answer": "none"}
				selection = "ticket { id }"
			}
			if p := s.mutate(token, field, selection, in); p.why() != "OWN_SALE" {
				t.Errorf("%s of the user %s: %q, want OWN_SALE", field, who, p.why())
			}
		}
		if got := l.button(token); got.Action != "NONE" || got.DisabledReason == nil || *got.DisabledReason != "You prepared, approved or changed this sale, so you cannot buy in it." {
			t.Errorf("the sale says to the user %s: %+v", who, got)
		}
	}
	other := s.staff("bob@example.com", "OPERATOR")
	if got := l.button(other); got.Action != "BUY" {
		t.Errorf("the button of another operator: %+v", got)
	}
	if task, why := l.buy(other, 0, 1); task == "" {
		t.Errorf("another operator is refused: %+v", why)
	}
}

// Stock, texts, switches and products decide what is sold and how.
func TestStaffDoNotBuyInSalesThatTheyChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.PreloadEvery = 200 * time.Millisecond })
	s.start("api", "worker", "scheduler")
	l := s.sellFive()
	var data struct {
		Sale struct {
			Items []struct{ Goods struct{ ID string } }
		}
	}
	l.ask("", `query($i: ID!) { sale(by: {id: $i}) { items { goods { id } } } }`, map[string]any{"i": l.sale}).into(t, &data)
	for who, change := range map[string]func(token string) string{
		"stock": func(token string) string {
			return s.mutate(token, "adjustStock", "intervention { state }", map[string]any{
				"itemId": l.items[0], "units": 1, "note": "one more", "idempotencyKey": "0123456789abcdef"}).why()
		},
		"switches": func(token string) string {
			return s.mutate(token, "setSaleSwitches", "sale { id }", map[string]any{"saleId": l.sale, "note": "calm", "inflowPerSecond": 50}).why()
		},
		"texts": func(token string) string {
			return s.byTwo(token, "updateSale", "sale { id }", map[string]any{"saleId": l.sale, "note": "typo", "rules": "One each."}).why()
		},
		"product": func(token string) string {
			return s.byTwo(token, "updateGoods", "goods { id }", map[string]any{"goodsId": data.Sale.Items[0].Goods.ID, "description": "Another text"}).why()
		},
	} {
		token := s.staff(who+"@example.com", "OPERATOR")
		if why := change(token); why != "" {
			t.Fatalf("%s: %s", who, why)
		}
		testenv.Eventually(t, testenv.Wait, func() bool { _, why := l.buy(token, 0, 1); return why.Code == "OWN_SALE" }, "OWN_SALE for who changed the "+who)
	}
}
