package payment_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// A provider that is permanently unavailable holds no units.
func TestAnOrderAtAProviderThatIsGoneExpiresAfterAGrace(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.patient(time.Second) // no provider is configured any more
		s.clock.Advance(window + 2*time.Second)
		s.step(s.pay.ExpireOverdue)
		s.wantOrder(o, order.PendingPayment)
		s.clock.Advance(payment.ProviderGrace)
		s.step(s.pay.ExpireOverdue)
		s.step(s.returner.Step)
		s.wantOrder(o, order.Expired)
		s.wantFigures(figures{available: 2, stock: 2})

		s.restart() // the provider is configured again, and the money had been paid
		s.must(s.pay.Settle(t.Context(), s.say(p, payment.EventSucceeded)))
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{available: 1, sold: 1, stock: 1, reserved: 1, holders: 1})
	})
}

// rebuilding is a gate whose sale begins a rebuild after units were reacquired.
type rebuilding struct {
	payment.Gate
	begin func()
}

func (r *rebuilding) Reacquire(ctx context.Context, c order.Reservation) (payment.ReacquireOutcome, int64, error) {
	outcome, epoch, err := r.Gate.Reacquire(ctx, c)
	if r.begin != nil {
		r.begin()
		r.begin = nil
	}
	return outcome, epoch, err
}

// openGate replaces the gate of the sale by one of a new epoch, as a rebuild does.
func (s *shop) openGate(epoch int64, stock int) {
	s.t.Helper()
	gate := reservation.NewGate(reservation.GateConfig{Client: s.conn.Script, Keys: s.keys, Timeout: testenv.Wait})
	_, err := gate.Begin(s.t.Context(), s.sale, s.item, epoch)
	s.must(err)
	_, err = gate.Open(s.t.Context(), reservation.Contents{
		Sale: s.sale, Item: s.item, State: reservation.GateOpen, Epoch: epoch, Opens: time.Now().Add(-time.Hour),
		Closes: time.Now().Add(time.Hour), Limit: 2, Total: stock, Stock: stock, Revision: 9,
	})
	s.must(err)
}

// The rebuilt gate sells the unit of an expired order: late money that reacquired it in
// the old gate must not take it from the buyer of that order.
func TestLateMoneyWaitsForARebuildThatBeganMeanwhile(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.expirePayments()
		s.wantOrder(o, order.Expired)
		s.flaky.gate = &rebuilding{Gate: s.flaky.gate, begin: func() {
			s.must(s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
				return tx.Sale.UpdateOneID(s.sale).SetEpoch(2).Exec(ctx)
			}))
		}}
		event := s.say(p, payment.EventSucceeded)
		s.must(s.pay.Settle(t.Context(), event))
		s.wantOrder(o, order.Expired)
		s.openGate(2, 1)
		if s.buy() == nil {
			t.Fatal("the rebuilt gate has no unit")
		}
		s.clock.Advance(time.Minute)
		s.must(s.pay.Settle(t.Context(), event))
		s.wantOrder(o, order.Expired)
		s.wantFigures(figures{held: 1, reserved: 1, holders: 1})
		testenv.RecordFault(t, testenv.FaultRow{Fault: "late money during a rebuild, " + s.db.Dialect, Accepted: 1, Stored: 1})
	})
}

// Redis lost the gate of an open sale: the rebuild decides which units are left.
func TestLateMoneyWaitsForAGateThatWasLost(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.expirePayments()
		keys := []string{s.keys.Item(id.ShardOf(s.sale), s.item), s.keys.Reservations(id.ShardOf(s.sale), s.item)}
		s.must(s.conn.Cmd.Del(t.Context(), keys...).Err())
		event := s.say(p, payment.EventSucceeded)
		s.must(s.pay.Settle(t.Context(), event))
		s.wantOrder(o, order.Expired)
		s.must(s.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Sale.UpdateOneID(s.sale).SetStatus(entsale.StatusENDED).Exec(ctx)
		}))
		s.clock.Advance(time.Minute)
		s.must(s.pay.Settle(t.Context(), event))
		s.wantOrder(o, order.Paid)
	})
}

