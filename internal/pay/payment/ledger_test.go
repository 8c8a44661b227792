package payment_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// charging is the bank with a fee of 59 cents.
type charging struct{ payment.Provider }

func (c charging) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	s, err := c.Provider.Query(ctx, known)
	if s.Phase == payment.PhasePaid {
		s.Fee = &money.Amount{Minor: 59, Currency: "EUR"}
	}
	return s, err
}

func TestTheLedgerOfAnOrderHasChargeFeeAndRefund(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		s.flaky.Provider = charging{s.flaky.Provider}
		o := s.buy()
		p := s.payNow(o)
		for range 2 { // the second one changes nothing
			result, err := s.pay.Reconcile(t.Context(), sandbox.Name, s.clock.Now())
			s.must(err)
			if len(result.Findings) != 0 {
				t.Errorf("findings %+v", result.Findings)
			}
		}
		s.clock.Advance(time.Minute)
		s.approveRefund(s.askRefund(o), false)
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		// The same money is reported a second time under another id.
		event, err := s.pay.Record(t.Context(), sandbox.Name, payment.Event{
			ID: "again", Payment: p.ID, Kind: payment.EventSucceeded, Transaction: s.charge(p).Transaction, AmountMinor: 1999, Currency: "EUR", At: s.clock.Now(),
		})
		s.must(err)
		s.must(s.pay.Settle(t.Context(), event))
		ledger, err := s.pay.Ledger(t.Context(), o.ID)
		s.must(err)
		var got []payment.LedgerKind
		for _, e := range ledger {
			got = append(got, e.Kind)
			want := map[payment.LedgerKind]int64{payment.LedgerCharged: 1999, payment.LedgerFee: 59, payment.LedgerRefunded: 1999}[e.Kind]
			if e.Amount != (money.Amount{Minor: want, Currency: "EUR"}) || e.Payment != p.ID || e.Transaction != s.charge(p).Transaction || e.Provider != sandbox.Name {
				t.Errorf("entry %+v", e)
			}
		}
		if !slices.Equal(got, []payment.LedgerKind{payment.LedgerCharged, payment.LedgerFee, payment.LedgerRefunded}) {
			t.Errorf("ledger %+v", ledger)
		}
	})
}

// A buyer begins one payment after the other until the deadline, and pays the last.
func TestTheLedgerHasAPaymentAfterManyThatWereLeft(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		const left = 101
		o := s.buy()
		now := s.clock.Now()
		s.must(s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			for range left {
				if err := tx.Payment.Create().SetID(id.New[id.Payment]()).SetOrderID(o.ID).SetUserID(o.User).SetProvider(sandbox.Name).
					SetIdempotencyKey(uuid.NewString()).SetAmountMinor(1999).SetCurrency("EUR").SetStatus(entpayment.StatusCLOSED).
					SetExpiresAt(now).SetCheckAt(now).SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
		p := s.payNow(o)
		ledger, err := s.pay.Ledger(t.Context(), o.ID)
		s.must(err)
		if len(ledger) != 1 || ledger[0].Kind != payment.LedgerCharged || ledger[0].Payment != p.ID {
			t.Errorf("ledger %+v", ledger)
		}
	})
}
