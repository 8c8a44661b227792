package system_test

import (
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// A buyer with an order of a sold-out item gets the order from every step, in every process,
// in a second tab or another page without the key of the order, and also once the sale is
// paused or over. Buyers without an order get the state of the item.
func TestABuyerWithAnOrderOfASoldOutItemIsLedToIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	urls := []string{s.url}
	s.start("api")
	urls = append(urls, s.url)
	made, task := s.soldOut(seed.Input{Users: 3})
	admin := s.staff("ann@example.com", "ADMIN")
	holder, other := made.Users[0].AccessToken, made.Users[1].AccessToken
	errors := `userErrors { code ... on AlreadyOrderedError { order { id } orderTask { id } } }`
	// steps asks each step for a unit and returns the codes; it checks the order of each ALREADY_ORDERED.
	steps := func(token string) (codes map[string]string) {
		t.Helper()
		codes = map[string]string{}
		captcha := s.puzzle(token, made.SaleID)
		for name, c := range map[string]struct {
			document string
			input    map[string]any
		}{
			"placeOrder":       {`mutation($in: PlaceOrderInput!) { outcome: placeOrder(input: $in) { ` + errors + ` } }`, order(made.ItemID, "a token of another tab")},
			"issueSeckillPath": {`mutation($in: IssueSeckillPathInput!) { outcome: issueSeckillPath(input: $in) { ` + errors + ` } }`, map[string]any{"itemId": made.ItemID, "captcha": captcha}},
			"enterQueue":       {`mutation($in: EnterQueueInput!) { outcome: enterQueue(input: $in) { ` + errors + ` } }`, map[string]any{"itemId": made.ItemID, "captcha": captcha}},
			"joinWaitlist":     {`mutation($in: JoinWaitlistInput!) { outcome: joinWaitlist(input: $in) { ` + errors + ` } }`, map[string]any{"itemId": made.ItemID}},
		} {
			var data struct {
				Outcome struct {
					UserErrors []struct {
						Code      string
						Order     *struct{ ID string }
						OrderTask *struct{ ID string }
					}
				}
			}
			out := s.ask(token, c.document, map[string]any{"in": c.input})
			out.into(t, &data)
			if len(data.Outcome.UserErrors) == 0 {
				codes[name] = ""
				continue
			}
			e := data.Outcome.UserErrors[0]
			codes[name] = e.Code
			if e.Code == "ALREADY_ORDERED" && (e.OrderTask == nil || e.OrderTask.ID != task || e.Order == nil) {
				t.Errorf("%s names %+v and %+v, want task %s", name, e.Order, e.OrderTask, task)
			}
		}
		return codes
	}
	for _, state := range []struct{ name, act, status, others string }{
		{name: "sold out", others: "SOLD_OUT"},
		{"paused", "pauseSale", "PAUSED", "SALE_PAUSED"},
		{"over", "endSale", "ENDED", "SALE_CLOSED"},
	} {
		if state.act != "" {
			s.onSale(admin, state.act, made.SaleID, "a look", state.status)
		}
		for _, url := range urls {
			s.url = url
			testenv.Eventually(t, patience, func() bool { return steps(other)["placeOrder"] == state.others }, state.name+": others are refused")
			for range 2 { // from memory, too
				for step, code := range steps(holder) {
					if code != "ALREADY_ORDERED" {
						t.Errorf("%s: %s answers %s to the buyer with the order", state.name, step, code)
					}
				}
			}
		}
	}
}
