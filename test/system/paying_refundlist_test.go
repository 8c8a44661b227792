package system_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/ops/seed"
	"seckill/internal/testenv"
)

// listedRefund is a refund as operators see it.
type listedRefund struct {
	ID, State, Reason string
	Decision          *string
	DecidedAt         *string
	Amount            struct{ Amount, CurrencyCode string }
	DecidedBy         *struct{ DisplayName string }
	Order             *struct {
		ID     string
		Status string
	}
}

// refunds lists refunds of all sales as an operator.
func (s *site) refunds(token, arguments string) (found []listedRefund, total int) {
	s.t.Helper()
	var data struct {
		Refunds struct {
			TotalCount int
			Edges      []struct{ Node listedRefund }
		}
	}
	s.ask(token, `{ refunds(`+arguments+`) { totalCount edges { node { id state reason decision decidedAt decidedBy { displayName }
		amount { amount currencyCode } order { id status } } } } }`, nil).into(s.t, &data)
	for _, e := range data.Refunds.Edges {
		found = append(found, e.Node)
	}
	return found, data.Refunds.TotalCount
}

// paid pays for the order of a task at the bank, and returns once it is paid.
func (s *site) paid(token, task string) (orderID string) {
	s.t.Helper()
	orderID = "ord_" + strings.TrimPrefix(task, "tsk_")
	status := func() string {
		var data struct{ Order *struct{ Status string } }
		s.ask(token, `query($o: ID!) { order(by: { id: $o }) { status } }`, map[string]any{"o": orderID}).into(s.t, &data)
		if data.Order == nil {
			return ""
		}
		return data.Order.Status
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool { return status() == "PENDING_PAYMENT" }, "the order is written")
	_, page := s.pay(token, orderID)
	s.choose(page, "approve")
	testenv.Eventually(s.t, testenv.Wait, func() bool { return status() == "PAID" }, "the order is paid")
	return orderID
}

// askedBack buys a unit, pays for it and asks for the money back.
func (s *site) askedBack(token string, made *seed.Result) (orderID string) {
	s.t.Helper()
	orderID = s.paid(token, s.bought(token, made))
	p := s.mutate(token, "requestRefund", "order { status }", map[string]any{"orderId": orderID, "reason": "too heavy", "idempotencyKey": uuid.NewString()})
	if p.why() != "" {
		s.t.Fatalf("requestRefund: %s", p.why())
	}
	return orderID
}

func TestOperatorsDecideAboutTheRefundsOfAllSales(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	first, second := s.seed(seed.Input{Users: 1, Stock: 1}), s.seed(seed.Input{Users: 1, Stock: 1})
	one, other := s.askedBack(first.Users[0].AccessToken, first), s.askedBack(second.Users[0].AccessToken, second)
	const open = `first: 10, filter: {states: [REQUESTED]}`
	asked, total := s.refunds(ann, open)
	if len(asked) != 2 || total != 2 || asked[0].Order.ID != one || asked[1].Order.ID != other || asked[0].Reason != "too heavy" || asked[0].DecidedAt != nil {
		t.Fatalf("%d refunds to decide: %+v", total, asked)
	}
	if found, _ := s.refunds(ann, `first: 10, filter: {saleId: "`+second.SaleID+`"}`); len(found) != 1 || found[0].ID != asked[1].ID {
		t.Errorf("refunds of one sale: %+v", found)
	}
	if found, total := s.refunds(ann, `last: 1`); len(found) != 1 || found[0].ID != asked[1].ID || total != 2 {
		t.Errorf("the last of %d refunds: %+v", total, found)
	}
	decide := func(refund listedRefund, approve bool, amount, note string) string {
		t.Helper()
		return s.mutate(ann, "decideRefund", "order { status }", map[string]any{
			"refundId": refund.ID, "approve": approve, "note": note, "amount": map[string]any{"amount": amount, "currencyCode": refund.Amount.CurrencyCode},
		}).why()
	}
	if why := decide(asked[0], true, "0.01", "fine"); why != "INVALID_INPUT" {
		t.Errorf("another amount was confirmed: %q", why)
	}
	if why := decide(asked[0], true, asked[0].Amount.Amount, "fine"); why != "" {
		t.Fatalf("approve: %q", why)
	}
	if why := decide(asked[1], false, asked[1].Amount.Amount, "it was used"); why != "" {
		t.Fatalf("refuse: %q", why)
	}
	done := func() []listedRefund {
		found, _ := s.refunds(ann, `first: 10, filter: {states: [DONE]}`)
		return found
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return len(done()) == 1 }, "the money goes back")
	for what, c := range map[string]struct {
		got    []listedRefund
		id     string
		remark string
		order  string
	}{
		"approved": {done(), asked[0].ID, "fine", "REFUNDED"},
		"refused":  {func() []listedRefund { f, _ := s.refunds(ann, `filter: {states: [REFUSED]}`); return f }(), asked[1].ID, "it was used", "PAID"},
	} {
		if len(c.got) != 1 || c.got[0].ID != c.id || c.got[0].Decision == nil || *c.got[0].Decision != c.remark || c.got[0].DecidedAt == nil ||
			c.got[0].DecidedBy == nil || c.got[0].DecidedBy.DisplayName != "OPERATOR" || c.got[0].Order.Status != c.order {
			t.Errorf("%s: %+v", what, c.got)
		}
	}
	if left, total := s.refunds(ann, open); len(left) != 0 || total != 0 {
		t.Errorf("%d refunds are left to decide: %+v", total, left)
	}
}

