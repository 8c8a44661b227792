package payment_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/providertest"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// paidBy records money that came by a means of payment.
func (s *shop) paidBy(p *payment.Payment, payer string) id.Held {
	s.t.Helper()
	event, err := s.pay.Record(s.t.Context(), sandbox.Name, payment.Event{
		ID: id.New[uuid.UUID]().String(), Payment: p.ID, Kind: payment.EventSucceeded, Transaction: "T" + p.ID.String(), AmountMinor: p.AmountMinor,
		Currency: p.Currency, Payer: payer, At: s.clock.Now(),
	})
	s.must(err)
	return event
}

func (s *shop) limitBy(l sale.LimitBy) {
	s.t.Helper()
	s.must(s.db.WithTx(s.t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Sale.Update().Where(entsale.ID(s.sale)).SetLimitBy(l.String()).SetTotalLimit(1).Exec(ctx)
	}))
}

// Of accounts that pay with one card at the same moment, one keeps its order; the money of the
// others goes back, and their units are for sale again.
func TestOneMeansOfPaymentPaysTheLimitOfOne(t *testing.T) {
	onBoth(t, 5, func(t *testing.T, s *shop) {
		s.limitBy(sale.LimitBy{Payment: true})
		var events []id.Held
		orders := make([]*order.Order, 4)
		for i := range orders {
			orders[i] = s.buy()
			events = append(events, s.paidBy(s.begin(orders[i], "key-1"), "card-1"))
		}
		var all sync.WaitGroup
		for _, event := range events {
			all.Go(func() {
				if err := s.pay.Settle(context.Background(), event); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s.step(s.returner.Step)
		paid := 0
		var kept *order.Order
		for _, o := range orders {
			switch now := s.order(o); now.Status {
			case order.Paid:
				paid, kept = paid+1, now
			case order.Cancelled:
				log, err := s.orders.Timeline(t.Context(), now)
				if err != nil || log[len(log)-1].Code != order.CodeLimit && log[len(log)-2].Code != order.CodeLimit {
					t.Errorf("log %+v %v", log, err)
				}
			default:
				t.Errorf("order is %s", now.Status)
			}
		}
		if paid != 1 {
			t.Fatalf("one card paid %d orders", paid)
		}
		refunds, err := s.db.Ent.Refund.Query().Count(t.Context())
		if s.must(err); refunds != 3 {
			t.Errorf("%d refunds, want 3", refunds)
		}
		other := s.buy()
		s.must(s.pay.Settle(t.Context(), s.paidBy(s.begin(other, "key-1"), "card-2")))
		s.wantOrder(other, order.Paid)
		s.wantFigures(figures{available: 3, sold: 2, stock: 3, reserved: 2, holders: 2})
		row, err := s.db.Ent.Order.Get(t.Context(), kept.ID)
		if s.must(err); row.PaymentKey == nil || len(*row.PaymentKey) != 17 {
			t.Errorf("payment key %v", row.PaymentKey)
		}
		kept1, err := s.db.Ent.PaymentEvent.Get(t.Context(), events[0])
		if s.must(err); kept1.Payer != nil {
			t.Error("the event keeps the means of payment")
		}
	})
}

func TestAMeansOfPaymentIsNotCountedUnlessTheSaleSaysSo(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		s.limitBy(sale.LimitBy{Contact: true})
		for range 2 {
			o := s.buy()
			s.must(s.pay.Settle(t.Context(), s.paidBy(s.begin(o, "key-1"), "card-1")))
			s.wantOrder(o, order.Paid)
			if row, err := s.db.Ent.Order.Get(t.Context(), o.ID); err != nil || row.PaymentKey != nil {
				t.Errorf("payment key %v %v", row.PaymentKey, err)
			}
		}
	})
}

func TestEveryProviderNamesTheMeansOfPayment(t *testing.T) {
	t.Parallel()
	now := clock.NewFake(opening)
	for _, rig := range providertest.Rigs(now.Now) {
		client := &http.Client{Transport: inMemory(rig.Service.ServeHTTP)}
		provider, err := rig.Provider(providertest.Address{Service: "http://provider.example", Shop: "https://shop.example", Client: client, Clock: now})
		if err != nil {
			t.Fatal(err)
		}
		in := payment.CreateInput{
			Payment: id.New[id.Payment](), Order: id.New[id.Order](), Number: "1", AmountMinor: 1999, Currency: rig.Currency,
			CreatedAt: now.Now(), ExpiresAt: now.Now().Add(window),
		}
		made, err := provider.Create(t.Context(), in)
		if err != nil || !rig.Pay(in.Payment, in.AmountMinor, in.Currency) {
			t.Fatalf("%s: %v", rig.Name, err)
		}
		charge, _ := rig.Charge(in.Payment)
		header, body, _ := rig.Service.Report("evt_1", charge)
		e, err := provider.Callback(header, body)
		if err != nil {
			t.Fatalf("%s: %v", rig.Name, err)
		}
		state, err := provider.Query(t.Context(), payment.Known{CreateInput: in, Ref: made.Ref})
		if err != nil {
			t.Fatalf("%s: %v", rig.Name, err)
		}
		if namer, ok := provider.(payment.PayerNamer); ok {
			e.Payer, err = namer.Payer(t.Context(), e.Transaction)
			state.Payer = e.Payer
		}
		if err != nil || e.Payer != providertest.Payer || state.Payer != providertest.Payer {
			t.Errorf("%s names %q in reports and %q when asked, %v", rig.Name, e.Payer, state.Payer, err)
		}
	}
}
