package payment_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/payment/sandbox"
)

func (s *shop) askRefund(o *order.Order) *payment.Refund {
	s.t.Helper()
	r, refusal, err := s.pay.AskRefund(s.t.Context(), payment.RefundRequest{Order: o.ID, User: o.User, Reason: "too small", IdempotencyKey: "r-" + o.ID.String()})
	s.must(err)
	if refusal != nil {
		s.t.Fatal(refusal)
	}
	return r.Refund
}

func (s *shop) approveRefund(r *payment.Refund, keep bool) {
	s.t.Helper()
	_, refusal, err := s.pay.DecideRefund(s.t.Context(), payment.Decision{Refund: r.ID, Operator: id.New(), Approve: true, KeepUnits: keep})
	s.must(err)
	if refusal != nil {
		s.t.Fatal(refusal)
	}
}

// The money is refunded once and, when chosen, the unit is returned once.
func TestAnApprovedRefundReturnsMoneyAndUnitOnce(t *testing.T) {
	for name, keep := range map[string]bool{"with the unit": false, "without the unit": true} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, 3, func(t *testing.T, s *shop) {
				o := s.buy()
				p := s.payNow(o)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() { s.askRefund(o) })
				}
				wg.Wait()
				s.wantOrder(o, order.Refunding)
				open, err := s.pay.OpenRefunds(t.Context(), uuid.Nil, 10)
				if err != nil || len(open) != 1 || open[0].AmountMinor != 1999 {
					t.Fatalf("open refunds %+v, %v", open, err)
				}
				for range 4 {
					wg.Go(func() { s.approveRefund(open[0], keep) })
				}
				wg.Wait()
				for range 4 {
					wg.Go(func() { s.step(s.refund) })
				}
				wg.Wait()
				s.settleDown()
				s.wantOrder(o, order.Refunded)
				s.wantPayment(p, payment.Refunded)
				if c := s.charge(p); c.Refunded != 1999 {
					t.Errorf("charge %+v", c)
				}
				if keep {
					s.wantFigures(figures{available: 2, stock: 2}) // one unit left the sale
				} else {
					s.wantFigures(figures{available: 3, stock: 3})
				}
			})
		})
	}
}

func TestARejectedRefundLeavesTheOrderPaid(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.payNow(o)
		r := s.askRefund(o)
		operator := id.New()
		for i := range 2 {
			got, refusal, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: operator, Note: "worn"})
			if err != nil || refusal != nil || got.Refund.Status != payment.RefundRejected || got.Replayed != (i == 1) {
				t.Errorf("reject: %+v, %v, %v", got, refusal, err)
			}
		}
		_, refusal, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: operator, Approve: true})
		s.must(err)
		s.wantRefused(refusal, fault.Conflict)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1})
		_, refusal, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: id.New(), Operator: operator})
		s.must(err)
		s.wantRefused(refusal, fault.Unknown)
	})
}

func TestOnlyAPaidOrderOfOnesOwnMayBeGivenBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	o := s.buy()
	ask := func(user uuid.UUID) fault.Refusal {
		_, refusal, err := s.pay.AskRefund(t.Context(), payment.RefundRequest{Order: o.ID, User: user, Reason: "x", IdempotencyKey: id.New().String()})
		s.must(err)
		return refusal
	}
	s.wantRefused(ask(id.New()), fault.Unknown)
	s.wantRefused(ask(o.User), fault.Conflict)
	s.payNow(o)
	s.askRefund(o)
	s.wantRefused(ask(o.User), fault.Conflict) // under another key, while a refund is requested
}

func TestARefundIsSentUntilTheProviderSaysDone(t *testing.T) {
	for name, f := range map[string]fate{"unsent": unsent, "unheard": unheard} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, 3, func(t *testing.T, s *shop) {
				o := s.buy()
				p := s.payNow(o)
				s.approveRefund(s.askRefund(o), false)
				s.flaky.lose(func(string) fate { return f })
				s.step(s.refund)
				s.wantOrder(o, order.Refunding)
				s.flaky.lose(nil)
				s.settleDown()
				s.wantOrder(o, order.Refunded)
				if c := s.charge(p); c.Refunded != 1999 {
					t.Errorf("charge %+v", c)
				}
			})
		})
	}
}

// The buyer can see the ids of payments.
func TestNoKeyOfABuyerKeepsMoneyFromGoingBack(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		twice := s.begin(o, "key-1")
		s.approve(twice, sandbox.Late)
		s.must(s.pay.Settle(t.Context(), s.say(twice, payment.EventClosed)))
		p := s.payNow(o)
		for _, key := range []string{"void-" + p.ID.String(), "auto-" + twice.ID.String(), "held-" + twice.ID.String()} {
			r, refusal, err := s.pay.AskRefund(t.Context(), payment.RefundRequest{Order: o.ID, User: o.User, Reason: "x", IdempotencyKey: key})
			if err != nil || refusal != nil {
				t.Fatal(refusal, err)
			}
			_, refusal, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.Refund.ID, Operator: id.New(), Note: "no"})
			if err != nil || refusal != nil {
				t.Fatal(refusal, err)
			}
		}
		s.clock.Advance(window)
		s.settleDown()
		s.wantPayment(twice, payment.Refunded)
		if _, refusal, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New(), Note: "bot"}); err != nil || refusal != nil {
			t.Errorf("void: %v, %v", refusal, err)
		}
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Refunded)
	})
}
