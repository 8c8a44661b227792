package stripe_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// onPage returns a provider whose payments are made on the page of the order.
func onPage(t *testing.T, at string) *stripe.Provider {
	t.Helper()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return stripe.New(stripe.Config{
		Key: "sk_test_123", WebhookSecret: secret, PublishableKey: "pk_test_1", APIURL: at, Clock: clock.NewFake(deadline), Client: client,
	})
}

func TestStripesOwnServerAcceptsPaymentsOnThePage(t *testing.T) {
	t.Parallel()
	m := startMock(t)
	p := onPage(t, m.url)
	if e, ok := p.Embedding(); !ok || e.Key != "pk_test_1" || e.Script != stripe.ScriptURL || p.Terms().Kind != payment.Embedded {
		t.Errorf("embedding %+v, terms %+v", e, p.Terms())
	}
	k := known("", "")
	made, err := p.Create(t.Context(), k.CreateInput)
	if err != nil || !strings.HasPrefix(made.Ref, "pi_") || made.ClientSecret == "" || made.RedirectURL != "" {
		t.Fatalf("create: %+v, %v", made, err)
	}
	if _, err := p.Close(t.Context(), k); err != nil { // the reply to its creation was lost
		t.Errorf("close: %v", err)
	}
	k.Ref = made.Ref
	if state, err := p.Query(t.Context(), k); err != nil || state.Phase != payment.PhaseOpen {
		t.Errorf("query: %+v, %v", state, err)
	}
	if _, err := p.Close(t.Context(), k); err != nil {
		t.Errorf("close: %v", err)
	}
	var paths []string
	for _, a := range m.asked {
		paths = append(paths, a.path)
	}
	const create, intents = "POST /v1/payment_intents", "/v1/payment_intents/"
	if len(paths) != 5 || paths[0] != create || paths[1] != create || !strings.HasSuffix(paths[2], "/cancel") ||
		paths[3] != "GET "+intents+made.Ref || paths[4] != "POST "+intents+made.Ref+"/cancel" {
		t.Fatalf("requests %q", paths)
	}
	first := m.asked[0]
	for field, want := range map[string]string{
		"amount": "69900", "currency": "cny", "payment_method_types[0]": "card", "metadata[payment]": k.Payment.String(), "metadata[shown_by]": "element",
	} {
		if got := first.form.Get(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if first.key != k.Payment.String() || m.asked[1].key != first.key {
		t.Errorf("idempotency keys %q and %q", first.key, m.asked[1].key)
	}
}

// Payments that were begun on a page of Checkout end there, whatever the setting is now.
func TestAPaymentKeepsItsWayWhenTheSettingChanges(t *testing.T) {
	t.Parallel()
	session := fmt.Sprintf(paid, uuid.New())
	state, err := onPage(t, answers(t, map[string]string{"GET /v1/checkout/sessions/cs_1": session})).Query(t.Context(), known("cs_1", ""))
	if err != nil || state.Phase != payment.PhasePaid {
		t.Errorf("a session: %+v, %v", state, err)
	}
	const intent = `{"id":"pi_1","object":"payment_intent","status":"succeeded","amount":69900,"amount_received":69900,"currency":"cny"}`
	const over = `{"error":{"type":"invalid_request_error","code":"payment_intent_unexpected_state"}}`
	state, err = provider(t, answers(t, map[string]string{"POST /v1/payment_intents/pi_1/cancel": over, "GET /v1/payment_intents/pi_1": intent})).Close(t.Context(), known("pi_1", ""))
	if err != nil || state.Phase != payment.PhasePaid || state.Transaction != "pi_1" || state.AmountMinor != 69900 || state.Currency != "CNY" {
		t.Errorf("an intent that was paid before it was cancelled: %+v, %v", state, err)
	}
}

func TestIntentsOfThePageAreReportedAndThoseOfCheckoutAreNot(t *testing.T) {
	t.Parallel()
	p := onPage(t, "http://127.0.0.1:1")
	ours := id.Payment(uuid.New())
	const text = `{"id":"pi_1","object":"payment_intent","amount":69900,"amount_received":69900,"currency":"cny","metadata":{"payment":%q,"shown_by":%q}}`
	for _, c := range []struct {
		kind    api.EventType
		shownBy string
		want    payment.EventKind
	}{
		{api.EventTypePaymentIntentSucceeded, "element", payment.EventSucceeded},
		{api.EventTypePaymentIntentSucceeded, "", ""}, // its session is reported
		{api.EventTypePaymentIntentCanceled, "element", payment.EventClosed},
		{api.EventTypePaymentIntentCanceled, "", ""},
		{api.EventTypePaymentIntentCreated, "element", ""},
	} {
		body := event(string(c.kind), fmt.Sprintf(text, ours, c.shownBy))
		e, err := p.Callback(sign(body, secret, time.Now()), []byte(body))
		if err != nil || e.Kind != c.want {
			t.Errorf("%s by %q: %+v, %v, want %q", c.kind, c.shownBy, e, err, c.want)
		}
		if c.want == payment.EventSucceeded && (e.Payment != ours || e.Ref != "pi_1" || e.Transaction != "pi_1" || e.AmountMinor != 69900 || e.Currency != "CNY") {
			t.Errorf("event %+v", e)
		}
	}
}
