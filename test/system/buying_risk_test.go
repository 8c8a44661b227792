package system_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// oneBrowser sends the cookies of one browser for all buyers.
type oneBrowser struct{ next http.RoundTripper }

func (b oneBrowser) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Seckill-Session", "cookie")
	r.AddCookie(&http.Cookie{Name: "seckill_device", Value: base64.RawURLEncoding.EncodeToString(make([]byte, 40))})
	return b.next.RoundTrip(r)
}

// ordersOf are the numbers of orders that a question has.
type ordersOf struct{ Contact, Address, Payment, Network, Browser int }

// Three accounts of one mailbox, home, network and browser; two of them paid by one card.
func TestTheRiskServiceLearnsWhatOperatorsSeeOfABuyer(t *testing.T) {
	t.Parallel()
	type question struct {
		Version            int
		Action             string
		SecondsFromOpening float64
		Orders             *ordersOf
	}
	asked := make(chan question, 100)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		asked <- q
		_, _ = io.WriteString(w, `{"allow":true}`)
	}))
	t.Cleanup(service.Close)
	s := newSite(t, func(cfg *config.Config) {
		cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		cfg.RiskURL, cfg.RiskTimeout = service.URL, testenv.Wait
	})
	s.http.Transport = oneBrowser{behind{s.http.Transport}}
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 3, Stock: 5, PurchaseLimit: 5, PermitRatio: 10})
	change := func(statement string, values ...any) {
		t.Helper()
		if _, err := s.database().SQL.ExecContext(t.Context(), statement, values...); err != nil {
			t.Fatal(err)
		}
	}
	saleID := parsed[id.Sale](t, id.KindSale, made.SaleID).UUID()
	change(`UPDATE sales SET limit_by = 'CONTACT,ADDRESS', requires_address = true, revision = revision + 1 WHERE id = $1`, saleID)
	for i, u := range made.Users {
		change(`UPDATE users SET account = $1 WHERE account = $2`, fmt.Sprintf("farm+%d@example.com", i), u.Account)
		s.saveAddress(u.AccessToken, home)
	}
	s.awaitNeedsAddress(made)
	next := func(action string) question {
		t.Helper()
		for {
			select {
			case q := <-asked:
				if q.Action == action {
					return q
				}
			case <-time.After(testenv.Wait):
				t.Fatalf("the service was not asked about %s", action)
			}
		}
	}
	s.buysOne(made.Users[0].AccessToken, made)
	if q := next("issuePath"); q.Version != 1 || q.SecondsFromOpening <= 0 || q.Orders == nil || *q.Orders != (ordersOf{}) {
		t.Errorf("of the first buyer the service learns %+v %+v", q, q.Orders)
	}
	s.buysOne(made.Users[1].AccessToken, made)
	change(`UPDATE orders SET payment_key = 'pAAAAAAAAAAAAAAAA' WHERE sale_id = $1`, saleID)
	third := made.Users[2].AccessToken
	enter := func(field string) *ordersOf {
		t.Helper()
		s.knock(field, third, made)
		return next(map[string]string{"issueSeckillPath": "issuePath", "enterQueue": "enterQueue"}[field]).Orders
	}
	want := ordersOf{2, 2, 0, 2, 2}
	testenv.Eventually(t, testenv.Wait, func() bool { o := enter("enterQueue"); return o != nil && *o == want }, "the third buyer is in the clusters of both")
	if o := enter("issueSeckillPath"); o == nil || *o != want {
		t.Errorf("of the third buyer's path the service learns %+v", o)
	}
	s.knock("issueSeckillPath", made.Users[0].AccessToken, made)
	want.Payment = 2
	if q := next("issuePath"); q.Orders == nil || *q.Orders != want {
		t.Errorf("of a buyer whose card another account used the service learns %+v", q.Orders)
	}
	s.mutate(third, "joinWaitlist", "waitlistEntry { id }", map[string]any{"itemId": made.ItemID}) // asks before it is refused
	want.Payment = 0
	if q := next("joinWaitlist"); q.Orders == nil || *q.Orders != want {
		t.Errorf("of the waitlist the service learns %+v", q.Orders)
	}
}

// awaitNeedsAddress waits until all of the shop knows that the sale requires an address.
func (s *site) awaitNeedsAddress(made *seed.Result) {
	s.t.Helper()
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		var data struct {
			Sale struct{ RequiresAddress bool }
		}
		s.ask("", `query($id: ID!) { sale(by: {id: $id}) { requiresAddress } }`, map[string]any{"id": made.SaleID}).into(s.t, &data)
		return data.Sale.RequiresAddress
	}, "the sale requires an address")
}
