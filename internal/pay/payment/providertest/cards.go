package providertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"seckill/internal/platform/id"
)

// Cards imitates the parts of Stripe's API that hold and charge cards, with the state that
// stripe-mock does not keep: payment intents of manual capture, setup intents, and payments while
// the buyer is away. It is safe for concurrent use.
type Cards struct {
	now   func() time.Time
	mu    sync.Mutex
	holds map[id.Payment]*Hold // guarded by mu
}

// Hold is what Cards knows of a payment.
type Hold struct {
	Saved    bool   // the card, by a setup intent
	Status   string // of the intent
	Card     string // fingerprint
	Declines bool   // the card, when it is captured or charged
	Detached bool
	Amount   int64
	Received int64 // if it is not the amount
	Currency string
	Entry    string
	Charges  int  // that took the money
	Tried    bool // the card was charged, or declined
	Refunded int64
}

// NewCards returns an account without payments.
func NewCards(now func() time.Time) *Cards { return &Cards{now: now, holds: map[id.Payment]*Hold{}} }

// Confirm records that the buyer has confirmed a payment with a card. It reports whether the
// payment was open.
func (c *Cards) Confirm(of id.Payment, card string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holds[of]
	if h == nil || h.Status != "requires_payment_method" {
		return false
	}
	h.Card, h.Status = card, "requires_capture"
	if h.Saved {
		h.Status = "succeeded"
	}
	return true
}

// Lapse ends a hold as Stripe does after a week.
func (c *Cards) Lapse(of id.Payment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.holds[of]; h.Status == "requires_capture" {
		h.Status = "canceled"
	}
}

// Capture takes some of the money that is held for a payment, as in Stripe's dashboard. Stripe releases the
// rest.
func (c *Cards) Capture(of id.Payment, amount int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.holds[of]; h.end("POST payment_intents capture") == "" {
		h.Received = amount
	}
}

// Decline makes the card of a payment decline what follows.
func (c *Cards) Decline(of id.Payment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds[of].Declines = true
}

// Accept ends Decline.
func (c *Cards) Accept(of id.Payment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds[of].Declines = false
}

// Hold returns what is known of a payment.
func (c *Cards) Hold(of id.Payment) Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.holds[of]; h != nil {
		return *h
	}
	return Hold{}
}

// Held returns how many cards are held, and Charged how often money was taken.
func (c *Cards) Held() (held, charged int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.holds {
		charged += h.Charges
		if h.Status == "requires_capture" || h.Status == "requires_payment_method" ||
			h.Saved && h.Status == "succeeded" && !h.Detached && h.Charges == 0 {
			held++
		}
	}
	return held, charged
}

// ServeHTTP answers the calls about intents, customers and cards.
func (c *Cards) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, err := url.ParseQuery(string(take(r)))
	if err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		stripeError(w, "authentication_required")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	of := parse(form.Get("metadata[payment]"))
	if len(parts) > 1 {
		of = parse(parts[1][strings.LastIndex(parts[1], "_")+1:])
	}
	h, act := c.holds[of], r.Method+" "+parts[0]
	if len(parts) > 2 {
		act += " " + parts[2]
	}
	if parts[0] == "refunds" {
		h.refund(w, r.Method, minor(form.Get("amount")))
		return
	}
	switch act {
	case "POST customers":
		fmt.Fprintf(w, `{"id":"cus_%s","object":"customer"}`, of)
		return
	case "POST setup_intents":
		if h == nil {
			h = &Hold{Saved: true, Status: "requires_payment_method", Entry: form.Get("metadata[entry]")}
			c.holds[of] = h
		}
	case "POST payment_intents":
		if form.Get("customer") != "" {
			c.charge(w, of, form)
			return
		}
		if h == nil {
			h = &Hold{Status: "requires_payment_method", Amount: minor(form.Get("amount")), Currency: form.Get("currency"),
				Entry: form.Get("metadata[entry]")}
			c.holds[of] = h
		}
	case "GET payment_intents":
		if len(parts) == 1 {
			c.list(w, parse(strings.TrimPrefix(r.URL.Query().Get("customer"), "cus_")))
			return
		}
	case "POST payment_intents capture", "POST payment_intents cancel", "POST setup_intents cancel":
		if code := h.end(act); code != "" {
			stripeError(w, code)
			return
		}
	case "POST payment_methods detach":
		if h == nil || h.Detached {
			stripeError(w, "resource_missing")
			return
		}
		h.Detached = true
		fmt.Fprintf(w, `{"id":"pm_%s","object":"payment_method"}`, of)
		return
	}
	switch {
	case h == nil:
		stripeError(w, "resource_missing")
	case parts[0] == "setup_intents":
		_, _ = w.Write(setupIntent(of, h))
	default:
		_, _ = w.Write(paymentIntent("pi_"+of.String(), of, h))
	}
}

