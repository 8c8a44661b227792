package stripe_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	api "github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
)

const secret = "whsec_of_a_test"

var deadline = time.Date(2026, 11, 20, 20, 15, 0, 0, time.UTC)

// mock is Stripe's own mock server, which checks requests against the specification of the
// API. It keeps no state.
type mock struct {
	url   string
	mu    sync.Mutex
	asked []asked // guarded by mu
}

type asked struct {
	path, key string
	form      url.Values
}

// startMock builds stripe-mock from its module, starts it, and records what it is asked.
func startMock(t *testing.T) *mock {
	t.Helper()
	dir := t.TempDir()
	binary, socket := filepath.Join(dir, "stripe-mock"), filepath.Join(dir, "socket")
	build := exec.CommandContext(t.Context(), "go", "build", "-modfile=../../../../tools/stripe-mock/go.mod", "-o", binary, "github.com/stripe/stripe-mock")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build stripe-mock: %v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, "-http-unix", socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("stripe-mock ended")
		}
		if strings.Contains(lines.Text(), "Listening for HTTP") {
			break
		}
	}
	m := &mock{}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "stripe"}) }}
	m.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := readAll(t, r)
		form, err := url.ParseQuery(body)
		if err != nil {
			t.Error(err)
		}
		m.mu.Lock()
		m.asked = append(m.asked, asked{r.Method + " " + r.URL.Path, r.Header.Get("Idempotency-Key"), form})
		m.mu.Unlock()
		proxy.ServeHTTP(w, r)
	})
	return m
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// readAll returns the body of a request, which can be read again.
func readAll(t *testing.T, r *http.Request) string {
	t.Helper()
	var text strings.Builder
	if _, err := bufio.NewReader(r.Body).WriteTo(&text); err != nil {
		t.Error(err)
	}
	r.Body = http.NoBody
	if text.Len() > 0 {
		r.Body = readCloser{strings.NewReader(text.String())}
	}
	return text.String()
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func provider(t *testing.T, at string) *stripe.Provider {
	t.Helper()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return stripe.New(stripe.Config{
		Key: "sk_test_123", WebhookSecret: secret, APIURL: at, Clock: clock.NewFake(deadline), Client: client,
	})
}

func known(ref, transaction string) payment.Known {
	return payment.Known{Ref: ref, Transaction: transaction, CreateInput: payment.CreateInput{
		ReturnURL: returnURL,
		Payment:   id.New[id.Payment](), Order: id.New[id.Order](), Number: "1", Product: "Lamp/=&", Quantity: 3, Language: locale.English, AmountMinor: 69900, Currency: "CNY", CreatedAt: deadline.Add(-15 * time.Minute), ExpiresAt: deadline,
	}}
}

// returnURL is where providers send the buyer.
const returnURL = "https://store.example/orders/1"

func TestStripesOwnServerAcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	m := startMock(t)
	p := provider(t, m.url)
	k := known("cs_test_1", "pi_1")
	made, err := p.Create(t.Context(), k.CreateInput)
	if err != nil || made.Ref == "" {
		t.Fatalf("create: %+v, %v", made, err)
	}
	if _, err := p.Query(t.Context(), k); err != nil {
		t.Errorf("query: %v", err)
	}
	if _, err := p.Close(t.Context(), k); err != nil {
		t.Errorf("close: %v", err)
	}
	refund := payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, AmountMinor: 100, Currency: "CNY"}
	if err := p.Refund(t.Context(), refund); err != nil {
		t.Errorf("partial refund: %v", err)
	}
	if len(m.asked) != 5 {
		t.Fatalf("%d requests", len(m.asked))
	}
	create, sent := m.asked[0], m.asked[4]
	order := returnURL
	for field, want := range map[string]string{
		"client_reference_id": k.Payment.String(), "line_items[0][price_data][unit_amount]": "23300", "line_items[0][quantity]": "3", "locale": "en",
		"line_items[0][price_data][product_data][name]": "Lamp/=&", "line_items[0][price_data][product_data][description]": "Order 1",
		"payment_intent_data[description]": "Lamp/=& × 3 · Order 1", "line_items[0][price_data][currency]": "cny",
		"success_url": order, "cancel_url": order, "expires_at": fmt.Sprint(deadline.Add(31 * time.Minute).Unix()), "mode": "payment",
	} {
		if got := create.form.Get(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if create.key != k.Payment.String() || sent.key != refund.Refund.String() {
		t.Errorf("idempotency keys %q and %q", create.key, sent.key)
	}
	if _, err := p.Unreported(t.Context(), "https://shop.example/webhooks/payments/stripe"); err != nil {
		t.Errorf("endpoints: %v", err)
	}
	if m.asked[2].path != "POST /v1/checkout/sessions/cs_test_1/expire" || sent.form.Get("amount") != "100" || sent.form.Get("payment_intent") != "pi_1" {
		t.Errorf("requests %+v", m.asked)
	}
}

// answers serves recorded answers by method and path.
func answers(t *testing.T, by map[string]string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, ok := by[r.Method+" "+r.URL.Path]
		if !ok {
			t.Errorf("unexpected %s %s", r.Method, r.URL.Path)
		}
		if strings.Contains(text, `"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, text)
	})
}

const (
	paid     = `{"id":"cs_1","object":"checkout.session","status":"complete","payment_status":"paid","amount_total":69900,"currency":"cny","payment_intent":"pi_1","client_reference_id":"%s"}`
	open     = `{"id":"cs_1","object":"checkout.session","status":"open","payment_status":"unpaid","amount_total":69900,"currency":"cny"}`
	gone     = `{"id":"cs_1","object":"checkout.session","status":"expired","payment_status":"unpaid","amount_total":69900,"currency":"cny"}`
	disputed = `{"id":"dp_1","object":"dispute","status":%q,"amount":69900,"currency":"cny","payment_intent":"pi_1","charge":"ch_1"}`
	busy     = `{"id":"cs_1","object":"checkout.session","status":"complete","payment_status":"unpaid","amount_total":69900,"currency":"cny"}`
	late     = `{"error":{"type":"invalid_request_error","param":"expires_at","message":"The expires_at timestamp must be at least 30 minutes from Checkout Session creation."}}`
	shut     = `{"error":{"type":"invalid_request_error","message":"Only Checkout Sessions with a status in [\"open\"] can be expired."}}`
	back     = `{"error":{"type":"invalid_request_error","code":"charge_already_refunded","message":"Charge has already been refunded."}}`
	much     = `{"error":{"type":"invalid_request_error","message":"Refund amount is greater than unrefunded amount on charge."}}`
)

func TestAClosedPaymentCannotBePaidAndAPaidOneStaysPaid(t *testing.T) {
	t.Parallel()
	const sessions = "/v1/checkout/sessions"
	for name, c := range map[string]struct {
		ref  string
		by   map[string]string
		want payment.Phase
	}{
		"open":                    {"cs_1", map[string]string{"POST " + sessions + "/cs_1/expire": gone}, payment.PhaseClosed},
		"paid before":             {"cs_1", map[string]string{"POST " + sessions + "/cs_1/expire": shut, "GET " + sessions + "/cs_1": paid}, payment.PhasePaid},
		"expired before":          {"cs_1", map[string]string{"POST " + sessions + "/cs_1/expire": shut, "GET " + sessions + "/cs_1": gone}, payment.PhaseClosed},
		"not confirmed yet":       {"cs_1", map[string]string{"POST " + sessions + "/cs_1/expire": shut, "GET " + sessions + "/cs_1": busy}, payment.PhaseOpen},
		"reply to creation lost":  {"", map[string]string{"POST " + sessions: open, "POST " + sessions + "/cs_1/expire": gone}, payment.PhaseClosed},
		"never created, too late": {"", map[string]string{"POST " + sessions: late}, payment.PhaseClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, err := provider(t, answers(t, c.by)).Close(t.Context(), known(c.ref, ""))
			if err != nil || state.Phase != c.want {
				t.Errorf("%+v, %v, want %s", state, err, c.want)
			}
			if state.Phase == payment.PhasePaid && (state.Transaction != "pi_1" || state.AmountMinor != 69900 || state.Currency != "CNY") {
				t.Errorf("state %+v", state)
			}
		})
	}
}

func TestARefundIsSentUntilTheMoneyIsBack(t *testing.T) {
	t.Parallel()
	for text, done := range map[string]bool{
		`{"id":"re_1","object":"refund","status":"succeeded"}`: true, `{"id":"re_1","object":"refund","status":"pending"}`: true,
		`{"id":"re_1","object":"refund","status":"failed","failure_reason":"lost_or_stolen_card"}`: false, back: true, much: false,
	} {
		p := provider(t, answers(t, map[string]string{"GET /v1/refunds": `{"object":"list","data":[]}`, "POST /v1/refunds": text}))
		err := p.Refund(t.Context(), payment.RefundInput{Refund: id.New[id.Refund](), Paid: known("cs_1", "pi_1"), AmountMinor: 1, Currency: "CNY"})
		if (err == nil) != done {
			t.Errorf("%s: %v", text, err)
		}
		gaveUp, ok := errors.AsType[payment.RefundFailed](err)
		if ok != strings.Contains(text, "lost_or_stolen_card") || ok && gaveUp.Why != "lost_or_stolen_card" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Stripe forgets idempotency keys after a day: a part would go back twice.
func TestARefundOfAPartThatStripeHasIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for status, done := range map[string]bool{"succeeded": true, "pending": true, "failed": false} {
		in := payment.RefundInput{Refund: id.New[id.Refund](), Paid: known("cs_1", "pi_1"), AmountMinor: 1, Currency: "CNY"}
		list := fmt.Sprintf(`{"object":"list","url":"/v1/refunds","data":[{"id":"re_0","metadata":{}},{"id":"re_1","status":%q,"metadata":{"refund":%q}}]}`, status, in.Refund)
		p := provider(t, answers(t, map[string]string{"GET /v1/refunds": list})) // a POST fails
		if err := p.Refund(t.Context(), in); (err == nil) != done {
			t.Errorf("%s: %v", status, err)
		}
	}
}

// event is a call-back of Stripe.
func event(kind, object string) string {
	return fmt.Sprintf(`{"id":"evt_1","object":"event","api_version":"2020-08-27","created":1795204800,"type":%q,"data":{"object":%s}}`, kind, object)
}

func sign(body, by string, at time.Time) http.Header {
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: by, Timestamp: at})
	return http.Header{"Stripe-Signature": {signed.Header}}
}

// The buyer's bank sends the money back to Stripe, days after Stripe took the refund.
func TestARefundThatFailsAfterStripeTookItIsReported(t *testing.T) {
	t.Parallel()
	p := provider(t, "http://127.0.0.1:1")
	refund, paid := id.Refund(uuid.New()), id.Payment(uuid.New())
	const text = `{"id":"re_1","object":"refund","amount":69900,"currency":"cny","status":%q,"failure_reason":"expired_or_canceled_card","metadata":{%s}}`
	ours := fmt.Sprintf(`"refund":%q,"payment":%q`, refund, paid)
	for _, c := range []struct {
		kind             api.EventType
		status, metadata string
		want             payment.EventKind // "" = needs no action
	}{
		{api.EventTypeRefundFailed, "failed", ours, payment.EventRefundFailed},
		{api.EventTypeRefundUpdated, "failed", ours, payment.EventRefundFailed},
		{api.EventTypeChargeRefundUpdated, "canceled", ours, payment.EventRefundFailed},
		{api.EventTypeRefundUpdated, "succeeded", ours, ""},
		{api.EventTypeRefundFailed, "failed", "", ""},             // made in the dashboard
		{api.EventTypeRefundFailed, "failed", `"refund":"7"`, ""}, // of other software
	} {
		body := event(string(c.kind), fmt.Sprintf(text, c.status, c.metadata))
		e, err := p.Callback(sign(body, secret, time.Now()), []byte(body))
		if err != nil || e.Kind != c.want {
			t.Errorf("%s %s: %+v, %v, want %q", c.kind, c.status, e, err, c.want)
		}
		if c.want != "" && (e.ID != "evt_1" || e.Refund != refund || e.Payment != paid || e.Reason != "expired_or_canceled_card" || e.AmountMinor != 69900 || e.Currency != "CNY") {
			t.Errorf("event %+v", e)
		}
		if _, err := p.Callback(sign(body, "whsec_other", time.Now()), []byte(body)); !errors.Is(err, payment.ErrForged) {
			t.Errorf("forged: %v", err)
		}
	}
}

func TestOnlySignedEventsOfOurPaymentsCount(t *testing.T) {
	t.Parallel()
	p := provider(t, "http://127.0.0.1:1")
	ours := id.Payment(uuid.New())
	whole := fmt.Sprintf(paid, ours)
	for _, c := range []struct {
		kind, session string
		want          payment.EventKind // "" = needs no action
	}{
		{string(api.EventTypeCheckoutSessionCompleted), whole, payment.EventSucceeded},
		{string(api.EventTypeCheckoutSessionCompleted), strings.Replace(whole, `"paid"`, `"unpaid"`, 1), ""},
		{string(api.EventTypeCheckoutSessionAsyncPaymentFailed), whole, payment.EventDeclined},
		{string(api.EventTypeCheckoutSessionExpired), whole, payment.EventClosed},
		{string(api.EventTypePaymentIntentPaymentFailed), `{"id":"pi_9","object":"payment_intent","metadata":{}}`, ""},
		{string(api.EventTypeCheckoutSessionCompleted), fmt.Sprintf(paid, "another-shop-7"), ""},
		{"customer.created", `{"id":"cus_1","object":"customer"}`, ""},
		{string(api.EventTypeChargeDisputeCreated), fmt.Sprintf(disputed, "needs_response"), payment.EventDisputed},
		{string(api.EventTypeChargeDisputeUpdated), fmt.Sprintf(disputed, "under_review"), ""},
		{string(api.EventTypeChargeDisputeClosed), fmt.Sprintf(disputed, "won"), payment.EventDisputeWon},
		{string(api.EventTypeChargeDisputeClosed), fmt.Sprintf(disputed, "lost"), payment.EventDisputeLost},
	} {
		body := event(c.kind, c.session)
		e, err := p.Callback(sign(body, secret, time.Now()), []byte(body))
		if err != nil || e.Kind != c.want {
			t.Errorf("%s: %+v, %v, want %q", c.kind, e, err, c.want)
		}
		if strings.HasPrefix(string(e.Kind), "DISPUTE") && (!e.Payment.IsZero() || e.Transaction != "pi_1" || e.AmountMinor != 69900) {
			t.Errorf("dispute %+v", e)
		}
		if e.Kind == payment.EventSucceeded && (e.ID != "evt_1" || e.Payment != ours || e.Transaction != "pi_1" || e.AmountMinor != 69900 || e.Currency != "CNY") {
			t.Errorf("event %+v", e)
		}
	}
	body := event(string(api.EventTypeCheckoutSessionCompleted), whole)
	for name, header := range map[string]http.Header{
		"none": {}, "no signature": {"Stripe-Signature": {"t=1"}}, "another's": sign(body, "whsec_other", time.Now()),
		"old": sign(body, secret, time.Now().Add(-6*time.Minute)), "of another body": sign(body+" ", secret, time.Now()),
	} {
		if _, err := p.Callback(header, []byte(body)); !errors.Is(err, payment.ErrForged) {
			t.Errorf("%s: %v, want %v", name, err, payment.ErrForged)
		}
	}
}

// TestAPageOfAnyPaymentWindowIsOneThatStripeTakes has every window of a sale: Stripe takes pages
// that expire 30 minutes to 24 hours after they were opened.
func TestAPageOfAnyPaymentWindowIsOneThatStripeTakes(t *testing.T) {
	t.Parallel()
	var expires int64
	p := provider(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		form, err := url.ParseQuery(readAll(t, r))
		if err != nil {
			t.Error(err)
		}
		if at := form.Get("expires_at"); at != "" {
			expires, _ = strconv.ParseInt(at, 10, 64)
		}
		_, _ = w.Write([]byte(`{"id":"cs_1","object":"checkout.session","url":"https://pay.example"}`))
	}))
	for _, window := range []time.Duration{30 * time.Second, 15 * time.Minute, 23 * time.Hour, 23*time.Hour + 29*time.Minute, 23*time.Hour + 45*time.Minute, 24 * time.Hour} {
		k := known("", "")
		k.CreatedAt = k.ExpiresAt.Add(-window)
		if _, err := p.Create(t.Context(), k.CreateInput); err != nil {
			t.Fatal(err)
		}
		first := expires
		if open := time.Unix(expires, 0).Sub(k.CreatedAt); open < 30*time.Minute || open > 24*time.Hour-time.Minute {
			t.Errorf("with a window of %s, the page is open for %s", window, open)
		}
		if _, err := p.Close(t.Context(), k); err != nil || expires != first {
			t.Errorf("the repeated call differs: %d and %d, %v", first, expires, err)
		}
	}
}

func TestStripesRefusalsAreNotItsFaults(t *testing.T) {
	t.Parallel()
	for status, refused := range map[int]bool{400: true, 401: true, 402: true, 403: true, 404: true, 409: false, 429: false, 500: false, 503: false} {
		p := provider(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","message":"no"}}`))
		}))
		k := known("", "")
		_, err := p.Create(t.Context(), k.CreateInput)
		if _, ok := errors.AsType[payment.RequestRefused](err); err == nil || ok != refused {
			t.Errorf("status %d: %v", status, err)
		}
		state, err := p.Close(t.Context(), k)
		if refused != (err == nil && state.Phase == payment.PhaseClosed) {
			t.Errorf("status %d: close of a payment that was never made: %+v, %v", status, state, err)
		}
	}
}

