package payment_test

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
)

func TestADeclineSaysWhyHoweverItIsHeardOf(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		registry := prometheus.NewRegistry()
		s.registerer = registry
		s.restart()
		reported, asked := s.begin(s.buy(), "key-1"), s.begin(s.buy(), "key-1")
		s.must(s.bank.Decline(t.Context(), s.charge(reported).ID, string(payment.InsufficientFunds)))
		s.work()
		s.clock.Advance(4 * time.Second)
		s.work()
		lost := func() fate { return unsent }
		s.roads.Store(&lost)
		s.must(s.bank.Decline(t.Context(), s.charge(asked).ID, "a reason of tomorrow"))
		s.clock.Advance(21 * time.Second)
		s.step(s.check)
		s.clock.Advance(4 * time.Second)
		s.step(s.pay.RetryEvents)
		for p, want := range map[*payment.Payment]payment.Decline{reported: payment.InsufficientFunds, asked: payment.OtherDecline} {
			got, err := s.pay.Payment(t.Context(), p.ID)
			s.must(err)
			if got.Status != payment.Closed || got.Decline != want {
				t.Errorf("%s with %q, want %q", got.Status, got.Decline, want)
			}
		}
		families, err := registry.Gather()
		s.must(err)
		declines := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "seckill_payment_declines_total" && m.GetCounter().GetValue() > 0 {
					declines[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		if want := map[string]float64{"INSUFFICIENT_FUNDS": 1, "OTHER": 1}; !maps.Equal(declines, want) {
			t.Errorf("declines %v, want %v", declines, want)
		}
	})
}

func TestADeclinedAttemptLeavesThePaymentOpen(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		decline := func(event string, why payment.Decline) *payment.Payment {
			t.Helper()
			e, err := s.pay.Record(t.Context(), sandbox.Name, payment.Event{
				ID: event, Payment: p.ID, Kind: payment.EventAttemptDeclined, Decline: why, At: s.clock.Now(),
			})
			s.must(err)
			s.must(s.pay.Settle(t.Context(), e))
			got, err := s.pay.Payment(t.Context(), p.ID)
			s.must(err)
			return got
		}
		decline("evt_1", payment.CardExpired)
		decline("evt_2", payment.CardExpired)
		if got := decline("evt_2", payment.CardExpired); got.Status != payment.Pending || got.Declined || got.Decline != payment.CardExpired {
			t.Errorf("payment %+v", got)
		}
		log, err := s.orders.Timeline(t.Context(), s.wantOrder(o, order.PendingPayment))
		s.must(err)
		if len(log) != 2 || log[1].Code != order.CodePaymentDeclined {
			t.Errorf("log %+v", log)
		}
		s.approve(p, sandbox.Prompt)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		if got := decline("evt_3", payment.WrongDetails); got.Status != payment.Succeeded || got.Decline != payment.CardExpired {
			t.Errorf("a decline after the money: %+v", got)
		}
	})
}
