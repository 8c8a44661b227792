package system_test

import (
	"net/http"
	"net/netip"
	"testing"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/testenv"
)

// behind is a proxy that names one address for all buyers.
type behind struct{ next http.RoundTripper }

func (b behind) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", "93.184.216.34")
	return b.next.RoundTrip(r)
}

// cluster is an entry of the page of who bought.
type cluster struct {
	Kind, Label                         string
	Accounts, Orders, Units, HeldOrders int
	UnpaidOrders, FirstAfterOpeningMs   int
}

func (s *site) clusters(token, saleID string) (found []cluster, code string) {
	s.t.Helper()
	var data struct {
		Sale struct {
			Clusters *struct{ Edges []struct{ Node cluster } }
		}
	}
	out := s.ask(token, `query($id: ID!) { sale(by: {id: $id}) { clusters { edges { node {
	  kind label accounts orders units heldOrders unpaidOrders firstAfterOpeningMs } } } } }`, map[string]any{"id": saleID})
	out.into(s.t, &data)
	if data.Sale.Clusters != nil {
		for _, e := range data.Sale.Clusters.Edges {
			found = append(found, e.Node)
		}
	}
	return found, out.code()
}

// review is what a buyer sees of it.
type review struct {
	Held         bool
	Reasons      []string
	Text, Answer string
}

func (s *site) review(token, orderID string) (*review, string) {
	s.t.Helper()
	var data struct {
		Order struct {
			Status string
			Review *review
		}
	}
	s.ask(token, `query($id: ID!) { order(by: { id: $id }) { status review { held reasons text answer } } }`, map[string]any{"id": orderID}).into(s.t, &data)
	return data.Order.Review, data.Order.Status
}

func (s *site) tryToPay(token, orderID string) (why string) {
	s.t.Helper()
	return s.mutate(token, "payOrder", "order { status }", map[string]any{"orderId": orderID, "optionId": "sandbox", "idempotencyKey": "key-of-" + orderID[4:20]}).why()
}

// A sale holds the orders of three accounts behind one address; staff release one and cancel one, whose unit is sold again.
func TestOrdersFromOneNetworkAreReviewedBeforeTheirPayment(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *config.Config) { cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	s.http.Transport = behind{s.http.Transport}
	s.start("api", "worker", "scheduler")
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 4, Stock: 3, PermitRatio: 10})
	if p := s.mutate(operator, "setSaleSwitches", saleParts, map[string]any{"saleId": made.SaleID, "reviewAccounts": 1}); p.why() != "INVALID_INPUT" {
		t.Errorf("one account is a cluster: %s", p.why())
	}
	if p := s.mutate(operator, "setSaleSwitches", saleParts, map[string]any{"saleId": made.SaleID, "reviewAccounts": 3}); p.why() != "" {
		t.Fatal(p.why())
	}
	orders := make([]string, 3)
	for i := range orders {
		orders[i] = s.buysOne(made.Users[i].AccessToken, made)
	}
	buyer := made.Users[0].AccessToken
	if why := s.tryToPay(buyer, orders[0]); why != "UNDER_REVIEW" {
		t.Fatalf("payOrder: %q", why)
	}
	held, _ := s.review(buyer, orders[0])
	if held == nil || !held.Held || len(held.Reasons) != 1 || held.Reasons[0] != "NETWORK" || held.Answer != "" ||
		held.Text != "The shop checks this order before you can pay: several accounts ordered from one network." {
		t.Fatalf("the buyer sees %+v", held)
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		found, _ := s.clusters(operator, made.SaleID)
		return len(found) == 1 && found[0].HeldOrders == 3
	}, "all three are held")
	found, _ := s.clusters(operator, made.SaleID)
	if c := found[0]; c.Kind != "NETWORK" || len(c.Label) != 9 || c.Accounts != 3 || c.Orders != 3 || c.Units != 3 || c.UnpaidOrders != 3 {
		t.Errorf("the cluster is %+v", c)
	}
	if _, code := s.clusters(buyer, made.SaleID); code != "FORBIDDEN" {
		t.Errorf("a customer reads clusters: %q", code)
	}
	for field, in := range map[string]string{
		"releaseOrder": `{orderId: "` + orders[0] + `", note: "mine"}`, "holdOrders": `{saleId: "` + made.SaleID + `", cluster: "` + found[0].Label + `", note: "theirs"}`,
	} {
		if code := s.ask(buyer, `mutation { `+field+`(input: `+in+`) { userErrors { code } } }`, nil).code(); code != "FORBIDDEN" {
			t.Errorf("a customer calls %s: %q", field, code)
		}
	}
	if p := s.mutate(buyer, "answerReview", "order { review { answer } }", map[string]any{"orderId": orders[0], "text": "We share a flat."}); p.why() != "" {
		t.Fatal(p.why())
	}
	if p := s.mutate(made.Users[1].AccessToken, "answerReview", "order { id }", map[string]any{"orderId": orders[0], "text": "Me too."}); p.why() != "NOT_FOUND" {
		t.Errorf("another buyer answers: %s", p.why())
	}
	if seen, _ := s.review(operator, orders[0]); seen == nil || seen.Answer != "We share a flat." {
		t.Errorf("the operator sees %+v", seen)
	}
	var inbox struct {
		Inbox struct {
			Entries []struct {
				Kind, SubjectID string
				Quantity        int
			}
		}
	}
	s.ask(operator, `{ inbox(kinds: [ORDER_REVIEW]) { entries { kind subjectId quantity } } }`, nil).into(t, &inbox)
	if e := inbox.Inbox.Entries; len(e) != 1 || e[0].SubjectID != made.SaleID || e[0].Quantity != 3 {
		t.Errorf("the inbox has %+v", e)
	}
	if p := s.mutate(operator, "releaseOrder", "order { review { held } }", map[string]any{"orderId": orders[0], "note": "a flat"}); p.why() != "" {
		t.Fatal(p.why())
	}
	if why := s.tryToPay(buyer, orders[0]); why != "" {
		t.Errorf("payOrder after the release: %s", why)
	}
	if p := s.mutate(operator, "voidOrder", "order { status }", map[string]any{"orderId": orders[1], "note": "a farm"}); p.why() != "" || p.Order["status"] != "CANCELLED" {
		t.Errorf("voidOrder of a held order: %v %s", p.Order, p.why())
	}
	testenv.Eventually(t, testenv.Wait, func() bool {
		path, _, _ := s.knock("issueSeckillPath", made.Users[3].AccessToken, made)
		if path == "" {
			return false
		}
		p, err := s.place(made.Users[3].AccessToken, order(made.ItemID, path))
		return err == nil && p.OrderTask != nil
	}, "the unit is sold again")
}
