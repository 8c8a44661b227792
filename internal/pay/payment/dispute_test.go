package payment_test

import (
	"net/http"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
)

// disputing is the bank with a report that names a transaction alone.
type disputing struct {
	payment.Provider
	next *payment.Event
}

func (d disputing) Callback(http.Header, []byte) (payment.Event, error) { return *d.next, nil }

func TestADisputeIsNotedOnItsOrderOnce(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		bank, report := s.flaky.Provider, &payment.Event{}
		s.flaky.Provider = disputing{bank, report}
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Delayed)
		s.clock.Advance(21e9)
		s.step(s.check)
		paid, err := s.pay.Payment(t.Context(), p.ID)
		s.must(err)
		s.wantOrder(o, order.Paid)
		for _, e := range []payment.Event{
			{ID: "dp_1", Kind: payment.EventDisputed, Transaction: paid.Transaction},
			{ID: "dp_1", Kind: payment.EventDisputed, Transaction: paid.Transaction},
			{ID: "dp_2", Kind: payment.EventDisputed, Transaction: "of other software"},
			{ID: "dp_3", Kind: payment.EventDisputeWon, Transaction: paid.Transaction},
			{ID: "dp_4", Kind: payment.EventDisputed, Transaction: paid.Transaction},
			{ID: "dp_5", Kind: payment.EventDisputeLost, Transaction: paid.Transaction},
			{ID: "dp_6", Kind: payment.EventDisputed, Transaction: paid.Transaction, At: s.clock.Now()}, // a late report of the first one
		} {
			*report = e
			report.AmountMinor, report.Currency = 1999, "EUR"
			if e.At.IsZero() {
				report.At = s.clock.Now()
			}
			if got := s.post(hook, []byte("{}"), "signed"); got != http.StatusOK {
				t.Errorf("%+v got %d", e, got)
			}
			s.clock.Advance(5e9)
			s.step(s.pay.RetryEvents)
			open, err := s.pay.Disputed(t.Context(), 10)
			s.must(err)
			if got, want := len(open) == 1, e.ID < "dp_3" || e.ID == "dp_4"; got != want {
				t.Errorf("after %+v: %d open disputes", e, len(open))
			}
		}
		ledger, err := s.pay.Ledger(t.Context(), o.ID)
		s.must(err)
		if len(ledger) != 2 || ledger[1].Kind != payment.LedgerDisputeLost || ledger[1].Amount.Minor != 1999 {
			t.Errorf("ledger %+v", ledger)
		}
		log, err := s.orders.Timeline(t.Context(), s.wantOrder(o, order.Paid))
		s.must(err)
		var codes []order.Code
		for _, entry := range log[1:] {
			codes = append(codes, entry.Code)
		}
		if len(codes) != 6 || codes[1] != order.CodePaymentDisputed || codes[2] != order.CodeDisputeWon || codes[4] != order.CodeDisputeLost {
			t.Errorf("log %v", codes)
		}
		s.wantPayment(p, payment.Succeeded)
		held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
		s.must(err)
		if len(held) != 0 {
			t.Errorf("held %+v", held)
		}
	})
}
