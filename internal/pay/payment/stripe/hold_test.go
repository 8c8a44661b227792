package stripe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/id"
)

func held(ref string, hold payment.Hold) payment.Known {
	k := known(ref, "")
	k.Hold, k.Entry, k.Number = hold, id.New[id.Waitlist](), ""
	return k
}

func TestStripesOwnServerAcceptsHolds(t *testing.T) {
	t.Parallel()
	m := startMock(t)
	for name, p := range map[string]*stripe.Provider{"checkout": provider(t, m.url), "element": onPage(t, m.url)} {
		m.asked = nil
		money, card := held("", payment.HoldMoney), held("", payment.HoldCard)
		for _, k := range []payment.Known{money, card} {
			made, err := p.Create(t.Context(), k.CreateInput)
			if err != nil || made.Ref == "" || (name == "element") == (made.ClientSecret == "") {
				t.Fatalf("%s: create: %+v, %v", name, made, err)
			}
		}
		// The mock answers each reading with an intent that waits for its buyer.
		for _, k := range []payment.Known{held("pi_1", payment.HoldMoney), held("seti_1", payment.HoldCard)} {
			if state, err := p.Query(t.Context(), k); err != nil || state.Phase != payment.PhaseOpen {
				t.Errorf("%s: query %s: %+v, %v", name, k.Ref, state, err)
			}
			if _, err := p.Close(t.Context(), k); err != nil {
				t.Errorf("%s: close %s: %v", name, k.Ref, err)
			}
			if payer, err := p.Payer(t.Context(), k.Ref); err != nil {
				t.Errorf("%s: payer of %s: %q, %v", name, k.Ref, payer, err)
			}
		}
		if _, err := p.Capture(t.Context(), held("pi_1", payment.HoldMoney)); err != nil {
			t.Errorf("%s: capture: %v", name, err)
		}
		first, last := m.asked[0], m.asked[2]
		manual, usage := "payment_intent_data[capture_method]", "mode"
		if name == "element" {
			manual, usage = "capture_method", "usage"
		}
		want := map[string]string{"mode": "setup", "usage": "off_session"}[usage]
		if first.form.Get(manual) != "manual" || first.key != money.Payment.String() || last.form.Get(usage) != want ||
			last.key != card.Payment.String() || m.asked[1].path != "POST /v1/customers" || last.form.Get("customer") == "" {
			t.Errorf("%s: requests %+v", name, m.asked[:3])
		}
		for _, a := range []asked{first, last} {
			if a.form.Get("metadata[entry]") == "" || a.form.Get("metadata[order]") != "" {
				t.Errorf("%s: metadata of %+v", name, a)
			}
		}
	}
}

func intent(of id.Payment, status string) string {
	amounts := map[string]string{"succeeded": `"amount_received":69900,`, "requires_capture": `"amount_capturable":69900,`}
	return fmt.Sprintf(`{"id":"pi_1","object":"payment_intent","status":%q,"amount":69900,%s"currency":"cny","metadata":{"payment":%q,"entry":"e"}}`, status, amounts[status], of)
}

func TestHeldMoneyIsCapturedOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	const at, lapsed = "/v1/payment_intents/pi_1", `{"error":{"type":"invalid_request_error","code":"charge_expired_for_capture"}}`
	k := held("pi_1", payment.HoldMoney)
	for name, c := range map[string]struct {
		by   map[string]string
		want payment.Phase
	}{
		"held":            {map[string]string{"POST " + at + "/capture": intent(k.Payment, "succeeded")}, payment.PhasePaid},
		"captured before": {map[string]string{"POST " + at + "/capture": shut, "POST " + at + "/cancel": shut, "GET " + at: intent(k.Payment, "succeeded")}, payment.PhasePaid},
		"lapsed":          {map[string]string{"POST " + at + "/capture": lapsed, "POST " + at + "/cancel": shut, "GET " + at: intent(k.Payment, "canceled")}, payment.PhaseDeclined},
		"not capturable":  {map[string]string{"POST " + at + "/capture": lapsed, "POST " + at + "/cancel": intent(k.Payment, "canceled")}, payment.PhaseDeclined},
	} {
		state, err := provider(t, answers(t, c.by)).Capture(t.Context(), k)
		if err != nil || state.Phase != c.want || c.want == payment.PhasePaid && (state.AmountMinor != 69900 || state.Transaction != "pi_1") {
			t.Errorf("%s: %+v, %v, want %s", name, state, err, c.want)
		}
	}
}

