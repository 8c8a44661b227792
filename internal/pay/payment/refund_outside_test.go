package payment_test

import (
	"net/http"
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// outside gives money back at the bank, as on a provider's pages.
func (s *shop) outside(p *payment.Payment, amount int64) {
	s.t.Helper()
	s.must(s.bank.Refund(s.t.Context(), p.ID, id.New[id.Refund](), amount))
}

// reported settles a report of how much went back of a payment so far. It names the payment by
// its transaction alone.
func (s *shop) reported(p *payment.Payment, event string, total int64) {
	s.t.Helper()
	paid, err := s.pay.Payment(s.t.Context(), p.ID)
	s.must(err)
	bank := s.flaky.Provider
	s.flaky.Provider = disputing{bank, &payment.Event{
		ID: event, Kind: payment.EventRefunded, Transaction: paid.Transaction, AmountMinor: total, Currency: paid.Currency, At: s.clock.Now(),
	}}
	defer func() { s.flaky.Provider = bank }()
	for range 2 { // providers repeat
		if got := s.post(hook, []byte("{}"), "signed"); got != http.StatusOK {
			s.t.Errorf("the report got %d", got)
		}
	}
	s.settleDown()
}

// wantBooks checks what the books say came and went back, and that the bank says so.
func (s *shop) wantBooks(o *order.Order, p *payment.Payment, back int64) {
	s.t.Helper()
	ledger, err := s.pay.Ledger(s.t.Context(), o.ID)
	s.must(err)
	totals := payment.TotalsOf(ledger)
	if len(totals) != 1 || totals[0].Refunded != back || s.charge(p).Refunded != back {
		s.t.Errorf("the books say %+v, the bank gave %d back, want %d", totals, s.charge(p).Refunded, back)
	}
	if n := s.count(wrong, everything); n != 0 {
		s.t.Errorf("%d invariants are violated", n)
	}
}

func (s *shop) held() int {
	s.t.Helper()
	n, err := s.pay.CountHeld(s.t.Context(), payment.HeldList{})
	s.must(err)
	return n
}

func TestMoneyThatWentBackOnTheProvidersPagesEndsTheOrder(t *testing.T) {
	for name, learn := range map[string]func(s *shop, p *payment.Payment){
		"by a report": func(s *shop, p *payment.Payment) { s.reported(p, "evt-back", 2*1999) },
		"by reconciling": func(s *shop, p *payment.Payment) {
			found, err := s.pay.Reconcile(s.t.Context(), sandbox.Name, opening)
			s.must(err)
			if len(found.Findings) != 1 || found.Findings[0].Mismatch != payment.RefundUnknown || found.Findings[0].Theirs != "REFUNDED EUR 39.98" {
				s.t.Errorf("findings %+v", found.Findings)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, 4, func(t *testing.T, s *shop) {
				o, p := s.buyUnits(2)
				s.outside(p, 2*1999)
				learn(s, p)
				s.settleDown()
				s.wantUnits(o, p, order.Refunded, 2)
				s.wantPayment(p, payment.Refunded)
				s.wantFigures(figures{available: 4, stock: 4}) // the units are back
				s.wantBooks(o, p, 2*1999)
				again, err := s.pay.Reconcile(t.Context(), sandbox.Name, opening)
				s.must(err)
				if len(again.Findings) != 0 || s.held() != 0 {
					t.Errorf("afterwards: %+v, %d held", again.Findings, s.held())
				}
				s.reported(p, "evt-again", 2*1999)
				s.wantBooks(o, p, 2*1999)
			})
		})
	}
}

// A part may be for anything: an operator sees it, and no more than the rest is ever sent.
func TestAPartThatWentBackOnTheProvidersPagesWaitsForAnOperator(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(2)
		s.outside(p, 500)
		s.reported(p, "evt-part", 500)
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 2, sold: 2, stock: 2, reserved: 2, holders: 1})
		s.wantBooks(o, p, 500)
		held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
		s.must(err)
		if len(held) != 1 || held[0].AmountMinor != 500 || held[0].Payment != p.ID {
			t.Fatalf("held %+v", held)
		}
		if _, err := s.pay.ReturnHeld(t.Context(), held[0].ID, id.New[id.User](), "again"); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("money that went back already is sent back: %v", err)
		}
		if _, err := s.pay.SettleHeld(t.Context(), held[0].ID, id.New[id.User](), "a scratch"); err != nil || s.held() != 0 {
			t.Errorf("settled: %v, %d held", err, s.held())
		}
		s.outside(p, 100) // another part, found by reconciling
		found, err := s.pay.Reconcile(t.Context(), sandbox.Name, opening)
		s.must(err)
		if len(found.Findings) != 1 || s.held() != 1 {
			t.Errorf("findings %+v, %d held", found.Findings, s.held())
		}
		s.wantBooks(o, p, 600)
		s.approveRefund(s.askRefund(o), false)
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Refunded)
		s.wantBooks(o, p, 2*1999) // not more than came
		s.wantFigures(figures{available: 4, stock: 4})
	})
}

