package payment_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// buyUnits places and pays an order of several units for a new user.
func (s *shop) buyUnits(quantity int) (*order.Order, *payment.Payment) {
	s.t.Helper()
	o := s.place(id.New[id.User](), quantity)
	if o == nil {
		s.t.Fatal("too few left")
	}
	return o, s.payNow(o)
}

// askUnits asks for the refund of some units.
func (s *shop) askUnits(o *order.Order, quantity int) (*payment.Refund, error) {
	s.t.Helper()
	r, err := s.pay.AskRefund(s.t.Context(), payment.RefundRequest{
		Order: o.ID, User: o.User, Quantity: &quantity, Reason: "one is enough", IdempotencyKey: id.New[uuid.UUID]().String(),
	})
	return r.Refund, err
}

// refundUnits refunds some units.
func (s *shop) refundUnits(o *order.Order, quantity int, keep bool) *payment.Refund {
	s.t.Helper()
	r, err := s.askUnits(o, quantity)
	s.must(err)
	s.approveRefund(r, keep)
	s.settleDown()
	return s.wantRefund(r, payment.RefundSucceeded, "")
}

// wantUnits checks the refunded units of a paid order, and what the bank gave back.
func (s *shop) wantUnits(o *order.Order, p *payment.Payment, status order.Status, units int) {
	s.t.Helper()
	now := s.wantOrder(o, status)
	if now.RefundedUnits() != units || now.RefundedMinor() != int64(units)*1999 {
		s.t.Errorf("%d units and %d are refunded, want %d units", now.RefundedUnits(), now.RefundedMinor(), units)
	}
	if c := s.charge(p); c.Refunded != int64(units)*1999 {
		s.t.Errorf("the bank gave %d back for %d units", c.Refunded, units)
	}
	if n := s.count(wrong, everything); n != 0 {
		s.t.Errorf("%d invariants are violated", n)
	}
}

func TestAnOrderIsRefundedUnitByUnit(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(3)
		r := s.refundUnits(o, 1, false)
		if r.Quantity != 1 || r.AmountMinor != 1999 {
			t.Errorf("refund %+v", r)
		}
		s.wantUnits(o, p, order.Paid, 1)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 2, sold: 2, stock: 2, reserved: 2, holders: 1})

		s.refundUnits(o, 1, true)
		s.wantUnits(o, p, order.Paid, 2)
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1}) // a unit left the sale

		s.refundUnits(o, 1, false)
		s.wantUnits(o, p, order.Refunded, 3)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
	})
}

func TestARefundOfUnitsNamesItsBounds(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	o, p := s.buyUnits(3)
	for _, quantity := range []int{-1, 0, 4} {
		_, err := s.askUnits(o, quantity)
		s.wantRefused(err, fault.InvalidInput)
	}
	s.refundUnits(o, 2, false)
	_, err := s.askUnits(o, 2)
	s.wantRefused(err, fault.InvalidInput)
	if want := "invalid input at quantity: 1 to 1"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	s.wantUnits(o, p, order.Paid, 2)
}

func TestAnOrderHasOneUnfinishedRefund(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(3)
		var mu sync.Mutex
		var asked []*payment.Refund
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				r, err := s.askUnits(o, 1)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					asked = append(asked, r)
				}
			})
		}
		all.Wait()
		if len(asked) != 1 {
			t.Fatalf("%d refunds at the same time", len(asked))
		}
		_, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: asked[0].ID, Operator: id.New[id.User]()})
		s.must(err)
		s.wantUnits(o, p, order.Paid, 0)
		s.refundUnits(o, 1, false)
		s.wantUnits(o, p, order.Paid, 1)
	})
}

// A refund begins while units of the one before are on their way to the gate; its money
// waits for them, because an order names one refund whose units are due.
func TestARefundIsRequestedRightAfterAnother(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(3)
		first, err := s.askUnits(o, 1)
		s.must(err)
		s.approveRefund(first, false)
		s.step(s.refund)
		s.wantUnits(o, p, order.Paid, 1)

		second, err := s.askUnits(o, 1)
		if err != nil {
			t.Fatalf("the second refund: %v", err)
		}
		s.approveRefund(second, false)
		s.step(s.refund)
		s.wantUnits(o, p, order.Refunding, 1)
		s.wantFigures(figures{available: 1, sold: 2, stock: 0, reserved: 3, holders: 1})

		s.step(s.returner.Step)
		s.step(s.refund)
		s.wantUnits(o, p, order.Paid, 2)
		s.settleDown()
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1})
	})
}