func TestARefundInStripesDashboardIsReportedAndRead(t *testing.T) {
	t.Parallel()
	p := provider(t, "http://127.0.0.1:1")
	const charge = `{"id":"ch_1","object":"charge","amount":69900,"amount_refunded":500,"currency":"cny","payment_intent":%q,"refunded":false}`
	body := event("charge.refunded", fmt.Sprintf(charge, "pi_1"))
	e, err := p.Callback(sign(body, secret, time.Now()), []byte(body))
	if err != nil || e.Kind != payment.EventRefunded || e.ID != "evt_1" || e.Transaction != "pi_1" || !e.Payment.IsZero() || e.AmountMinor != 500 || e.Currency != "CNY" {
		t.Errorf("%+v, %v", e, err)
	}
	session := fmt.Sprintf(paid, uuid.New())
	intent := `{"id":"pi_1","object":"payment_intent","latest_charge":` + fmt.Sprintf(charge, "pi_1") + `}`
	state, err := provider(t, answers(t, map[string]string{"GET /v1/checkout/sessions/cs_1": session, "GET /v1/payment_intents/pi_1": intent})).Query(t.Context(), known("cs_1", "pi_1"))
	if err != nil || state.Phase != payment.PhasePaid || state.Refunded != 500 {
		t.Errorf("%+v, %v", state, err)
	}
}
