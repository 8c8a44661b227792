package system_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// tried is an order with its payments.
type tried struct {
	Status           string
	Revision         int
	AvailableActions []string
	Payments         []struct {
		ID, Status string
		PaidAt     *string
		Amount     struct{ Amount, CurrencyCode string }
		Failure    *struct{ Code, Message string }
	}
	Refunds []struct {
		Reason, State string
		DecidedAt     *string
		Amount        struct{ Amount, CurrencyCode string }
	}
}

const triedParts = `status revision availableActions payments { id status paidAt amount { amount currencyCode } failure { code message } }
  refunds { reason state decidedAt amount { amount currencyCode } }`

// orderEvents subscribes to a stream of order events, which it reads continuously.
func (s *site) orderEvents(token, document string) <-chan tried {
	s.t.Helper()
	k := s.dial(token)
	payload, _ := json.Marshal(map[string]any{"query": "subscription { event: " + document + " { order { " + triedParts + " } } }"}) // strings
	k.send(frame{ID: "o", Type: "subscribe", Payload: payload})
	events := make(chan tried, 100)
	go func() {
		defer close(events)
		for {
			var f frame
			if k.next(&f) != nil {
				return
			}
			var payload struct {
				Data struct{ Event struct{ Order tried } }
			}
			switch {
			case f.Type == "next" && json.Unmarshal(f.Payload, &payload) == nil:
				events <- payload.Data.Event.Order
			}
		}
	}()
	return events
}

// pay begins a payment with a new key and returns its id and the page of the bank.
func (s *site) pay(token, orderID string) (payment, page string) {
	s.t.Helper()
	var data struct {
		PayOrder struct {
			Payment *struct{ ID, RedirectURL string }
			UserErrors
		}
	}
	s.ask(token, `mutation($o: ID!, $k: String!) { payOrder(input: {orderId: $o, optionId: "sandbox", idempotencyKey: $k}) { payment { id redirectUrl } userErrors { code } } }`,
		map[string]any{"o": orderID, "k": uuid.NewString()}).into(s.t, &data)
	if data.PayOrder.Payment == nil {
		s.t.Fatalf("payOrder: %s", data.PayOrder.why())
	}
	return data.PayOrder.Payment.ID, data.PayOrder.Payment.RedirectURL
}

// choose presses a button on the page of the bank.
func (s *site) choose(page, button string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, page+"/"+button, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("the bank answers %s", res.Status)
	}
}

func TestADeclinedPaymentIsPushedAndCanBeRetriedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	buyer := made.Users[0].AccessToken
	orderID := "ord_" + strings.TrimPrefix(s.bought(buyer, made), "tsk_")
	s.drained(made.SaleID, 1)
	one, all := s.orderEvents(buyer, `orderStatus(orderId: "`+orderID+`")`), s.orderEvents(buyer, "myOrderUpdates")
	before := <-one
	<-all
	first, page := s.pay(buyer, orderID)
	s.choose(page, "decline")
	for name, events := range map[string]<-chan tried{"orderStatus": one, "myOrderUpdates": all} {
		got, ok := <-events
		if !ok || got.Status != "PENDING_PAYMENT" || got.Revision <= before.Revision || len(got.Payments) != 1 || got.Payments[0].ID != first ||
			got.Payments[0].Status != "CLOSED" || got.Payments[0].Failure == nil || got.Payments[0].Failure.Code != "PAYMENT_DECLINED" ||
			got.Payments[0].Failure.Message == "" || !strings.Contains(strings.Join(got.AvailableActions, " "), "PAY") {
			t.Fatalf("%s after the decline: %+v", name, got)
		}
	}
	second, page := s.pay(buyer, orderID)
	if second == first {
		t.Error("the declined payment is returned again")
	}
	s.choose(page, "approve")
	got := <-one
	if got.Status != "PAID" || len(got.Payments) != 2 || got.Payments[0].ID != second || got.Payments[0].Status != "SUCCEEDED" ||
		got.Payments[0].PaidAt == nil || got.Payments[0].Failure != nil || got.Payments[1].ID != first {
		t.Errorf("after the approval: %+v", got)
	}
	document := `query($o: ID!) { order(by: { id: $o }) { payments { transaction } } }`
	out := s.ask(operator, document, map[string]any{"o": orderID})
	if text := string(out.Data); out.code() != "" || !strings.Contains(text, `[{"transaction":"`) || !strings.Contains(text, `{"transaction":null}]`) {
		t.Errorf("an operator reads the transactions: %s %+v", text, out.Errors)
	}
	if out := s.ask(buyer, document, map[string]any{"o": orderID}); out.code() != "FORBIDDEN" {
		t.Errorf("the buyer reads the transactions: %s %+v", out.Data, out.Errors)
	}
}