// An operator who gives the money back on the provider's pages instead of approving the request
// has decided it: it is not sent again.
func TestARequestThatWasRefundedOnTheProvidersPagesIsDone(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(2)
		r, err := s.askUnits(o, 1)
		s.must(err)
		s.outside(p, 1999)
		s.reported(p, "evt-one", 1999)
		s.wantRefund(r, payment.RefundSucceeded, "")
		s.wantUnits(o, p, order.Paid, 1)
		s.wantBooks(o, p, 1999)
		_, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: id.New[id.User](), Approve: true})
		s.wantRefused(err, fault.Conflict)
		r, err = s.askUnits(o, 1)
		s.must(err)
		s.approveRefund(r, false)
		s.settleDown()
		s.reported(p, "evt-own", 2*1999) // the report about the shop's own refund
		s.wantUnits(o, p, order.Refunded, 2)
		s.wantBooks(o, p, 2*1999)
		if s.held() != 0 {
			t.Errorf("%d held", s.held())
		}
	})
}

// part posts the report of one refund, by its number.
func (s *shop) part(p *payment.Payment, number string, amount int64) {
	s.t.Helper()
	bank := s.flaky.Provider
	s.flaky.Provider = disputing{bank, &payment.Event{
		ID: payment.RefundEventID(number), Payment: p.ID, Kind: payment.EventRefundedPart, AmountMinor: amount, Currency: "EUR", At: s.clock.Now(),
	}}
	defer func() { s.flaky.Provider = bank }()
	if got := s.post(hook, []byte("{}"), "signed"); got != http.StatusOK {
		s.t.Errorf("the report got %d", got)
	}
}

// WeChat Pay reports each refund by itself, and the bill has it as well.
func TestOneRefundIsCountedOnceByItsNumber(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(2)
		for _, number := range []string{"one", "one", "two"} {
			if number == "two" || s.charge(p).Refunded == 0 {
				s.outside(p, 300)
			}
			s.part(p, number, 300)
			s.settleDown()
		}
		s.wantBooks(o, p, 600)
		if s.held() != 2 {
			t.Errorf("%d held", s.held())
		}
	})
}

// Reports of single refunds add up, however many come before one is settled.
func TestRefundsThatAreReportedTogetherAddUp(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(2)
		for number, amount := range map[string]int64{"one": 300, "two": 200, "three": 100} {
			s.outside(p, amount)
			s.part(p, number, amount)
		}
		s.settleDown()
		s.wantBooks(o, p, 600)
		r, err := s.askUnits(o, 1)
		s.must(err)
		s.approveRefund(r, false)
		s.outside(p, 50)
		s.part(p, "four", 50) // while a refund of the shop is on its way
		s.settleDown()
		s.wantBooks(o, p, 650+1999)
		s.outside(p, 2*1999-2649)
		s.part(p, "five", 2*1999-2649) // all that is left
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		s.wantBooks(o, p, 2*1999)
	})
}

// Alipay reports sums, and its bill has each refund, in another order.
func TestRefundsThatAReportOfTheSumNotedAreNotNotedAgain(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(2)
		s.outside(p, 300)
		s.reported(p, "evt-sum", 300)
		s.outside(p, 200)
		s.part(p, "two", 200)
		s.part(p, "one", 300)
		s.settleDown()
		s.wantBooks(o, p, 500)
	})
}

func TestARequestIsDoneByOneOfTheRefundsThatAreReported(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(2)
		r, err := s.askUnits(o, 1)
		s.must(err)
		for number, amount := range map[string]int64{"one": 1999, "two": 300} {
			s.outside(p, amount)
			s.part(p, number, amount)
		}
		s.settleDown()
		s.wantRefund(r, payment.RefundSucceeded, "")
		s.wantOrder(o, order.Paid)
		s.wantBooks(o, p, 2299)
	})
}