func TestASavedCardIsChargedOnceOrForgotten(t *testing.T) {
	t.Parallel()
	k := held("seti_1", payment.HoldCard)
	const at, intents = "/v1/setup_intents/seti_1", "/v1/payment_intents"
	setup := `{"id":"seti_1","object":"setup_intent","status":"succeeded","customer":"cus_1","payment_method":"pm_1"}`
	list := func(data string) string { return `{"object":"list","url":"/v1/payment_intents","data":[` + data + `]}` }
	declined := `{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds"}}`
	detach := "POST /v1/payment_methods/pm_1/detach"
	for name, c := range map[string]struct {
		close bool
		by    map[string]string
		want  payment.Phase
	}{
		"charged":           {false, map[string]string{"GET " + at: setup, "GET " + intents: list(""), "POST " + intents: intent(k.Payment, "succeeded")}, payment.PhasePaid},
		"charged before":    {false, map[string]string{"GET " + at: setup, "GET " + intents: list(intent(k.Payment, "succeeded"))}, payment.PhasePaid},
		"declined":          {false, map[string]string{"GET " + at: setup, "GET " + intents: list(""), "POST " + intents: declined, "POST " + at + "/cancel": shut, detach: `{"id":"pm_1"}`}, payment.PhaseDeclined},
		"declined before":   {false, map[string]string{"GET " + at: setup, "GET " + intents: list(intent(k.Payment, "requires_payment_method")), "POST " + at + "/cancel": shut, detach: `{"id":"pm_1"}`}, payment.PhaseDeclined},
		"closed":            {true, map[string]string{"POST " + at + "/cancel": shut, "GET " + at: setup, detach: `{"id":"pm_1"}`, "GET " + intents: list("")}, payment.PhaseClosed},
		"charged, closed":   {true, map[string]string{"POST " + at + "/cancel": shut, "GET " + at: setup, detach: `{"id":"pm_1"}`, "GET " + intents: list(intent(k.Payment, "succeeded"))}, payment.PhasePaid},
		"unconfirmed":       {true, map[string]string{"POST " + at + "/cancel": strings.Replace(setup, "succeeded", "canceled", 1)}, payment.PhaseClosed},
		"of another's list": {false, map[string]string{"GET " + at: setup, "GET " + intents: list(intent(id.New[id.Payment](), "succeeded")), "POST " + intents: intent(k.Payment, "succeeded")}, payment.PhasePaid},
	} {
		p, call := provider(t, answers(t, c.by)), (*stripe.Provider).Capture
		if c.close {
			call = (*stripe.Provider).Close
		}
		if state, err := call(p, t.Context(), k); err != nil || state.Phase != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, state, err, c.want)
		}
	}
}

func TestEventsOfHoldsAreReported(t *testing.T) {
	t.Parallel()
	p := provider(t, "http://127.0.0.1:1")
	ours := id.Payment(uuid.New())
	setup := fmt.Sprintf(`{"id":"seti_1","object":"setup_intent","status":"succeeded","metadata":{"payment":%q,"entry":"e"}}`, ours)
	lapsed := strings.Replace(intent(ours, "canceled"), `"id"`, `"cancellation_reason":"automatic","id"`, 1)
	foreign := strings.Replace(intent(ours, "requires_capture"), `"entry":"e"`, `"shown_by":"element"`, 1)
	for _, c := range []struct {
		kind   api.EventType
		object string
		want   payment.EventKind // "" = needs no action
	}{
		{api.EventTypePaymentIntentAmountCapturableUpdated, intent(ours, "requires_capture"), payment.EventAuthorized},
		{api.EventTypePaymentIntentAmountCapturableUpdated, foreign, ""},
		{api.EventTypeSetupIntentSucceeded, setup, payment.EventAuthorized},
		{api.EventTypeSetupIntentSucceeded, `{"id":"seti_1","object":"setup_intent","metadata":{}}`, ""},
		{api.EventTypePaymentIntentSucceeded, intent(ours, "succeeded"), payment.EventSucceeded},
		{api.EventTypePaymentIntentCanceled, intent(ours, "canceled"), payment.EventClosed},
		{api.EventTypePaymentIntentCanceled, lapsed, payment.EventDeclined},
	} {
		body := event(string(c.kind), c.object)
		e, err := p.Callback(sign(body, secret, time.Now()), []byte(body))
		if err != nil || e.Kind != c.want || c.want != "" && e.Payment != ours {
			t.Errorf("%s: %+v, %v, want %q", c.kind, e, err, c.want)
		}
	}
}
