package payment_test

import (
	"context"
	"errors"
	"testing"

	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/money"
)

// withFee is the bank with fees as the test says.
type withFee struct {
	payment.Provider
	fee func() (*money.Amount, error)
}

func (c withFee) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	s, err := c.Provider.Query(ctx, known)
	if s.Phase == payment.PhasePaid {
		s.Fee, s.FeeError = c.fee()
	}
	return s, err
}

// While one process reads the fee of a payment, another one has recorded it.
func TestTheFirstFeeOfAPaymentStays(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		s.payNow(o)
		calls := 0
		s.flaky.Provider = withFee{s.flaky.Provider, func() (*money.Amount, error) {
			if calls++; calls == 1 {
				_, err := s.pay.Reconcile(t.Context(), sandbox.Name, s.clock.Now())
				s.must(err)
				return &money.Amount{Minor: 59, Currency: "EUR"}, nil
			}
			return &money.Amount{Minor: 60, Currency: "EUR"}, nil
		}}
		_, err := s.pay.Reconcile(t.Context(), sandbox.Name, s.clock.Now())
		s.must(err)
		ledger, err := s.pay.Ledger(t.Context(), o.ID)
		s.must(err)
		if len(ledger) != 2 || ledger[1].Amount.Minor != 60 {
			t.Errorf("ledger %+v, want the fee of 60 that was recorded first", ledger)
		}
	})
}

func TestAFeeThatCannotBeReadIsReported(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		s.payNow(s.buy())
		s.flaky.Provider = withFee{s.flaky.Provider, func() (*money.Amount, error) { return nil, errors.New("no right to read charges") }}
		result, err := s.pay.Reconcile(t.Context(), sandbox.Name, s.clock.Now())
		s.must(err)
		if result.FeesUnread != 1 || result.FeeError == nil || len(result.Findings) != 0 {
			t.Errorf("result %+v", result)
		}
	})
}
