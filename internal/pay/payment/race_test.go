package payment_test

import (
	"sync"
	"testing"

	entpayment "seckill/ent/payment"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// at runs functions concurrently.
func at(run ...func()) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for _, f := range run {
		wg.Go(func() { <-start; f() })
	}
	close(start)
	wg.Wait()
}

// A payment begins while its order is cancelled: it is closed with the order, or does
// not begin.
func TestACancelledOrderHasNoOpenPayment(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, s *shop) {
		for range 50 {
			o := s.buy()
			at(func() {
				_, err := s.pay.Pay(t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-1"})
				if unlessRefused(err) != nil && fault.CodeOf(err) != fault.Unavailable {
					t.Error(err)
				}
			}, func() {
				if _, err := s.pay.Cancel(t.Context(), o.ID, o.User, ""); unlessRefused(err) != nil && fault.CodeOf(err) != fault.Unavailable {
					t.Error(err)
				}
			})
			payments, err := s.db.Ent.Payment.Query().Where(entpayment.OrderID(o.ID)).All(t.Context())
			s.must(err)
			if s.order(o).Status != order.Cancelled {
				continue
			}
			for _, p := range payments {
				if payment.Status(p.Status).IsOpen() {
					t.Fatalf("payment %+v of a cancelled order", p)
				}
			}
		}
	})
}

// Provider events arrive in any sequence, and concurrently: received money takes
// precedence over every other event.
func TestMoneyWinsOverAClosureAtTheSameMoment(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, s *shop) {
		for i := range 50 {
			o := s.buy()
			p := s.begin(o, "key-1")
			kinds := []payment.EventKind{payment.EventClosed, payment.EventSucceeded, payment.EventDeclined}
			var settle []func()
			for _, kind := range kinds {
				event := s.say(p, kind)
				settle = append(settle, func() {
					if err := s.pay.Settle(t.Context(), event); err != nil {
						t.Error(err)
					}
				})
			}
			if i%2 == 0 {
				at(settle...)
			} else { // sequentially, the money last
				settle[0]()
				settle[2]()
				settle[1]()
			}
			s.settleDown()
			s.wantOrder(o, order.Paid)
			s.wantPayment(p, payment.Succeeded)
		}
		s.sound()
	})
}

// Concurrent decisions about one refund: exactly one takes effect.
func TestDecisionsAtOnceAreOneDecision(t *testing.T) {
	onBoth(t, 100, func(t *testing.T, s *shop) {
		for range 10 {
			o := s.buy()
			s.payNow(o)
			r := s.askRefund(o)
			decide := func(approve bool) func() {
				return func() {
					_, err := s.pay.DecideRefund(t.Context(), payment.Decision{Refund: r.ID, Operator: id.New[id.User](), Approve: approve})
					if err != nil && fault.ReasonOf(err) != fault.Conflict {
						t.Error(err)
					}
				}
			}
			at(decide(true), decide(false), decide(true), decide(false))
			s.settleDown()
			s.sound()
			if now := s.order(o).Status; now != order.Paid && now != order.Refunded {
				t.Errorf("order is %s", now)
			}
		}
	})
}

// unlessRefused returns an error that is not a refusal.
func unlessRefused(err error) error {
	if _, refused := fault.AsRefusal(err); refused {
		return nil
	}
	return err
}