// The money arrives after the deadline, when another buyer has the unit.
func TestTheRefundOfLateMoneyIsPushed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 2, Stock: 1})
	buyer, winner := made.Users[0].AccessToken, made.Users[1].AccessToken
	task := s.bought(buyer, made)
	s.drained(made.SaleID, 1)
	orderID := "ord_" + strings.TrimPrefix(task, "tsk_")
	_, page := s.pay(buyer, orderID)
	s.choose(page, "late")
	events := s.orderEvents(buyer, `orderStatus(orderId: "`+orderID+`")`)
	s.expired(operator, task)
	s.paid(winner, s.bought(winner, made))
	if _, err := s.database().SQL.ExecContext(t.Context(), `UPDATE sandbox_charges SET settles_at = now() WHERE settles_at IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	var last tried
	for e := range events {
		if last = e; len(e.Refunds) == 1 && e.Refunds[0].State == "DONE" {
			break
		}
	}
	if len(last.Payments) != 1 || len(last.Refunds) != 1 {
		t.Fatalf("the stream ended with %+v", last)
	}
	r := last.Refunds[0]
	if last.Status != "EXPIRED" || r.State != "DONE" || r.Reason == "" || r.DecidedAt == nil || r.Amount != last.Payments[0].Amount {
		t.Errorf("after late money: %+v", last)
	}
	s.audit(made.SaleID)
}

// phases reads the phases that saleStatus pushes to an anonymous follower.
func (s *site) phases(saleID string) <-chan string {
	s.t.Helper()
	k := s.dial(s.staff("follower@example.com", "CUSTOMER"))
	k.send(frame{ID: "p", Type: "subscribe", Payload: subscription(s.t, `subscription($id: ID!) { saleStatus(saleId: $id) { sale { phase } } }`, saleID)})
	phases := make(chan string, 100)
	go func() {
		defer close(phases)
		for {
			var f frame
			if k.next(&f) != nil {
				return
			}
			var payload struct {
				Data struct {
					SaleStatus struct{ Sale struct{ Phase string } }
				}
			}
			switch {
			case f.Type == "next" && json.Unmarshal(f.Payload, &payload) == nil:
				phases <- payload.Data.SaleStatus.Sale.Phase
			}
		}
	}()
	return phases
}

// awaitPhase reads phases until the wanted one.
func awaitPhase(t *testing.T, phases <-chan string, want string) {
	t.Helper()
	for p := range phases {
		if p == want {
			return
		}
	}
	t.Fatalf("the stream ended before %s", want)
}

// A sale that operators pause and resume, and one whose gate is lost and rebuilt.
func TestPausesAndLostGatesArePushed(t *testing.T) {
	t.Parallel()
	s, server, _, _ := onOwnRedis(t)
	s.start("worker")
	stop := s.start("scheduler")
	s.start("api")
	operator := s.staff("ann@example.com", "OPERATOR")
	made := s.seed(seed.Input{Users: 1, Stock: 5})
	phases := s.phases(made.SaleID)
	awaitPhase(t, phases, "LIVE")
	for range 2 {
		s.onSale(operator, "pauseSale", made.SaleID, "a look", "PAUSED")
		awaitPhase(t, phases, "PAUSED")
		s.onSale(operator, "resumeSale", made.SaleID, "", "LIVE")
		awaitPhase(t, phases, "LIVE")
	}
	stop()
	server.FlushAll()
	awaitPhase(t, phases, "PAUSED")
	api := s.url
	s.start("scheduler")
	s.url = api
	awaitPhase(t, phases, "LIVE")
	testenv.Eventually(t, testenv.Wait, func() bool { return s.button(operator, made.SaleID).Viewer.Action == "BUY" }, "the sale goes on")
}
