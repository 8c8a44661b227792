package system_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/identity/account"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/config"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// waits is an entry of the inbox.
type waits struct {
	Kind, SubjectID string
	Decidable       bool
	Quantity        int
	Sale, Order     *struct{ ID string }
}

// inbox reads the inbox; total and decidable are those of all kinds.
func (s *site) inbox(token, arguments string) (found []waits, total, decidable int) {
	s.t.Helper()
	var data struct {
		Inbox struct {
			TotalCount, DecidableCount int
			Entries                    []waits
		}
	}
	s.ask(token, `{ inbox`+arguments+` { totalCount decidableCount entries { kind subjectId decidable since note quantity sale { id } order { id } } } }`, nil).into(s.t, &data)
	return data.Inbox.Entries, data.Inbox.TotalCount, data.Inbox.DecidableCount
}

// counting follows the count of the inbox and returns a function that waits until it is
// total, of which decidable are for the caller to decide.
func (s *site) counting(token string) (reaches func(total, decidable int, what string)) {
	s.t.Helper()
	k := s.dial(token)
	payload, _ := json.Marshal(map[string]string{ // a map of strings
		"query": `subscription { inboxCount { kind totalCount decidableCount counts { kind count decidable more } } }`,
	})
	k.send(frame{ID: "inbox", Type: "subscribe", Payload: payload})
	frames := k.frames
	return func(total, decidable int, what string) {
		s.t.Helper()
		for {
			f := <-frames
			var next struct {
				Data struct {
					InboxCount struct{ TotalCount, DecidableCount int }
				}
			}
			if err := json.Unmarshal(f.Payload, &next); f.Type != "next" || err != nil {
				s.t.Fatalf("%s: frame %s %s", what, f.Type, f.Payload)
			}
			if c := next.Data.InboxCount; c.TotalCount == total && c.DecidableCount == decidable {
				return
			}
		}
	}
}

func TestTheInboxHasWhatWaitsForAPersonAndPushesItsCount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann, carla := s.staff("ann@example.com", "OPERATOR"), s.staff("carla@example.com", "ADMIN")
	admin, operator := s.counting(carla), s.counting(ann)
	admin(0, 0, "nothing waits")
	operator(0, 0, "nothing waits")

	draft := s.draft(carla)
	s.onSale(carla, "submitSale", draft, "", "PENDING_APPROVAL")
	admin(1, 0, "a submission of one's own is counted, and left to others")
	if found, _, _ := s.inbox(ann, ""); len(found) != 0 {
		t.Errorf("an operator cannot approve, and sees %+v", found)
	}

	made := s.seed(seed.Input{Users: 1, Stock: 5})
	refunded := s.askedBack(made.Users[0].AccessToken, made)
	operator(1, 1, "a refund")
	adjust := map[string]any{"itemId": made.ItemID, "units": 1000, "note": "more came", "idempotencyKey": "0123456789abcdef"}
	act := s.mutate(ann, "adjustStock", "intervention { id state }", adjust)
	operator(2, 1, "a change of stock of one's own")
	admin(3, 2, "the same for another person")
	if _, err := s.database().SQL.ExecContext(t.Context(), `UPDATE refunds SET status = 'FAILED'`); err != nil {
		t.Fatal(err)
	}
	endpoint := s.endpoint()
	if _, err := s.database().SQL.ExecContext(t.Context(), `UPDATE webhook_endpoints SET reason = 'failing for a day'`); err != nil {
		t.Fatal(err)
	}
	admin(4, 3, "a disabled endpoint; a change without an event is found")

	found, total, decidable := s.inbox(carla, "")
	want := []waits{
		{Kind: "SALE_APPROVAL", SubjectID: draft}, {Kind: "REFUND_FAILED", Decidable: true, Quantity: 1},
		{Kind: "STOCK_CHANGE", SubjectID: act.Intervention["id"].(string), Decidable: true, Quantity: 1000}, {Kind: "WEBHOOK_DISABLED", SubjectID: endpoint, Decidable: true},
	}
	if total != 4 || decidable != 3 || len(found) != len(want) {
		t.Fatalf("%d wait, %d to decide: %+v", total, decidable, found)
	}
	for i, w := range want {
		if got := found[i]; got.Kind != w.Kind || w.SubjectID != "" && got.SubjectID != w.SubjectID || got.Decidable != w.Decidable || got.Quantity != w.Quantity {
			t.Errorf("entry %d is %+v, want %+v", i, got, w)
		}
	}
	if o := found[1].Order; o == nil || o.ID != refunded || found[0].Sale == nil || found[0].Sale.ID != draft {
		t.Errorf("the entries lead to %+v and %+v", found[0], found[1])
	}
	if only, _, _ := s.inbox(carla, "(kinds: [STOCK_CHANGE])"); len(only) != 1 || only[0].Kind != "STOCK_CHANGE" {
		t.Errorf("of one kind: %+v", only)
	}
	s.mutate(carla, "decideIntervention", "intervention { state }", map[string]any{"interventionId": act.Intervention["id"], "confirm": false})
	operator(1, 1, "a declined request is gone")
	s.onSale(carla, "withdrawSale", draft, "", "DRAFT")
	admin(2, 2, "a submission that was withdrawn is gone")
}

