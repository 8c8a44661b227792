package payment_test

import (
	"testing"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// The buyer's card is gone: the shop gives the money back by bank transfer.
func TestAFailedRefundCanBeSettledOutsideTheProvider(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		s.recordKeys().why = "lost_or_stolen_card"
		o := s.buy()
		p := s.payNow(o)
		r := s.askRefund(o)
		settle := payment.Settlement{Refund: r.ID, Operator: id.New[id.User](), Reason: "by bank transfer"}
		_, err := s.pay.SettleRefund(t.Context(), settle) // before it failed
		s.wantRefused(err, fault.Conflict)
		s.approveRefund(r, false)
		s.settleDown()
		s.wantRefund(r, payment.RefundGivenUp, "lost_or_stolen_card")
		_, err = s.pay.SettleRefund(t.Context(), payment.Settlement{Refund: r.ID, Operator: o.User, Reason: "x"})
		s.wantRefused(err, fault.Conflict)
		_, err = s.pay.SettleRefund(t.Context(), payment.Settlement{Refund: id.New[id.Refund](), Operator: id.New[id.User](), Reason: "x"})
		s.wantRefused(err, fault.Unknown)
		for _, replayed := range []bool{false, true} {
			result, err := s.pay.SettleRefund(t.Context(), settle)
			s.must(err)
			if result.Replayed != replayed || result.Refund.Decision != "by bank transfer" {
				t.Errorf("result %+v", result)
			}
		}
		s.settleDown()
		s.wantRefund(r, payment.RefundSettled, "lost_or_stolen_card")
		s.wantOrder(o, order.Refunded)
		s.wantPayment(p, payment.Succeeded) // the bank keeps it
		s.wantFigures(figures{available: 3, stock: 3})
		if n := s.failedRefunds(); n != 0 {
			t.Errorf("%d failed refunds wait", n)
		}
		log, err := s.orders.Timeline(t.Context(), s.order(o))
		s.must(err)
		if last := log[len(log)-1]; last.Code != order.CodeRefundSettled || last.Note != "by bank transfer" || last.By.User != settle.Operator {
			t.Errorf("log %+v", last)
		}
		ledger, err := s.pay.Ledger(t.Context(), o.ID)
		s.must(err)
		if len(ledger) != 2 || ledger[1].Kind != payment.LedgerSettled || payment.TotalsOf(ledger)[0].Net() != 0 {
			t.Errorf("ledger %+v", ledger)
		}
	})
}