func TestAKeyOfARefundIsOfOneQuantity(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	o, _ := s.buyUnits(3)
	one, two := 1, 2
	in := payment.RefundRequest{Order: o.ID, User: o.User, Quantity: &one, Reason: "x", IdempotencyKey: id.New[uuid.UUID]().String()}
	first, err := s.pay.AskRefund(t.Context(), in)
	s.must(err)
	again, err := s.pay.AskRefund(t.Context(), in)
	s.must(err)
	if !again.Replayed || again.Refund.ID != first.Refund.ID {
		t.Errorf("repeated: %+v", again)
	}
	in.Quantity = &two
	_, err = s.pay.AskRefund(t.Context(), in)
	s.wantRefused(err, fault.IdempotencyMismatch)
}

func TestAVoidRefundsTheUnitsThatAreLeft(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(3)
		s.refundUnits(o, 2, false)
		_, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New[id.User](), Note: "bot"})
		s.must(err)
		s.settleDown()
		s.wantUnits(o, p, order.Refunded, 3)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
	})
}

func TestUnitsAreVoidedOncePerAct(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o, p := s.buyUnits(3)
		first, second, third := id.New[id.Act](), id.New[id.Act](), id.New[id.Act]()
		void := func(act id.Act, units int) {
			_, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New[id.User](), Note: "cracked", Act: act, Units: units})
			s.must(err)
		}
		void(first, 1)
		void(first, 1) // its refund is on its way
		s.settleDown()
		s.wantUnits(o, p, order.Paid, 1)
		void(first, 1) // and done
		s.settleDown()
		s.wantUnits(o, p, order.Paid, 1)
		void(second, 1)
		s.settleDown()
		s.wantUnits(o, p, order.Paid, 2)
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1})
		void(third, 2) // fewer are left than when it was requested
		s.settleDown()
		s.wantUnits(o, p, order.Refunded, 3)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
	})
}

// The bank reports days later that the refund failed: its units may be sold by then.
func TestAPartialRefundThatFailsLaterIsSentAgainWithoutItsUnits(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		bank := s.recordKeys()
		o, p := s.buyUnits(3)
		r := s.refundUnits(o, 1, false)
		s.failed(p, r.ID, "expired_or_canceled_card")
		s.wantRefund(r, payment.RefundGivenUp, "expired_or_canceled_card")
		s.wantUnits(o, p, order.Paid, 1)
		_, err := s.askUnits(o, 1)
		s.wantRefused(err, fault.Conflict) // an operator decides about the other first
		s.approveRefund(r, false)
		s.settleDown()
		s.wantRefund(r, payment.RefundSucceeded, "expired_or_canceled_card")
		s.wantUnits(o, p, order.Paid, 1)
		s.wantFigures(figures{available: 1, sold: 2, stock: 1, reserved: 2, holders: 1})
		if len(bank.keys) != 2 || bank.keys[0] == bank.keys[1] {
			t.Errorf("keys %v", bank.keys)
		}
	})
}

func TestASettledPartialRefundLeavesTheOrderPaid(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		bank := s.recordKeys()
		bank.why = "account_closed"
		o, p := s.buyUnits(2)
		r, err := s.askUnits(o, 1)
		s.must(err)
		s.approveRefund(r, false)
		s.settleDown()
		s.wantRefund(r, payment.RefundGivenUp, "account_closed")
		s.wantOrder(o, order.Refunding)
		_, err = s.pay.SettleRefund(t.Context(), payment.Settlement{Refund: r.ID, Operator: id.New[id.User](), Reason: "by bank transfer"})
		s.must(err)
		s.settleDown()
		if now := s.wantOrder(o, order.Paid); now.RefundedUnits() != 1 {
			t.Errorf("%d units are refunded", now.RefundedUnits())
		}
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1})
	})
}

func TestTheLogOfAnOrderHasTheUnitsOfItsRefunds(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o, _ := s.buyUnits(3)
		s.refundUnits(o, 1, false)
		_, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New[id.User](), Note: "bot", Act: id.New[id.Act]()})
		s.must(err)
		s.settleDown()
		log, err := s.orders.Timeline(t.Context(), s.wantOrder(o, order.Refunded))
		s.must(err)
		var got []string
		for _, e := range log[2:] { // after the purchase and the payment
			got = append(got, fmt.Sprintf("%s %d", e.Code, e.Units))
		}
		if want := []string{"REFUND_ASKED 1", "REFUND_APPROVED 1", "REFUNDED 1", "VOIDED 2", "REFUNDED 2"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if log[1].Units != 0 {
			t.Errorf("the payment is of %d units", log[1].Units)
		}
	})
}
