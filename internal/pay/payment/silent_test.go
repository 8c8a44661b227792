package payment_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// silent is a provider that never replies.
type silent struct {
	payment.Provider
	name    string
	answers map[id.Payment]bool // except for these payments
	hanging atomic.Int64        // calls that wait for a reply
}

func (s *silent) Name() string { return s.name }

func (s *silent) Close(ctx context.Context, p payment.Known) (payment.State, error) {
	if err := s.hang(ctx, p.Payment); err != nil {
		return payment.State{}, err
	}
	return s.Provider.Close(ctx, p)
}

func (s *silent) Query(ctx context.Context, p payment.Known) (payment.State, error) {
	if err := s.hang(ctx, p.Payment); err != nil {
		return payment.State{}, err
	}
	return s.Provider.Query(ctx, p)
}

func (s *silent) Refund(ctx context.Context, in payment.RefundInput) error {
	if err := s.hang(ctx, in.Paid.Payment); err != nil {
		return err
	}
	return s.Provider.Refund(ctx, in)
}

func (s *silent) hang(ctx context.Context, p id.Payment) error {
	if s.answers[p] {
		return nil
	}
	s.hanging.Add(1)
	defer s.hanging.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

// patient replaces the payment service of the shop by one with the given providers, and
// bounds how long its expiry loop waits for them.
func (s *shop) patient(patience time.Duration, providers ...payment.Provider) {
	s.t.Helper()
	publisher := order.NewAfterCommit(order.AfterCommitConfig{
		Cache: order.NewCache(s.conn, s.keys.Tasks, s.clock), Orders: s.published.publish, Timeout: testenv.Wait, Log: quiet,
	})
	s.pay = payment.New(payment.Config{
		DB: s.db, Orders: s.orders, AfterCommit: publisher, Gate: s.flaky, Providers: providers, Timeout: max(patience, payment.ProviderTimeout), Patience: patience, Clock: s.clock, Log: quiet,
	})
}

func (s *shop) payAt(provider string, o *order.Order) id.Payment {
	s.t.Helper()
	p, err := s.pay.Pay(s.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: provider, IdempotencyKey: "key-1"})
	if err != nil {
		s.t.Fatalf("pay: %v", err)
	}
	return p.Payment.ID
}

// expires runs the expiry loop for the given number of steps, each within its timeout,
// and reports whether an order expired.
func (s *shop) expires(o *order.Order, steps int) bool {
	s.t.Helper()
	for range steps {
		ctx, cancel := context.WithTimeout(s.t.Context(), payment.ExpireTimeout)
		_, err := s.pay.ExpireOverdue(ctx)
		cancel()
		s.must(err)
		if s.order(o).Status == order.Expired {
			return true
		}
	}
	return false
}

func TestAProviderThatNeverAnswersHoldsUpNoOtherOrders(t *testing.T) {
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
	if !s.expires(unpaid, 1) {
		t.Error("an order without a payment does not expire")
	}
	if !s.expires(elsewhere, 3) {
		t.Error("an order with a payment at another provider does not expire")
	}
	for _, o := range stuck {
		s.wantOrder(o, order.PendingPayment)
	}
}

func TestPaymentsThatAreNeverClosedHoldUpNoneBehindThem(t *testing.T) {
	t.Parallel()
	s := newShop(t, 17)
	provider := &silent{Provider: s.flaky, name: "SILENT", answers: map[id.Payment]bool{}}
	s.patient(200*time.Millisecond, provider)
	for range 16 {
		s.payAt("SILENT", s.buy())
	}
	s.clock.Advance(2 * time.Second)
	behind := s.buy()
	provider.answers[s.payAt("SILENT", behind)] = true
	s.clock.Advance(window + 2*time.Second)
	if !s.expires(behind, 100) {
		t.Error("the last order does not expire although its provider answers")
	}
}

func TestAStepContinuesAfterTheOrdersOfThePreviousOne(t *testing.T) {
	t.Parallel()
	s := newShop(t, payment.ExpireBatch+1)
	s.patient(time.Second, &silent{Provider: s.flaky, name: "SILENT"})
	s.pay.LimitExpiry(1)
	for range payment.ExpireBatch {
		s.payAt("SILENT", s.buy())
	}
	s.clock.Advance(2 * time.Second)
	behind := s.buy()
	s.clock.Advance(window + 2*time.Second)
	if !s.expires(behind, 3) {
		t.Error("the order behind those of the first step does not expire")
	}
}

// paidAt returns an order that was paid at a provider and has a refund to send.
func (s *shop) paidAt(provider string) *order.Order {
	s.t.Helper()
	o := s.buy()
	p := s.payAt(provider, o)
	c, err := s.bank.ByMerchant(s.t.Context(), p)
	s.must(err)
	s.must(s.bank.Approve(s.t.Context(), c.ID, sandbox.Prompt))
	s.clock.Advance(21 * time.Second)
	for _, loop := range s.pay.Loops() {
		s.step(loop.Step)
	}
	s.wantOrder(o, order.Paid)
	s.approveRefund(s.askRefund(o), false)
	return o
}

func TestAProviderThatNeverAnswersHoldsUpNoOtherChecksOrRefunds(t *testing.T) {
	t.Parallel()
	const many = 101 // more than one batch
	s := newShop(t, many+3)
	provider := &silent{Provider: s.flaky, name: "SILENT", answers: map[id.Payment]bool{}}
	s.patient(time.Second, answering{provider}, s.flaky)
	owed := s.paidAt("SILENT")
	s.patient(time.Second, provider, s.flaky)
	refunded := s.paidAt(sandbox.Name)
	for range many {
		s.payAt("SILENT", s.buy())
	}
	s.clock.Advance(time.Second)
	paid := s.buy()
	c, err := s.bank.ByMerchant(t.Context(), s.payAt(sandbox.Name, paid))
	s.must(err)
	s.must(s.bank.Approve(t.Context(), c.ID, sandbox.Prompt)) // without a call-back
	s.clock.Advance(21 * time.Second)

	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	for _, loop := range s.pay.Loops() {
		loops.Go(func() { _ = loop.Run(ctx) })
	}
	most := int64(0)
	testenv.Eventually(t, testenv.Wait, func() bool {
		most = max(most, provider.hanging.Load())
		return most == 9 && s.order(paid).Status == order.Paid && s.order(refunded).Status == order.Refunded
	}, "the order is paid, the other one refunded, while the other provider has nine calls")
	cancel()
	loops.Wait()
	s.wantOrder(owed, order.Refunding)
}

// answering is a provider before it stops replying.
type answering struct{ *silent }

func (a answering) Query(ctx context.Context, p payment.Known) (payment.State, error) {
	return a.Provider.Query(ctx, p)
}

// mad is a provider that panics.
type mad struct{ payment.Provider }

func (mad) Close(context.Context, payment.Known) (payment.State, error) { panic("mad") }

func TestAProviderThatPanicsEndsAStepAndNotTheProcess(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.patient(time.Second, mad{s.flaky})
	s.payAt(sandbox.Name, s.buy())
	s.clock.Advance(window + 2*time.Second)
	if _, err := s.pay.ExpireOverdue(t.Context()); err == nil || !strings.Contains(err.Error(), "panic: mad") {
		t.Errorf("step: %v", err)
	}
}
