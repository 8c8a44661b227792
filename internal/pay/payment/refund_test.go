package payment_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func (s *shop) askRefund(o *order.Order) *payment.Refund {
	s.t.Helper()
	r, err := s.pay.AskRefund(s.t.Context(), payment.RefundRequest{Order: o.ID, User: o.User, Reason: "too small", IdempotencyKey: "r-" + o.ID.String()})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Refund
}

func (s *shop) approveRefund(r *payment.Refund, keep bool) {
	s.t.Helper()
	_, err := s.pay.DecideRefund(s.t.Context(), payment.Decision{Refund: r.ID, Operator: id.New[id.User](), Approve: true, KeepUnits: keep})
	if err != nil {
		s.t.Fatal(err)
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
				filter := payment.RefundFilter{Statuses: []payment.RefundStatus{payment.RefundRequested}}
				open, err := s.pay.ListRefunds(t.Context(), payment.RefundList{RefundFilter: filter, Limit: 10})
				if err != nil || len(open.Refunds) != 1 || open.Refunds[0].AmountMinor != 1999 {
					t.Fatalf("open refunds %+v, %v", open, err)
				}
				filter.NotOf = o.User
				if n, err := s.pay.CountRefunds(t.Context(), filter); n != 0 || err != nil {
					t.Errorf("%d refunds without those of the buyer, %v", n, err)
				}
				for range 4 {
					wg.Go(func() { s.approveRefund(open.Refunds[0], keep) })
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
		operator := id.New[id.User]()
		for i := range 2 {
			got, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: operator, Note: "worn"})
			if err != nil || got.Refund.Status != payment.RefundRejected || got.Replayed != (i == 1) {
				t.Errorf("reject: %+v, %v", got, err)
			}
		}
		_, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: operator, Approve: true})
		s.wantRefused(err, fault.Conflict)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1})
		_, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: id.New[id.Refund](), Operator: operator})
		s.wantRefused(err, fault.Unknown)
	})
}

func TestOnlyAPaidOrderOfOnesOwnMayBeGivenBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	o := s.buy()
	ask := func(user id.User) fault.Refusal {
		_, err := s.pay.AskRefund(t.Context(), payment.RefundRequest{Order: o.ID, User: user, Reason: "x", IdempotencyKey: id.New[uuid.UUID]().String()})
		return testenv.Refusal(s.t, err)
	}
	s.wantRefused(ask(id.New[id.User]()), fault.Unknown)
	s.wantRefused(ask(o.User), fault.Conflict)
	s.payNow(o)
	s.askRefund(o)
	s.wantRefused(ask(o.User), fault.Conflict) // under another key, while a refund is requested
}

func TestARefundIsSentUntilTheProviderSaysDone(t *testing.T) {
	for name, f := range map[string]fate{"unsent": unsent, "replyLost": replyLost} {
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
			r, err := s.pay.AskRefund(t.Context(), payment.RefundRequest{Order: o.ID, User: o.User, Reason: "x", IdempotencyKey: key})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.Refund.ID, Operator: id.New[id.User](), Note: "no"})
			if err != nil {
				t.Fatal(err)
			}
		}
		s.clock.Advance(window)
		s.settleDown()
		s.wantPayment(twice, payment.Refunded)
		if _, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New[id.User](), Note: "bot"}); err != nil {
			t.Errorf("void: %v", err)
		}
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Refunded)
	})
}

// Postgres may go back between the reads of a refund and of its payment.
func TestARefundWhosePaymentOrOrderWasLostIsUnknown(t *testing.T) {
	for _, table := range []string{"payments", "orders"} {
		t.Run(table, func(t *testing.T) {
			onBoth(t, 3, func(t *testing.T, s *shop) {
				o := s.buy()
				s.payNow(o)
				r := s.askRefund(o)
				err := s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
					_, err := tx.ExecContext(ctx, "DELETE FROM "+table)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: id.New[id.User](), Approve: true})
				if fault.ReasonOf(err) != fault.Unknown {
					t.Errorf("%v, want %v", err, fault.Unknown)
				}
			})
		})
	}
}
