package payment_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/testenv"
)

// branch is the bank under another name and with other terms.
type branch struct {
	payment.Provider
	name  string
	terms payment.Terms
}

func (b branch) Name() string         { return b.name }
func (b branch) Terms() payment.Terms { return b.terms }

func TestAnOrderIsOfferedOnlyProvidersThatTakeItsMoney(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.patient(testenv.Wait,
		s.flaky,
		branch{s.flaky, "card", payment.Terms{Kind: payment.Redirect, Least: map[string]int64{"EUR": 50, "USD": 0}, Most: map[string]int64{"EUR": 500000}}},
		branch{s.flaky, "wallet", payment.Terms{Kind: payment.QR, Least: map[string]int64{"CNY": 1}}})
	for _, c := range []struct {
		status   order.Status
		unit     int64
		quantity int
		currency string
		want     []string
	}{
		{order.PendingPayment, 1999, 1, "EUR", []string{"sandbox", "card"}},
		{order.PendingPayment, 25, 2, "EUR", []string{"sandbox", "card"}},
		{order.PendingPayment, 49, 1, "EUR", []string{"sandbox"}},
		{order.PendingPayment, 250000, 2, "EUR", []string{"sandbox", "card"}},
		{order.PendingPayment, 500001, 1, "EUR", []string{"sandbox"}},
		{order.PendingPayment, 1, 1, "CNY", []string{"sandbox", "wallet"}},
		{order.PendingPayment, 1, 1, "SEK", []string{"sandbox"}},
		{order.Paid, 1999, 1, "EUR", nil},
	} {
		deadline := opening.Add(window)
		var got []string
		for _, o := range s.pay.Options(&order.Order{
			Status: c.status, UnitPriceMinor: c.unit, Quantity: c.quantity, Currency: c.currency, PaymentDeadline: &deadline,
		}) {
			got = append(got, o.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if o := s.pay.Option("card"); o.Kind != payment.Redirect {
		t.Errorf("option %+v", o)
	}
	if o := s.pay.Option("closed-down"); o.ID != "closed-down" || o.Label.English != "closed-down" {
		t.Errorf("a provider of earlier payments is shown as %+v", o)
	}
	o := s.buy()
	_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: "wallet", IdempotencyKey: "key-1"})
	s.wantRefused(err, fault.InvalidInput)
}

func TestABuyerMayChooseAnotherOptionUntilTheFirstIsPaid(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		s.patient(testenv.Wait, s.flaky, branch{Provider: s.flaky, name: "card"})
		switched, paid := s.buy(), s.buy()
		first := s.payAt(sandbox.Name, switched)
		at := func(o *order.Order, provider, key string) (payment.Paying, error) {
			return s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: provider, IdempotencyKey: key})
		}
		second, err := at(switched, "card", "key-2")
		s.must(err)
		if second.Payment.ID == first || second.Payment.Provider != "card" {
			t.Errorf("payment %+v, want another one at card", second.Payment)
		}
		before, err := s.pay.Payment(t.Context(), first)
		s.must(err)
		s.wantPayment(before, payment.Closed)
		if err := s.bank.Approve(t.Context(), s.charge(before).ID, sandbox.Prompt); !errors.Is(err, sandbox.ErrNotOpen) {
			t.Errorf("the bank may still take the first payment: %v", err)
		}
		_, err = at(switched, sandbox.Name, "key-2")
		s.wantRefused(err, fault.IdempotencyMismatch)

		p, err := s.pay.Payment(t.Context(), s.payAt(sandbox.Name, paid))
		s.must(err)
		s.approve(p, sandbox.Delayed) // the shop does not know yet
		_, err = at(paid, "card", "key-2")
		s.wantRefused(err, fault.Conflict)
		s.wantOrder(paid, order.Paid)
	})
}

func TestAnOptionIsNotChangedWhileTheFirstProviderIsAway(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.patient(testenv.Wait, s.flaky, branch{Provider: s.flaky, name: "card"})
	o := s.buy()
	s.payAt(sandbox.Name, o)
	s.flaky.lose(func(string) fate { return unsent })
	_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: "card", IdempotencyKey: "key-2"})
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want %s: the buyer could pay twice", err, fault.Unavailable)
	}
}

func TestAProviderChoosesTheReplyToItsCallbacks(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.patient(testenv.Wait, branch{s.flaky, sandbox.Name, payment.Terms{
		Reply: payment.Reply{Status: http.StatusAccepted, ContentType: "text/plain", Body: "success"},
	}})
	s.door.Config.Handler = s.pay.Webhooks()
	p, err := s.pay.Payment(t.Context(), s.payAt(sandbox.Name, s.buy()))
	s.must(err)
	for name, body := range map[string][]byte{"paid": s.notice(p, "charge.paid"), "ignored": []byte(`{"id":"x","type":"charge.reviewed"}`)} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.door.URL+hook, strings.NewReader(string(body)))
		s.must(err)
		req.Header.Set(sandbox.SignatureHeader, s.signer.Sign(body, s.clock.Now()))
		res, err := s.door.Client().Do(req)
		s.must(err)
		text, err := io.ReadAll(res.Body)
		s.must(errors.Join(err, res.Body.Close()))
		if res.StatusCode != http.StatusAccepted || string(text) != "success" || res.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s: %d %q of %s", name, res.StatusCode, text, res.Header.Get("Content-Type"))
		}
	}
	if got := s.post(hook, []byte("{}"), "a guess"); got != http.StatusUnauthorized {
		t.Errorf("a forged call-back got %d", got)
	}
}