func TestAnOperatorNeitherSeesNorDecidesOwnRefunds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	made := s.seed(seed.Input{Users: 1, Stock: 1})
	buyer := made.Users[0]
	orderID := s.askedBack(buyer.AccessToken, made)
	var who struct{ Viewer struct{ ID string } }
	s.ask(buyer.AccessToken, `{ viewer { id } }`, nil).into(t, &who)
	if p := s.mutate(s.staff("root@example.com", "ADMIN"), "setUserRole", "user { role }", map[string]any{"userId": who.Viewer.ID, "role": "OPERATOR"}); p.why() != "" {
		t.Fatal(p.why())
	}
	own := s.login(buyer.Account, buyer.Password)
	if found, total := s.refunds(own, `first: 10`); len(found) != 0 || total != 0 {
		t.Errorf("the own refund is listed: %+v", found)
	}
	found, _ := s.refunds(s.staff("bob@example.com", "OPERATOR"), `first: 10`)
	if len(found) != 1 || found[0].Order.ID != orderID {
		t.Fatalf("another operator sees %+v", found)
	}
	out := s.mutate(own, "decideRefund", "order { id }", map[string]any{"refundId": found[0].ID, "approve": true})
	if out.why() == "" {
		t.Error("an operator decided about the own order")
	}
}

// fails makes a refund that is done fail, as the provider reports days later.
func (s *site) fails() {
	s.t.Helper()
	for _, statement := range []string{
		"UPDATE refunds SET status = 'FAILED', failure = 'expired_or_canceled_card', version = version + 1",
		"UPDATE payments SET status = 'SUCCEEDED', version = version + 1 WHERE status = 'REFUNDED'",
		"UPDATE sandbox_charges SET refunded_minor = 0, version = version + 1", // the bank has the money again
	} {
		if _, err := s.database().SQL.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatal(err)
		}
	}
}

// allRefunds selects refunds in any state.
const allRefunds = `first: 10, filter: {states: [REQUESTED, APPROVED, FAILED, DONE, SETTLED]}`

// sent approves the only refund and waits until the provider has taken it.
func (s *site) sent(token, what string) {
	s.t.Helper()
	asked, _ := s.refunds(token, allRefunds)
	if why := s.mutate(token, "decideRefund", "order { status }", map[string]any{"refundId": asked[0].ID, "approve": true}).why(); why != "" {
		s.t.Fatalf("%s: %s", what, why)
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool { found, _ := s.refunds(token, allRefunds); return found[0].State == "DONE" }, what)
}

func TestOperatorsSeeWhyARefundFailedAndSendItAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann, made := s.staff("ann@example.com", "OPERATOR"), s.seed(seed.Input{Users: 1, Stock: 1})
	s.askedBack(made.Users[0].AccessToken, made)
	s.sent(ann, "the provider has taken the refund")
	s.fails()
	if found, n := s.refunds(ann, `first: 10, filter: {states: [FAILED]}`); n != 1 || len(found) != 1 {
		t.Fatalf("%d failed refunds: %+v", n, found)
	}
	var data struct {
		Refunds struct {
			Edges []struct{ Node struct{ Failure string } }
		}
	}
	s.ask(ann, `{ refunds(first: 1) { edges { node { failure } } } }`, nil).into(t, &data)
	if got := data.Refunds.Edges[0].Node.Failure; got != "expired_or_canceled_card" {
		t.Errorf("the reason is %q", got)
	}
	s.sent(ann, "the refund is sent again")
	s.audit(made.SaleID)
}

// The card is closed: the shop gives the money back by bank transfer.
func TestAFailedRefundIsSettledOutsideItsProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann, made := s.staff("ann@example.com", "OPERATOR"), s.seed(seed.Input{Users: 1, Stock: 1})
	buyer := made.Users[0].AccessToken
	orderID := s.askedBack(buyer, made)
	asked, _ := s.refunds(ann, allRefunds)
	settle := func(reason string) (why, state string) {
		t.Helper()
		p := s.mutate(ann, "settleRefund", "refund { state }", map[string]any{"refundId": asked[0].ID, "reason": reason})
		found, _ := s.refunds(ann, allRefunds)
		return p.why(), found[0].State
	}
	if why, state := settle("too early"); why != "CONFLICT" || state != "REQUESTED" {
		t.Errorf("before it has failed: %q, %s", why, state)
	}
	s.sent(ann, "the provider has taken the refund")
	s.fails()
	for _, what := range []string{"settled", "settled again"} {
		if why, state := settle("by bank transfer"); why != "" || state != "SETTLED" {
			t.Errorf("%s: %q, %s", what, why, state)
		}
	}
	var data struct {
		Order struct {
			Status   string
			Refunds  []struct{ State, Decision string }
			Timeline []struct{ Note string }
		}
	}
	s.ask(buyer, `query($id: ID!) { order(by: { id: $id }) { status refunds { state decision } timeline { note } } }`, map[string]any{"id": orderID}).into(t, &data)
	o, seen := data.Order, 0
	for _, entry := range o.Timeline {
		if strings.Contains(entry.Note, "by bank transfer") {
			seen++
		}
	}
	if o.Status != "REFUNDED" || len(o.Refunds) != 1 || o.Refunds[0].State != "SETTLED" || o.Refunds[0].Decision != "by bank transfer" || seen != 1 {
		t.Errorf("the buyer sees %+v", o)
	}
	s.audit(made.SaleID)
}