// refund answers the calls about refunds of a hold.
func (h *Hold) refund(w http.ResponseWriter, method string, amount int64) {
	switch {
	case method == http.MethodGet:
		fmt.Fprint(w, `{"object":"list","url":"/v1/refunds","has_more":false,"data":[]}`)
	case h == nil || h.Declines:
		fmt.Fprint(w, `{"id":"re_1","object":"refund","status":"failed","failure_reason":"expired_or_canceled_card"}`)
	default:
		h.Refunded += amount
		fmt.Fprint(w, `{"id":"re_1","object":"refund","status":"succeeded"}`)
	}
}

// end captures or cancels, and returns the code of the error.
func (h *Hold) end(act string) (code string) {
	switch {
	case act == "POST payment_intents capture":
		if h == nil || h.Status != "requires_capture" || h.Declines {
			return "charge_expired_for_capture"
		}
		h.Status, h.Charges = "succeeded", h.Charges+1
	case h == nil || h.Status == "succeeded" || h.Status == "canceled":
		return strings.TrimSuffix(strings.Fields(act)[1], "s") + "_unexpected_state"
	default:
		h.Status = "canceled"
	}
	return ""
}

// charge takes money by a saved card.
func (c *Cards) charge(w http.ResponseWriter, of id.Payment, form url.Values) {
	h := c.holds[of]
	if h == nil || h.Detached || form.Get("off_session") != "true" || form.Get("confirm") != "true" {
		stripeError(w, "payment_method_unexpected_state")
		return
	}
	if h.Amount, h.Currency = minor(form.Get("amount")), form.Get("currency"); h.Declines {
		h.Tried = true
		w.WriteHeader(http.StatusPaymentRequired)
		fmt.Fprint(w, `{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds"}}`)
		return
	}
	if !h.Tried {
		h.Charges++
	}
	h.Tried = true
	_, _ = w.Write(chargeIntent(of, h))
}

// list returns the payments of a customer.
func (c *Cards) list(w http.ResponseWriter, of id.Payment) {
	data := "[]"
	if h := c.holds[of]; h != nil && h.Tried {
		data = "[" + string(chargeIntent(of, h)) + "]"
	}
	fmt.Fprintf(w, `{"object":"list","url":"/v1/payment_intents","has_more":false,"data":%s}`, data)
}

// chargeIntent is the intent that charged a saved card.
func chargeIntent(of id.Payment, h *Hold) []byte {
	charge := *h
	if charge.Status = "requires_payment_method"; h.Charges > 0 {
		charge.Status = "succeeded"
	}
	return paymentIntent("pi_charge_"+of.String(), of, &charge)
}

func paymentIntent(name string, of id.Payment, h *Hold) []byte {
	intent := map[string]any{
		"id": name, "object": "payment_intent", "status": h.Status, "amount": h.Amount, "currency": h.Currency,
		"client_secret": name + "_secret_1", "metadata": map[string]string{"payment": of.String(), "entry": h.Entry},
		"latest_charge": map[string]any{"id": "ch_1", "object": "charge",
			"payment_method_details": map[string]any{"type": "card", "card": map[string]any{"fingerprint": h.Card}}},
	}
	switch h.Status {
	case "succeeded":
		intent["amount_received"] = cmp.Or(h.Received, h.Amount)
	case "requires_capture":
		intent["amount_capturable"] = h.Amount
	}
	text, _ := json.Marshal(intent)
	return text
}

func setupIntent(of id.Payment, h *Hold) []byte {
	intent := map[string]any{
		"id": "seti_" + of.String(), "object": "setup_intent", "status": h.Status, "customer": "cus_" + of.String(),
		"client_secret": "seti_" + of.String() + "_secret_1",
		"metadata":      map[string]string{"payment": of.String(), "entry": h.Entry},
	}
	if h.Card != "" {
		intent["payment_method"] = map[string]any{"id": "pm_" + of.String(), "object": "payment_method",
			"card": map[string]any{"fingerprint": h.Card}}
	}
	text, _ := json.Marshal(intent)
	return text
}

// Report returns the event about a payment as it is.
func (c *Cards) Report(event string, of id.Payment) (http.Header, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holds[of]
	object := paymentIntent("pi_"+of.String(), of, h)
	kind := map[string]string{"requires_capture": "payment_intent.amount_capturable_updated",
		"succeeded": "payment_intent.succeeded", "canceled": "payment_intent.canceled"}[h.Status]
	if h.Saved {
		kind, object = "setup_intent.succeeded", setupIntent(of, h)
	}
	body := fmt.Appendf(nil, `{"id":%q,"object":"event","created":%d,"type":%q,"data":{"object":%s}}`, event,
		c.now().Unix(), kind, object)
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: StripeSecret,
		Timestamp: time.Now()})
	return http.Header{"Stripe-Signature": {signed.Header}}, body
}
