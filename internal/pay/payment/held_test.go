package payment_test

import (
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// money records an amount received by a transaction, and settles it.
func (s *shop) money(p *payment.Payment, transaction string, amount int64) {
	s.t.Helper()
	event, err := s.pay.Record(s.t.Context(), sandbox.Name, payment.Event{
		ID: transaction, Payment: p.ID, Kind: payment.EventSucceeded, Transaction: transaction, AmountMinor: amount,
		Currency: p.Currency, At: s.clock.Now(),
	})
	s.must(err)
	s.must(s.pay.Settle(s.t.Context(), event))
}

// returnHeld returns the only held money twice: the second call changes nothing.
func (s *shop) returnHeld() {
	s.t.Helper()
	held, err := s.pay.HeldEvents(s.t.Context(), payment.HeldList{Limit: 10})
	s.must(err)
	if len(held) != 1 {
		s.t.Fatalf("held: %+v", held)
	}
	for range 2 {
		if _, err := s.pay.ReturnHeld(s.t.Context(), held[0].ID, id.New[id.User](), "not ours"); err != nil {
			s.t.Fatalf("return held money: %v", err)
		}
	}
}

func (s *shop) wantReturned(transaction string, amount int64) {
	s.t.Helper()
	s.flaky.mu.Lock()
	defer s.flaky.mu.Unlock()
	if got, ok := s.flaky.returned[transaction]; !ok || got.AmountMinor != amount || len(s.flaky.returned) != 1 {
		s.t.Errorf("returned at the provider: %+v, want %d of %s", s.flaky.returned, amount, transaction)
	}
}

func TestMoneyOfASecondTransactionIsReturned(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.payNow(o)
		s.money(p, "second", 1999)
		s.returnHeld()
		s.settleDown()
		s.wantReturned("second", 1999)
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.approveRefund(s.askRefund(o), false) // the order's own money can still be refunded
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Refunded)
	})
}

func TestAPartThatCameBeforeTheRightSumIsReturned(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.money(p, "part", 500)
		s.approve(p, sandbox.Prompt)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		s.returnHeld()
		s.settleDown()
		s.wantReturned("part", 500)
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
	})
}

// The partial amount is refunded while the buyer may still pay the full amount.
func TestReturningAPartKeepsTheOrderPayable(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.money(p, "part", 500)
		s.returnHeld()
		s.settleDown()
		s.wantReturned("part", 500)
		s.money(p, "whole", 1999)
		s.wantOrder(o, order.Paid)
	})
}

// Only the provider can return money that no payment is known for.
func TestMoneyOfAnUnknownPaymentIsSettledByAnOperator(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		s.money(&payment.Payment{ID: id.New[id.Payment](), Currency: "EUR"}, "tx-9", 100)
		s.clock.Advance(time.Minute)
		s.step(s.pay.RetryEvents)
		held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
		s.must(err)
		if len(held) != 1 {
			t.Fatalf("held: %+v", held)
		}
		_, err = s.pay.ReturnHeld(t.Context(), held[0].ID, id.New[id.User](), "not ours")
		s.wantRefused(err, fault.Conflict)
		for range 2 {
			_, err := s.pay.SettleHeld(t.Context(), held[0].ID, id.New[id.User](), "returned in the dashboard")
			s.must(err)
		}
		n, err := s.pay.CountHeld(t.Context(), payment.HeldList{})
		s.must(err)
		if want := " EUR 1.00 of tx-9 at sandbox. returned in the dashboard"; n != 0 || len(s.settled) != 1 || !strings.HasSuffix(s.settled[0], want) {
			t.Errorf("%d are held, settled %q", n, s.settled)
		}
	})
}

// Money of a known payment that was given back by bank transfer.
func TestHeldMoneyOfAnOrderIsSettledInItsLog(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.payNow(o)
		s.money(p, "second", 1999)
		held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{Limit: 10})
		s.must(err)
		_, err = s.pay.SettleHeld(t.Context(), held[0].ID, o.User, "mine")
		s.wantRefused(err, fault.Conflict)
		_, err = s.pay.SettleHeld(t.Context(), held[0].ID, id.New[id.User](), "by bank transfer")
		s.must(err)
		log, err := s.orders.Timeline(t.Context(), s.wantOrder(o, order.Paid))
		s.must(err)
		if last := log[len(log)-1]; last.Code != order.CodeRefundSettled || last.Note != "by bank transfer" {
			t.Errorf("the last entry is %+v", last)
		}
		s.wantPayment(p, payment.Succeeded)
	})
}

// A report and the answer to a query may both bring the money that an operator returned.
func TestMoneyThatWasReturnedPaysNoOrder(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.expirePayments()
		s.wantOrder(o, order.Expired)
		s.flaky.lose(func(call string) fate {
			if call == "reacquire" {
				return unsent
			}
			return fine
		})
		report := payment.Event{
			ID: "evt-1", Payment: p.ID, Kind: payment.EventSucceeded, Transaction: "tx-1", AmountMinor: 1999, Currency: "EUR", At: s.clock.Now(),
		}
		_, err := s.pay.Record(t.Context(), sandbox.Name, report)
		s.must(err)
		s.clock.Advance(25 * time.Hour)
		s.step(s.pay.RetryEvents)
		s.flaky.lose(nil)
		s.returnHeld()
		s.settleDown()
		s.wantReturned("tx-1", 1999)

		report.ID = "asked:evt-1"
		event, err := s.pay.Record(t.Context(), sandbox.Name, report)
		s.must(err)
		s.must(s.pay.Settle(t.Context(), event))
		s.wantOrder(o, order.Expired)
		s.wantPayment(p, payment.Closed)
		s.wantFigures(figures{available: 2, stock: 2})
	})
}

// A settlement that read the payment before the operator's decision decides again.
func TestTheReturnOfMoneyChangesItsPayment(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		returned, settled := s.begin(s.buy(), "key-1"), s.begin(s.buy(), "key-1")
		s.money(returned, "part-1", 500)
		s.endHeld(returned, func(event id.Held) error {
			_, err := s.pay.ReturnHeld(t.Context(), event, id.New[id.User](), "not ours")
			return err
		})
		s.money(settled, "part-2", 500)
		s.endHeld(settled, func(event id.Held) error {
			_, err := s.pay.SettleHeld(t.Context(), event, id.New[id.User](), "by a transfer")
			return err
		})
	})
}

// endHeld ends the only held money, and checks that the version of its payment
// changes.
func (s *shop) endHeld(p *payment.Payment, end func(event id.Held) error) {
	s.t.Helper()
	held, err := s.pay.HeldEvents(s.t.Context(), payment.HeldList{Limit: 10})
	s.must(err)
	if len(held) != 1 || held[0].Payment != p.ID {
		s.t.Fatalf("held: %+v", held)
	}
	before, err := s.pay.Payment(s.t.Context(), p.ID)
	s.must(err)
	s.must(end(held[0].ID))
	after, err := s.pay.Payment(s.t.Context(), p.ID)
	s.must(err)
	if after.Version == before.Version || after.Status != before.Status {
		s.t.Errorf("before %+v, after %+v", before, after)
	}
}
