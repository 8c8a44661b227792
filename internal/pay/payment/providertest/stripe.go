package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// StripeSecret signs the events of the imitated Stripe.
const StripeSecret = "whsec_of_a_test"

// Stripe imitates the parts of Stripe's API that the shop calls, with the state that
// stripe-mock does not keep. Sessions and payment intents are named after our payment.
type Stripe struct{ *Bank }

// ServeHTTP answers the calls of Checkout Sessions and Refunds.
func (s Stripe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := url.ParseQuery(string(take(r)))
	if err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		stripeError(w, "authentication_required")
		return
	}
	paymentID, expire := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/checkout/sessions/cs_"), "/expire")
	switch {
	case r.URL.Path == "/v1/checkout/sessions":
		expires := time.Unix(minor(form.Get("expires_at")), 0)
		if expires.Before(s.now().Add(30 * time.Minute)) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"type":"invalid_request_error","param":"expires_at"}}`)
			return
		}
		if r.Header.Get("Idempotency-Key") != form.Get("client_reference_id") {
			stripeError(w, "idempotency_key_in_use")
			return
		}
		_, _ = w.Write(stripeSession(s.open(Charge{
			Payment:     parse(form.Get("client_reference_id")),
			AmountMinor: minor(form.Get("line_items[0][price_data][unit_amount]")) * minor(form.Get("line_items[0][quantity]")),
			Currency:    strings.ToUpper(form.Get("line_items[0][price_data][currency]")), ExpiresAt: expires,
		})))
	case r.URL.Path == "/v1/refunds" && r.Method == http.MethodGet:
		list := []map[string]any{}
		for _, key := range s.refunds(strings.TrimPrefix(r.URL.Query().Get("payment_intent"), "pi_")) {
			list = append(list, map[string]any{"id": "re_" + key.String(), "object": "refund", "status": "succeeded",
				"metadata": map[string]any{"refund": key}})
		}
		text, _ := json.Marshal(map[string]any{"object": "list", "url": r.URL.Path, "has_more": false, "data": list})
		_, _ = w.Write(text)
	case r.URL.Path == "/v1/refunds":
		if err := s.refund(strings.TrimPrefix(form.Get("payment_intent"), "pi_"),
			id.Refund(parse(r.Header.Get("Idempotency-Key"))), minor(form.Get("amount"))); err != nil {
			stripeError(w, "")
			return
		}
		fmt.Fprint(w, `{"id":"re_1","object":"refund","status":"succeeded"}`)
	case strings.HasPrefix(r.URL.Path, "/v1/payment_intents/"):
		fmt.Fprintf(w, `{"id":%q,"object":"payment_intent","latest_charge":{"id":"ch_1","object":"charge","payment_method_details":{"type":"card","card":{"fingerprint":%q}}}}`,
			path.Base(r.URL.Path), Payer)
	default:
		c, ok := s.of(parse(paymentID))
		if !ok || expire && c.Phase != payment.PhaseOpen {
			stripeError(w, "resource_missing")
			return
		}
		if expire {
			c, _ = s.close(c.Payment)
		}
		_, _ = w.Write(stripeSession(c))
	}
}

func stripeError(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","code":%q}}`, code)
}

func stripeSession(c Charge) []byte {
	status, paid := "open", "unpaid"
	switch c.Phase {
	case payment.PhasePaid:
		status, paid = "complete", "paid"
	case payment.PhaseClosed, payment.PhaseDeclined:
		status = "expired"
	case payment.PhaseOpen, payment.PhaseUnknown, payment.PhaseAuthorized:
	}
	session := map[string]any{
		"id": "cs_" + c.Payment.String(), "object": "checkout.session", "url": "https://checkout.example/" +
			c.Payment.String(), "status": status,
		"payment_status": paid, "amount_total": c.AmountMinor, "currency": strings.ToLower(c.Currency),
		"client_reference_id": c.Payment.String(),
	}
	if c.Transaction != "" {
		session["payment_intent"] = "pi_" + c.Transaction
	}
	text, _ := json.Marshal(session)
	return text
}

// Report returns an event. A declined card is not reported.
func (s Stripe) Report(id string, c Charge) (http.Header, []byte, bool) {
	kind, ok := map[payment.Phase]string{
		payment.PhasePaid: "checkout.session.completed", payment.PhaseClosed: "checkout.session.expired",
	}[c.Phase]
	body := fmt.Appendf(nil, `{"id":%q,"object":"event","created":%d,"type":%q,"data":{"object":%s}}`, id, s.now().Unix(),
		kind, stripeSession(c))
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: StripeSecret,
		Timestamp: time.Now()})
	return http.Header{"Stripe-Signature": {signed.Header}}, body, ok
}
