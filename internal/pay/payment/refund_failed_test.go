package payment_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// refundKeys records under which keys refunds are asked for, and gives them up while why is
// not empty.
type refundKeys struct {
	payment.Provider
	mu   sync.Mutex
	keys []id.Refund // guarded by mu
	why  string      // guarded by mu; "" = the refund succeeds
}

func (p *refundKeys) Refund(ctx context.Context, in payment.RefundInput) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, in.Refund)
	if p.why != "" {
		return payment.RefundFailed{Why: p.why}
	}
	if len(p.keys) > 1 {
		return nil // the sandbox has refunded already: its ledger knows no failure
	}
	return p.Provider.Refund(ctx, in)
}

// recordKeys puts refundKeys before the bank.
func (s *shop) recordKeys() *refundKeys {
	recorded := &refundKeys{Provider: s.flaky.Provider}
	s.flaky.Provider = recorded
	return recorded
}

// failed reports that the refund of a key failed at the bank.
func (s *shop) failed(p *payment.Payment, key id.Refund, why string) {
	s.t.Helper()
	event, err := s.pay.Record(s.t.Context(), sandbox.Name, payment.Event{
		ID: id.New[uuid.UUID]().String(), Payment: p.ID, Kind: payment.EventRefundFailed, Refund: key, Reason: why,
		AmountMinor: p.AmountMinor, Currency: p.Currency, At: s.clock.Now(),
	})
	s.must(err)
	s.must(s.pay.Settle(s.t.Context(), event))
}

// wantRefund checks the state of a refund and returns it.
func (s *shop) wantRefund(r *payment.Refund, want payment.RefundStatus, why string) *payment.Refund {
	s.t.Helper()
	now, err := s.pay.Refund(s.t.Context(), r.ID)
	s.must(err)
	if now.Status != want || now.Failure != why {
		s.t.Errorf("the refund is %s (%q), want %s (%q)", now.Status, now.Failure, want, why)
	}
	return now
}

func (s *shop) failedRefunds() int {
	s.t.Helper()
	counts, err := s.pay.Unfinished(s.t.Context(), s.clock.Now())
	s.must(err)
	return counts["failed_refunds"]
}

// The bank takes the refund, and reports days later that it failed.
func TestARefundThatFailsAfterItWasTakenWaitsForAnOperatorAndIsSentAgain(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		bank := s.recordKeys()
		o := s.buy()
		p := s.payNow(o)
		r := s.askRefund(o)
		s.approveRefund(r, false)
		s.settleDown()
		s.wantRefund(r, payment.RefundSucceeded, "")
		for range 2 { // Stripe reports it by two events
			s.failed(p, r.ID, "expired_or_canceled_card")
		}
		s.wantRefund(r, payment.RefundGivenUp, "expired_or_canceled_card")
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 3, stock: 3}) // the unit went back on sale once
		if n := s.failedRefunds(); n != 1 {
			t.Errorf("%d failed refunds are counted", n)
		}
		_, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: id.New[id.User]()})
		s.wantRefused(err, fault.Conflict)
		_, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: o.User, Approve: true})
		s.wantRefused(err, fault.Conflict)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { s.approveRefund(r, false) })
		}
		all.Wait()
		s.settleDown()
		s.wantRefund(r, payment.RefundSucceeded, "expired_or_canceled_card")
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
		if len(bank.keys) != 2 || bank.keys[0] != r.ID || bank.keys[1] == r.ID {
			t.Errorf("keys %v: a provider answers a known key with the former failure", bank.keys)
		}
		s.failed(p, r.ID, "late news of the first attempt")
		s.wantRefund(r, payment.RefundSucceeded, "expired_or_canceled_card")
		s.failed(p, bank.keys[1], strings.Repeat("é", 150))
		s.wantRefund(r, payment.RefundGivenUp, strings.Repeat("é", 98)+"…")
	})
}

// The bank gives up at once: the order has not moved, and repeating the call is no use.
func TestARefundThatTheProviderGivesUpIsNotRepeatedByItself(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		bank := s.recordKeys()
		bank.why = "lost_or_stolen_card"
		o := s.buy()
		p := s.payNow(o)
		r := s.askRefund(o)
		s.approveRefund(r, false)
		s.settleDown()
		s.settleDown()
		if len(bank.keys) != 1 {
			t.Errorf("asked %d times", len(bank.keys))
		}
		s.wantRefund(r, payment.RefundGivenUp, "lost_or_stolen_card")
		s.wantOrder(o, order.Refunding)
		s.wantPayment(p, payment.Succeeded)
		bank.why = ""
		s.approveRefund(r, false)
		s.settleDown()
		s.wantRefund(r, payment.RefundSucceeded, "lost_or_stolen_card")
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
	})
}
