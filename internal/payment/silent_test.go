package payment_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/expiry"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/payment/sandbox"
)

// silent takes calls to close payments and never answers.
type silent struct {
	payment.Provider
	name    string
	answers map[uuid.UUID]bool // but for these
}

func (s *silent) Name() string { return s.name }

func (s *silent) Close(ctx context.Context, p uuid.UUID) (payment.State, error) {
	if s.answers[p] {
		return s.Provider.Close(ctx, p)
	}
	<-ctx.Done()
	return payment.State{}, ctx.Err()
}

// patient replaces the payments of the shop by those at some providers, and its
// lapser by one that waits for them for so long.
func (s *shop) patient(patience time.Duration, providers ...payment.Provider) {
	s.t.Helper()
	teller := order.NewTeller(order.NewCache(s.conn, s.keys.Tasks, s.clock), s.told.announce, nil, quiet)
	s.pay = payment.New(payment.Config{
		DB: s.db, Orders: s.orders, Teller: teller, Gate: s.flaky, Providers: providers, Clock: s.clock, Log: quiet,
	})
	s.lapser = expiry.New(expiry.Config{
		DB: s.db, Orders: s.orders, Payments: s.pay, Patience: patience, Teller: teller, Clock: s.clock, Log: quiet,
	})
}

// payAt begins a payment at a provider.
func (s *shop) payAt(provider string, o *order.Order) uuid.UUID {
	s.t.Helper()
	p, refusal, err := s.pay.Pay(s.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: provider, IdempotencyKey: "key-1"})
	s.must(err)
	if refusal != nil {
		s.t.Fatalf("pay: %v", refusal)
	}
	return p.Payment.ID
}

// lapses runs so many steps of the lapser, each in the time that it has, and
// tells whether an order lapsed.
func (s *shop) lapses(o *order.Order, steps int) bool {
	s.t.Helper()
	for range steps {
		ctx, cancel := context.WithTimeout(s.t.Context(), s.lapser.Loop().Timeout)
		_, err := s.lapser.Step(ctx)
		cancel()
		s.must(err)
		if s.order(o).Status == order.Expired {
			return true
		}
	}
	return false
}

func TestAProviderThatNeverAnswersHoldsUpNobodyElsesOrders(t *testing.T) {
	t.Parallel()
	s := newShop(t, 22)
	s.patient(time.Second, &silent{Provider: s.flaky, name: "SILENT"}, s.flaky)
	stuck := make([]*order.Order, 20)
	for i := range stuck {
		stuck[i] = s.buy()
		s.payAt("SILENT", stuck[i])
	}
	s.clock.Advance(2 * time.Second)
	elsewhere, unpaid := s.buy(), s.buy()
	s.payAt(sandbox.Name, elsewhere)
	s.clock.Advance(window + 2*time.Second)
	if !s.lapses(unpaid, 1) {
		t.Error("an order that nobody began to pay does not lapse")
	}
	if !s.lapses(elsewhere, 3) {
		t.Error("an order with a payment at another provider does not lapse")
	}
	for _, o := range stuck {
		s.wantOrder(o, order.PendingPayment)
	}
}

func TestPaymentsThatAreNeverClosedHoldUpNoneBehindThem(t *testing.T) {
	t.Parallel()
	s := newShop(t, 17)
	provider := &silent{Provider: s.flaky, name: "SILENT", answers: map[uuid.UUID]bool{}}
	s.patient(200*time.Millisecond, provider)
	for range 16 {
		s.payAt("SILENT", s.buy())
	}
	s.clock.Advance(2 * time.Second)
	behind := s.buy()
	provider.answers[s.payAt("SILENT", behind)] = true
	s.clock.Advance(window + 2*time.Second)
	if !s.lapses(behind, 100) {
		t.Error("the last order does not lapse although its provider answers")
	}
}
