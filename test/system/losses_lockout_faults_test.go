//go:build faults

package system_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// TestBuyersSeeNoEmptyShopWhileRedisRefusesConnections: a changed password or a script that
// blocks Redis makes the API answer UNAVAILABLE, or what is right, and nothing in between.
func TestBuyersSeeNoEmptyShopWhileRedisRefusesConnections(t *testing.T) {
	t.Parallel()
	for _, lockout := range testenv.Lockouts() {
		t.Run(lockout.Name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisServer(t)
			s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(testenv.LockableURL(t, server)) })
			a, _ := s.open("api", "worker", "scheduler")
			made := s.seed(seed.Input{Users: 5, Stock: 2})
			owner, holder, waiting, late := made.Users[0].AccessToken, made.Users[1].AccessToken, made.Users[3], made.Users[4].AccessToken
			pathOf := func(i int) string {
				t.Helper()
				path, _, why := s.knock("issueSeckillPath", made.Users[i].AccessToken, made)
				if path == "" {
					t.Fatalf("buyer %d: no path: %s", i, why)
				}
				return path
			}
			p, err := s.insist(owner, order(made.ItemID, pathOf(0)))
			if err != nil || p.why() != "" {
				t.Fatalf("bought %+v %v", p, err)
			}
			s.drained(made.SaleID, 1)
			held := order(made.ItemID, pathOf(1)) // the unit that is left has two permits
			pathOf(2)
			waits := s.login(waiting.Account, waiting.Password)
			_, ticket, why := s.knock("issueSeckillPath", waits, made)
			if ticket == nil {
				t.Fatalf("no ticket: %s", why)
			}
			c := buyersView{site: s, made: made, task: p.OrderTask.ID, owner: owner, waits: waits, ticket: ticket.ID}
			testenv.Eventually(t, testenv.Wait, func() bool { return c.wrong() == "" && c.unavailable == 0 }, "all is right before")

			restore := lockout.Do(t, server)
			signOut := `mutation { logout(input: {everywhere: false}) { userErrors { code } } }`
			for began := time.Now(); time.Since(began) < 2*time.Second; { // the view of the gate is read several times meanwhile
				if wrong := c.wrong(); wrong != "" {
					t.Fatalf("a buyer sees %s", wrong)
				}
				if out := s.ask(holder, placeOrder, map[string]any{"in": held}); out.code() != "UNAVAILABLE" {
					t.Fatalf("placeOrder: %s %+v, want UNAVAILABLE", out.Data, out.Errors)
				}
				if out := s.ask(late, `mutation($s: ID!) { createCaptcha(input: {purpose: SECKILL, saleId: $s, kind: PROOF_OF_WORK}) { challenge { id parameters } userErrors { code } } }`,
					map[string]any{"s": made.SaleID}); out.code() == "" {
					_, why := s.tryToPath(late, made)
					if why != "" {
						t.Fatalf("issueSeckillPath: %s, want UNAVAILABLE", why)
					}
				} else if out.code() != "UNAVAILABLE" {
					t.Fatalf("createCaptcha: %+v", out.Errors)
				}
			}
			if out := s.ask(waits, signOut, nil); out.code() != "UNAVAILABLE" {
				t.Errorf("logout: %s %+v, want UNAVAILABLE", out.Data, out.Errors)
			}
			if c.unavailable == 0 {
				t.Error("no answer was UNAVAILABLE: Redis was there")
			}
			for _, line := range regexp.MustCompile(`(?m)^seckill_fault_panics_total.*$`).FindAllString(metrics(t, a), -1) {
				if !strings.HasSuffix(line, " 0") {
					t.Error(line)
				}
			}
			restore()

			if p, err := s.insist(holder, held); err != nil || p.why() != "" || p.OrderTask == nil {
				t.Errorf("the last unit: %+v %v", p, err)
			}
			if code := s.ask(waits, signOut, nil).code(); code != "" && code != "UNAUTHENTICATED" {
				t.Errorf("the second sign-out: %s", code)
			}
			again := s.login(waiting.Account, waiting.Password)
			testenv.Eventually(t, testenv.Wait, func() bool { return s.viewed(again, made.SaleID).QueueTicket == nil }, "the ticket ends with its session")
			s.drained(made.SaleID, 2)
		})
	}
}

// buyersView asks what buyers see of a sale whose owner has an order, while one unit is left
// and another buyer waits.
type buyersView struct {
	*site
	made          *seed.Result
	task, owner   string
	waits, ticket string
	unavailable   int // answers
}

// wrong returns the first answer that is neither right nor UNAVAILABLE; "" = none.
func (c *buyersView) wrong() string {
	c.t.Helper()
	for _, q := range []struct {
		token, document string
		variables       map[string]any
		right           string
	}{
		{c.owner, `query($i: ID!) { orderTask(id: $i) { status } }`, map[string]any{"i": c.task}, `{"orderTask":{"status":"SUCCEEDED"}}`},
		{
			"", `query($i: ID!) { sale(by: {id: $i}) { phase items { stock { remaining } } } }`, map[string]any{"i": c.made.SaleID},
			`{"sale":{"phase":"LIVE","items":[{"stock":{"remaining":1}}]}}`,
		},
		{
			c.owner, `query($i: ID!) { sale(by: {id: $i}) { viewer { order { status } } } }`, map[string]any{"i": c.made.SaleID},
			`{"sale":{"viewer":{"order":{"status":"PENDING_PAYMENT"}}}}`,
		},
		{
			c.waits, `query($i: ID!) { sale(by: {id: $i}) { viewer { queueTicket { id status position { ahead } } } } }`, map[string]any{"i": c.made.SaleID},
			`{"sale":{"viewer":{"queueTicket":{"id":"` + c.ticket + `","status":"WAITING","position":{"ahead":0}}}}}`,
		},
	} {
		out := c.ask(q.token, q.document, q.variables)
		switch {
		case out.code() == "UNAVAILABLE":
			c.unavailable++
		case out.code() != "" || !json.Valid(out.Data) || string(out.Data) != q.right:
			return string(out.Data) + " " + out.code() + ", want " + q.right
		}
	}
	return ""
}