// What happens to the payments of an order is published although its state stays: a
// refusal, money that came too late, and its refund.
func TestWhatHappensToPaymentsIsPublished(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		seen := o.Version
		published := func(what string) {
			t.Helper()
			if now := s.published.of(o.ID); now == nil || now.Version <= seen || !now.Noted {
				t.Errorf("%s is not published: %+v", what, now)
			} else {
				seen = now.Version
			}
		}
		p := s.begin(o, "key-1")
		s.must(s.pay.Settle(t.Context(), s.say(p, payment.EventDeclined)))
		published("a refusal")
		list, err := s.pay.PaymentsOf(t.Context(), o.ID)
		s.must(err)
		if len(list) != 1 || !list[0].Declined || list[0].Status != payment.Closed {
			t.Errorf("payments %+v", list)
		}
		s.approve(s.begin(o, "key-2"), sandbox.Late)
		cancelled, err := s.pay.Cancel(t.Context(), o.ID, o.User, "")
		s.must(err)
		seen = cancelled.Version + 1 // the money and its refund are two changes
		s.clock.Advance(window + time.Minute)
		s.settleDown()
		published("money that came too late, or its refund,")
		refunds, err := s.pay.RefundsOf(t.Context(), o.ID)
		s.must(err)
		if list := refunds[o.ID]; len(list) != 1 || list[0].Status != payment.RefundSucceeded || list[0].DecidedAt == nil {
			t.Errorf("refunds %+v", list)
		}
	})
}

// After a long outage of the shop, every order is overdue by more than the grace: those
// whose provider was not asked yet must not expire, because they may be paid.
func TestAnOrderExpiresAfterTheGraceOnlyIfItsProviderWasAsked(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Delayed)
		s.clock.Advance(window + payment.ProviderGrace + 2*time.Second)
		s.patient(time.Nanosecond, s.flaky) // the step ends before it asks
		s.step(s.pay.ExpireOverdue)
		s.wantOrder(o, order.PendingPayment)
		s.patient(testenv.Wait, s.flaky)
		s.step(s.pay.ExpireOverdue)
		s.wantOrder(o, order.Paid)
	})
}

// lasting is a provider whose payments stay open until they are closed.
type lasting struct {
	payment.Provider
	closes atomic.Int64
}

func (l *lasting) Query(ctx context.Context, p payment.Known) (payment.State, error) {
	if l.closes.Load() == 0 {
		return payment.State{Phase: payment.PhaseOpen, Ref: p.Ref, At: opening}, nil
	}
	return l.Provider.Query(ctx, p)
}

func (l *lasting) Close(ctx context.Context, p payment.Known) (payment.State, error) {
	l.closes.Add(1)
	return l.Provider.Close(ctx, p)
}

// An order that an operator expired, or that another payment paid, does not close it.
func TestAnOverduePaymentIsClosedWhateverBecameOfItsOrder(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.gone()
		_, err := s.giveUp(o)
		s.must(err)
		s.wantOrder(o, order.Expired)
		s.flaky.lose(nil)
		provider := &lasting{Provider: s.flaky}
		s.patient(testenv.Wait, provider)
		s.clock.Advance(window - time.Second)
		s.step(s.check)
		s.wantPayment(p, payment.Pending)
		s.clock.Advance(3 * time.Minute)
		s.step(s.check)
		s.wantPayment(p, payment.Closed)
		if n := provider.closes.Load(); n != 1 {
			t.Errorf("closed %d times", n)
		}
	})
}

// inTransaction is a provider at which every payment was paid in one transaction.
type inTransaction struct {
	payment.Provider
	name string
}

func (i inTransaction) Query(_ context.Context, p payment.Known) (payment.State, error) {
	return payment.State{
		Phase: payment.PhasePaid, Ref: p.Ref, Transaction: i.name, AmountMinor: p.AmountMinor, Currency: p.Currency, At: opening,
	}, nil
}

func TestATransactionWithALongNumberIsFoundByAQuery(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.patient(testenv.Wait, inTransaction{s.flaky, strings.Repeat("9", 128)})
		s.clock.Advance(21 * time.Second)
		s.step(s.check)
		s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
	})
}
