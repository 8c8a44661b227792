package signed_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/pay/payment/signed"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/testenv"
)

var now = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

func provider(t *testing.T, cfg signed.Config) *signed.Provider {
	t.Helper()
	cfg.Name, cfg.Secret, cfg.Client = "service", providertest.SignedSecret, &http.Client{Transport: &http.Transport{}}
	t.Cleanup(cfg.Client.CloseIdleConnections)
	p, err := signed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func known(expires time.Time) payment.Known {
	return payment.Known{CreateInput: payment.CreateInput{
		Payment: id.New[id.Payment](), Order: id.New[id.Order](), Number: "1", Product: "Lamp", Quantity: 2, Language: locale.Chinese, AmountMinor: 69900, Currency: "EUR", ExpiresAt: expires,
	}}
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// example builds and starts examples/payment-service, and returns its address.
func example(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "payment-service")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "seckill/examples/payment-service").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, "-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "PAYMENT_SECRET="+base64.StdEncoding.EncodeToString(providertest.SignedSecret))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

func TestTheExampleServiceTakesAndRefundsAPayment(t *testing.T) {
	t.Parallel()
	type call struct {
		header http.Header
		body   []byte
	}
	calls := make(chan call, 1)
	shop := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.URL.Path == "/webhooks/payments/service" {
			calls <- call{r.Header, body}
		}
	}))
	p := provider(t, signed.Config{URL: example(t), ShopURL: shop})
	k := known(time.Now().Add(15 * time.Minute))
	k.ReturnURL = shop + "/mine/1"
	if s, err := p.Query(t.Context(), k); err != nil || s.Phase != payment.PhaseUnknown {
		t.Fatalf("before it is created: %+v, %v", s, err)
	}
	made, err := p.Create(t.Context(), k.CreateInput)
	if err != nil || made.RedirectURL == "" {
		t.Fatalf("create: %+v, %v", made, err)
	}
	k.Ref = made.Ref
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, made.RedirectURL, strings.NewReader(url.Values{"as": {"succeeded"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := (&http.Client{}).Do(req) // a buyer
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if back := res.Request.URL.String(); back != k.ReturnURL {
		t.Errorf("the buyer is led to %s", back)
	}
	var got call
	select {
	case got = <-calls:
	case <-time.After(testenv.Wait):
		t.Fatal("no webhook")
	}
	e, err := p.Callback(got.header, got.body)
	if err != nil || e.Kind != payment.EventSucceeded || e.Payment != k.Payment || e.AmountMinor != 69900 || e.Currency != "EUR" || e.Transaction == "" {
		t.Errorf("webhook %+v, %v", e, err)
	}
	if s, err := p.Close(t.Context(), k); err != nil || s.Phase != payment.PhasePaid || s.Transaction != e.Transaction || s.AmountMinor != 69900 {
		t.Errorf("close of a paid payment: %+v, %v", s, err)
	}
	refund := payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, Transaction: e.Transaction, AmountMinor: 69900, Currency: "EUR"}
	for range 2 {
		if err := p.Refund(t.Context(), refund); err != nil {
			t.Errorf("refund: %v", err)
		}
	}
	refund.Refund = id.New[id.Refund]()
	if err := p.Refund(t.Context(), refund); err == nil {
		t.Error("more is refunded than was paid")
	}
	if _, err := p.Callback(got.header, append(got.body, ' ')); !errors.Is(err, payment.ErrForged) {
		t.Errorf("a changed webhook: %v", err)
	}
}

func TestRepliesAreBelievedOnlyWithTheSignatureOfTheirRequest(t *testing.T) {
	t.Parallel()
	at := clock.NewFake(now)
	bank := providertest.NewBank(at.Now)
	service := providertest.NewSigned(bank)
	k := known(now.Add(time.Hour))
	honest := provider(t, signed.Config{URL: serve(t, service), Clock: at})
	if _, err := honest.Create(t.Context(), k.CreateInput); err != nil {
		t.Fatal(err)
	}
	old := httptest.NewRecorder() // an open payment, recorded for later
	recording := provider(t, signed.Config{Clock: at, URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.ServeHTTP(old, r)
		service.ServeHTTP(w, r)
	}))})
	if s, err := recording.Query(t.Context(), k); err != nil || s.Phase != payment.PhaseOpen {
		t.Fatalf("%+v, %v", s, err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a reply to an earlier request": func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range old.Header() {
				w.Header()[name] = values
			}
			_, _ = w.Write(old.Body.Bytes())
		},
		"no signature": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("webhook-id", r.Header.Get("webhook-id"))
			_, _ = io.WriteString(w, `{"phase":"PAID","transaction":"tx","amountMinor":69900,"currency":"EUR"}`)
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) },
	} {
		if s, err := provider(t, signed.Config{URL: serve(t, answer), Clock: at}).Query(t.Context(), k); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			w.Header().Set(name, r.Header.Get(name))
		}
		_, _ = io.Copy(w, r.Body)
	})
	refund := payment.RefundInput{Refund: id.New[id.Refund](), Paid: k, Transaction: "tx", AmountMinor: 69900, Currency: "EUR"}
	if err := provider(t, signed.Config{URL: serve(t, echo), Clock: at}).Refund(t.Context(), refund); err == nil {
		t.Error("the request itself is believed as the reply")
	}
}

func TestOldAndForgedWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	at := clock.NewFake(now)
	bank := providertest.NewBank(at.Now)
	service := providertest.NewSigned(bank)
	p := provider(t, signed.Config{URL: serve(t, service), Clock: at})
	k := known(now.Add(time.Hour))
	if _, err := p.Create(t.Context(), k.CreateInput); err != nil {
		t.Fatal(err)
	}
	bank.Pay(k.Payment, 69900, "EUR")
	paid, _ := bank.Charge(k.Payment)
	header, body, _ := service.Report("evt_1", paid)
	if e, err := p.Callback(header, body); err != nil || e.ID != "evt_1" || e.Kind != payment.EventSucceeded {
		t.Fatalf("%+v, %v", e, err)
	}
	header, body = service.ReportRefund("evt_2", paid, 500)
	if e, err := p.Callback(header, body); err != nil || e.ID != "evt_2" || e.Kind != payment.EventRefunded || e.AmountMinor != 500 || e.Currency != "EUR" || e.Payment != k.Payment {
		t.Fatalf("a refund of the service: %+v, %v", e, err)
	}
	at.Advance(6 * time.Minute)
	if _, err := p.Callback(header, body); !errors.Is(err, payment.ErrForged) {
		t.Errorf("an old webhook: %v", err)
	}
	if _, err := p.Callback(http.Header{}, body); !errors.Is(err, payment.ErrForged) {
		t.Errorf("no signature: %v", err)
	}
}
