package payment_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

// offered returns the ids of the options of an order.
func (s *shop) offered(o *order.Order) string {
	var ids []string
	for _, option := range s.pay.Options(s.order(o)) {
		ids = append(ids, option.ID)
	}
	return strings.Join(ids, " ")
}

func TestAProviderThatIsAwayIsNotOfferedUntilItAnswers(t *testing.T) {
	t.Parallel()
	s := newShop(t, 12)
	s.patient(testenv.Wait, s.flaky, branch{Provider: sandbox.NewProvider(s.bank, "https://bank.example", s.signer, s.clock), name: "card"})
	calls, away := 0, true
	s.flaky.lose(func(call string) fate {
		calls++
		if away {
			return unsent
		}
		return fine
	})
	try := func() (*order.Order, error) {
		o := s.buy()
		_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-1"})
		return o, err
	}
	var o *order.Order
	for range 5 {
		var err error
		if o, err = try(); fault.CodeOf(err) != fault.Unavailable {
			t.Fatalf("got %v", err)
		}
	}
	if got := s.offered(o); got != "card" {
		t.Errorf("offered %q while the bank is away", got)
	}
	for _, option := range s.pay.AllOptions(s.order(o)) {
		if option.Away != (option.ID == sandbox.Name) {
			t.Errorf("%s away %t", option.ID, option.Away)
		}
	}
	before := calls
	o, err := try()
	if fault.CodeOf(err) != fault.Unavailable || calls != before {
		t.Errorf("%v after %d calls of a bank that is away", err, calls-before)
	}
	if p := s.payAt("card", o); p.String() == "" {
		t.Error("the other one cannot be chosen")
	}
	s.clock.Advance(31 * time.Second)
	if got := s.offered(s.buy()); got != "sandbox card" {
		t.Errorf("offered %q after half a minute", got)
	}
	if o, _ = try(); s.offered(o) != "card" {
		t.Error("still away, and offered")
	}
	s.clock.Advance(31 * time.Second)
	away = false
	if s.payAt(sandbox.Name, o); s.offered(o) != "sandbox card" {
		t.Error("it answers, and is not offered")
	}
	away = true
	if o, _ = try(); s.offered(o) != "sandbox card" {
		t.Error("one lost call hides it")
	}
}

// TestRefusalsOfRequestsDoNotHideAProvider has more refusals than failures that would.
func TestRefusalsOfRequestsDoNotHideAProvider(t *testing.T) {
	t.Parallel()
	s := newShop(t, 12)
	refusing := refuser{Provider: sandbox.NewProvider(s.bank, "https://bank.example", s.signer, s.clock)}
	s.patient(testenv.Wait, refusing, branch{Provider: sandbox.NewProvider(s.bank, "https://bank.example", s.signer, s.clock), name: "card"})
	for range 6 {
		o := s.buy()
		_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: "refusing", IdempotencyKey: "key-0"})
		var bad fault.BadField
		if !errors.As(err, &bad) || bad.Rule != fault.NotOffered {
			t.Fatalf("got %v", err)
		}
		if got := s.offered(o); got != "refusing card" {
			t.Fatalf("offered %q after a refusal", got)
		}
		if p := s.payAt("card", o); p.String() == "" { // the refused payment is no obstacle
			t.Error("the other one cannot be chosen")
		}
	}
	o := s.buy()
	_, _ = s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: "refusing", IdempotencyKey: "key-1"})
	if _, err := s.pay.Cancel(t.Context(), o.ID, o.User, ""); err != nil {
		t.Errorf("cancel after a refusal: %v", err)
	}
}

// refuser is a provider that refuses all requests.
type refuser struct{ payment.Provider }

func (refuser) Name() string { return "refusing" }

func (refuser) Create(context.Context, payment.CreateInput) (payment.Created, error) {
	return payment.Created{}, fmt.Errorf("create: %w", payment.Refusal(400, errors.New("expires_at is too late")))
}

func TestCallsOfProvidersAndTheLagOfReportsAreMeasured(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	registry := prometheus.NewRegistry()
	s.registerer = registry
	s.restart()
	p := s.begin(s.buy(), "key-1")
	s.approve(p, sandbox.Delayed)
	s.clock.Advance(21 * time.Second)
	s.step(s.courier.Step)
	s.settleDown()
	declined := s.begin(s.buy(), "key-1")
	s.must(s.bank.Decline(t.Context(), s.charge(declined).ID, "CARD_DECLINED"))
	s.settleDown()
	s.approveRefund(s.askRefund(&order.Order{ID: p.Order, User: p.User}), false)
	s.settleDown()
	families, err := registry.Gather()
	s.must(err)
	found, results := map[string]bool{}, map[string]float64{}
	for _, f := range families {
		found[f.GetName()] = true
		switch f.GetName() {
		case "seckill_payment_results_total":
			for _, m := range f.GetMetric() {
				results[m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
			}
		case "seckill_payment_report_lag_seconds":
			if sum := f.GetMetric()[0].GetHistogram().GetSampleSum(); sum < 20 {
				t.Errorf("the report that came after 21 s lags %g s", sum)
			}
		}
	}
	want := map[string]float64{"created": 2, "paid": 1, "declined": 1, "closed": 0, "held": 0, "refunded": 1, "disputed": 0}
	if !maps.Equal(results, want) {
		t.Errorf("results %v, want %v", results, want)
	}
	for _, name := range []string{"seckill_payment_call_seconds", "seckill_payment_report_lag_seconds", "seckill_payment_provider_away"} {
		if !found[name] {
			t.Errorf("no %s", name)
		}
	}
}