func TestDeadLettersAndUnmatchedMoneyAreInTheInbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start("api", "worker", "scheduler")
	ann := s.staff("ann@example.com", "OPERATOR")
	count := s.counting(ann)
	made := s.seed(seed.Input{Users: 1, Stock: 3, PathTTL: 10 * time.Minute})
	s.poison(made.Users[0].Account)
	if p, err := s.place(made.Users[0].AccessToken, order(made.ItemID, made.Users[0].Path)); err != nil || p.OrderTask == nil {
		t.Fatalf("placed %+v %v", p, err)
	}
	count(1, 1, "a dead letter")
	found, _, _ := s.inbox(ann, "")
	if len(found) != 1 || found[0].Kind != "DEAD_LETTER" || found[0].SubjectID != s.deadLetters(ann)[0].ID {
		t.Fatalf("the inbox has %+v", found)
	}
	if why := s.decide(ann, "dropDeadLetter", found[0].SubjectID); why != "" {
		t.Fatal(why)
	}
	count(0, 0, "a dropped letter is gone")
	// A report of the provider that came a minute ago: the worker finds no payment for it.
	if _, err := s.database().SQL.ExecContext(t.Context(), `INSERT INTO payment_events
		(id, provider, event_id, payment_id, kind, amount_minor, currency, provider_ref, transaction, reason, state, outcome, tries, try_at, happened_at, created_at)
		VALUES ($1, 'sandbox', 'e1', $1, 'SUCCEEDED', 100, 'CNY', '', 'tx1', '', 'RECEIVED', '', 3, now(), now(), now() - interval '1 minute')`, id.New[uuid.UUID]()); err != nil {
		t.Fatal(err)
	}
	count(1, 1, "unmatched money")
	if found, _, _ = s.inbox(ann, ""); len(found) != 1 || found[0].Kind != "UNMATCHED_PAYMENT" || !strings.HasPrefix(found[0].SubjectID, "hld_") {
		t.Fatalf("the inbox has %+v", found)
	}
	end := func(mutation string) string {
		t.Helper()
		return s.mutate(ann, mutation, "order { id }", map[string]any{"heldPaymentId": found[0].SubjectID, "note": "returned in the dashboard"}).why()
	}
	if why := end("returnHeldPayment"); why != "CONFLICT" {
		t.Errorf("money that only the provider can return: %q", why)
	}
	for range 2 {
		if why := end("settleHeldPayment"); why != "" {
			t.Errorf("settleHeldPayment: %q", why)
		}
	}
	count(0, 0, "settled money is gone")
	log := s.securityLog(account.EventHeldSettled)
	if len(log) != 1 || !strings.Contains(log[0].Detail, "CNY 1.00 of tx1 at sandbox. returned in the dashboard") {
		t.Errorf("the security log has %+v", log)
	}
}

// No scheduler runs that would rebuild the gate.
func TestALostGateIsAnAlarmInTheInbox(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisServer(t)
	s := newSite(t, func(c *config.Config) { c.RedisURL = config.Secret(redis.URL()) })
	stop := s.start("scheduler")
	s.start("api", "worker")
	made := s.seed(seed.Input{Users: 1, Stock: 3})
	stop()
	redis.FlushAll()
	ann := s.staff("ann@example.com", "OPERATOR")
	s.counting(ann)(1, 1, "the gate is lost")
	found, _, _ := s.inbox(ann, "")
	if i := slices.IndexFunc(found, func(w waits) bool { return w.Kind == "GATE_LOST" }); i < 0 || found[i].Sale == nil || found[i].Sale.ID != made.SaleID {
		t.Errorf("the inbox has %+v", found)
	}
}

// The payment service of the installation refuses the connection, and the process that
// finds out is not the one that the operator asks.
func TestAPaymentProviderThatIsAwayIsAnAlarmInTheInbox(t *testing.T) {
	t.Parallel()
	absent := "http://" + testenv.ReserveAddr(t)
	s := newSite(t, func(c *config.Config) {
		c.PaymentServiceURL, c.PaymentServiceSecret = absent, "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	})
	s.start("api", "worker", "scheduler")
	operators := *s
	s.start("api")
	ann := s.staff("ann@example.com", "OPERATOR")
	count := operators.counting(ann)
	count(0, 0, "nothing waits")
	made := s.seed(seed.Input{Users: 5, Stock: 5})
	orders := make([]string, len(made.Users))
	for i, u := range made.Users {
		orders[i] = "ord_" + strings.TrimPrefix(s.bought(u.AccessToken, made), "tsk_")
	}
	s.drained(made.SaleID, len(orders))
	for i, u := range made.Users {
		if why := s.payAt("service", u.AccessToken, orders[i]); why != "UNAVAILABLE" {
			t.Fatalf("payment %d: %q", i, why)
		}
	}
	count(1, 1, "the provider is away")
	if found, _, _ := operators.inbox(ann, ""); len(found) != 1 || found[0].Kind != "PROVIDER_AWAY" || found[0].SubjectID != "service" || !found[0].Decidable {
		t.Errorf("the inbox has %+v", found)
	}
}

// payAt begins a payment with a provider and returns the code of the refusal.
func (s *site) payAt(provider, token, orderID string) string {
	s.t.Helper()
	var data struct{ PayOrder *UserErrors }
	out := s.ask(token, `mutation($o: ID!, $p: ID!, $k: String!) { payOrder(input: {orderId: $o, optionId: $p, idempotencyKey: $k}) { userErrors { code } } }`,
		map[string]any{"o": orderID, "p": provider, "k": uuid.NewString()})
	if out.into(s.t, &data); data.PayOrder == nil {
		return out.code()
	}
	return data.PayOrder.why()
}
