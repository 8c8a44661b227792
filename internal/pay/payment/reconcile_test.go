package payment_test

import (
	"context"
	"testing"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/id"
)

func TestReconcilingFindsMoneyWhoseReportWasLost(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, s *shop) {
		good, lost, late, empty := s.begin(s.buy(), "key-1"), s.begin(s.buy(), "key-1"), s.begin(s.buy(), "key-1"), s.begin(s.buy(), "key-1")
		s.approve(good, sandbox.Prompt)
		s.settleDown()
		s.approve(lost, sandbox.Delayed) // reported after it was reconciled
		s.approve(late, sandbox.Late)
		s.setStatus(empty, entpayment.StatusSUCCEEDED) // as a forged report would
		_, err := s.pay.Cancel(t.Context(), late.Order, late.User, "")
		s.must(err)
		s.clock.Advance(window)
		_, err = s.bank.SettleLate(t.Context())
		s.must(err)

		found, err := s.pay.Reconcile(t.Context(), sandbox.Name, opening)
		s.must(err)
		got := map[string]payment.Mismatch{}
		for _, f := range found.Findings {
			got[f.Payment.String()] = f.Mismatch
		}
		if len(got) != 3 || got[lost.ID.String()] != payment.MoneyMissed || got[late.ID.String()] != payment.MoneyMissed || got[empty.ID.String()] != payment.MoneyMissing {
			t.Errorf("findings %+v", found.Findings)
		}
		if found.Payments != 4 || found.Paid["EUR"] != 3*1999 {
			t.Errorf("%d payments, paid %v", found.Payments, found.Paid)
		}
		s.settleDown()
		s.wantOrder(&order.Order{ID: lost.Order}, order.Paid)
		s.wantPayment(late, payment.Refunded)
		again, err := s.pay.Reconcile(t.Context(), sandbox.Name, opening)
		s.must(err)
		if len(again.Findings) != 1 {
			t.Errorf("the second time: %+v", again.Findings)
		}
		other, err := s.pay.Reconcile(t.Context(), sandbox.Name, opening.AddDate(0, 0, 1))
		s.must(err)
		if other.Payments != 0 {
			t.Errorf("%d payments of another day", other.Payments)
		}
		s.flaky.lose(func(string) fate { return unsent })
		away, err := s.pay.Reconcile(t.Context(), sandbox.Name, opening)
		s.must(err)
		if len(away.Findings) != 4 || away.Findings[0].Mismatch != payment.Unanswered {
			t.Errorf("a bank that is away: %+v", away.Findings)
		}
	})
}

func (s *shop) setStatus(p *payment.Payment, status entpayment.Status) {
	s.t.Helper()
	s.must(s.db.WithTx(s.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Payment.UpdateOneID(p.ID).SetStatus(status).Exec(ctx)
	}))
}

func TestTheSameWrongMoneyIsHeldOnce(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		p := s.begin(s.buy(), "key-1")
		wrong := payment.Event{ID: "evt-1", Payment: p.ID, Kind: payment.EventSucceeded, Transaction: "tx-1", AmountMinor: 1, Currency: "EUR", At: opening}
		for _, name := range []string{"evt-1", "asked:evt-1"} { // a report, and the answer to a query
			wrong.ID = name
			_, err := s.pay.Record(t.Context(), sandbox.Name, wrong)
			s.must(err)
		}
		s.settleDown()
		held, err := s.pay.HeldEvents(t.Context(), payment.HeldList{After: id.Held(p.Order), Limit: 10})
		s.must(err)
		if len(held) != 1 {
			t.Errorf("held %+v", held)
		}
	})
}
