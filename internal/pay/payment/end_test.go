package payment_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	entorder "seckill/ent/order"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/gate/preload"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// Also for the very last unit.
func TestAnUnpaidOrderExpiresAndItsUnitComesBackOnce(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		if s.place(id.New[id.User](), 1) != nil {
			t.Error("a second order for one unit")
		}
		s.clock.Advance(window)
		s.step(s.pay.ExpireOverdue)
		s.wantOrder(o, order.PendingPayment) // not before its deadline
		s.clock.Advance(2 * time.Second)
		for range 3 {
			s.step(s.pay.ExpireOverdue)
			s.step(s.returner.Step)
		}
		s.wantOrder(o, order.Expired)
		s.wantPayment(p, payment.Closed)
		s.wantFigures(figures{available: 1, stock: 1})
		if err := s.bank.Approve(t.Context(), s.charge(p).ID, sandbox.Prompt); err == nil {
			t.Error("the closed charge could be paid")
		}
		if again := s.place(o.User, 1); again == nil {
			t.Error("the same buyer may not buy again")
		}
	})
}

func TestAPaymentThatWasFirstBeatsTheExpire(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Delayed) // paid in time, and not yet reported
		s.expirePayments()
		s.wantOrder(o, order.Paid)
		s.settleDown()
		s.wantFigures(figures{sold: 1, reserved: 1, holders: 1})
	})
}

// While the provider's state is unknown, the order waits, and delays no other order.
func TestAnOrderDoesNotExpireWhileItsPaymentIsUnknown(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		unknown, other := s.buy(), s.buy()
		s.begin(unknown, "key-1")
		s.flaky.lose(func(string) fate { return unsent })
		s.clock.Advance(window + 2*time.Second)
		s.step(s.pay.ExpireOverdue)
		s.wantOrder(unknown, order.PendingPayment)
		s.wantOrder(other, order.Expired)
		s.flaky.lose(nil)
		s.expirePayments()
		s.wantOrder(unknown, order.Expired)
	})
}

// A late payment reacquires the unit.
func TestLateMoneyTakesTheUnitAgain(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Late)
		s.clock.Advance(window + 2*time.Second)
		s.step(s.pay.ExpireOverdue)
		s.wantOrder(o, order.Expired)
		s.settleDown()
		paid := s.wantOrder(o, order.Paid)
		s.wantPayment(p, payment.Succeeded)
		s.wantFigures(figures{sold: 1, reserved: 1, holders: 1})
		log, err := s.orders.Timeline(t.Context(), paid)
		if err != nil || log[len(log)-1].Code != order.CodePaidLate {
			t.Errorf("log %+v, %v", log, err)
		}
		// The reacquired unit is returned under its new name, once.
		s.approveRefund(s.askRefund(o), false)
		s.settleDown()
		s.wantOrder(o, order.Refunded)
		s.wantFigures(figures{available: 1, stock: 1})
	})
}

// A payment after the deadline is refunded when no unit is left.
func TestLateMoneyGoesBackWhenTheUnitIsGone(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Late)
		s.expirePayments()
		winner := s.buy()
		s.payNow(winner)
		s.settleDown()
		s.wantOrder(o, order.Expired)
		s.wantOrder(winner, order.Paid)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{sold: 1, reserved: 1, holders: 1})
		if c := s.charge(p); c.Refunded != c.AmountMinor {
			t.Errorf("charge %+v", c)
		}
		log, err := s.orders.Timeline(t.Context(), s.order(o))
		if err != nil || log[len(log)-1].Code != order.CodeRefunded || log[len(log)-2].Code != order.CodePaymentReturned {
			t.Errorf("log %+v, %v", log, err)
		}
	})
}

func TestLateMoneyGoesBackWhenTheBuyerHasAnotherOrder(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Late)
		s.expirePayments()
		again := s.place(o.User, 1)
		s.settleDown()
		s.wantOrder(o, order.Expired)
		s.wantOrder(again, order.PendingPayment)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 2, held: 1, stock: 2, reserved: 1, holders: 1})
	})
}

// The gate has a unit and Postgres has none: Postgres decides, and the gate's
// reservation for the order is returned.
func TestLateMoneyGoesBackWhenTheRecordHasNoUnit(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Late)
		s.expirePayments()
		s.payNow(s.buy())
		key := s.keys.Item(id.ShardOf(s.sale), s.item)
		s.must(s.conn.Cmd.HIncrBy(t.Context(), key, "stock", 1).Err())
		s.settleDown()
		s.wantOrder(o, order.Expired)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{sold: 1, stock: 1, reserved: 1, holders: 1})
	})
}

// No gate is built for a sale that is over.
func TestTheRecordDecidesAboutLateMoneyWhenTheGateIsLostAfterTheEnd(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		var late []*order.Order
		var payments []*payment.Payment
		for range 2 { // they hold the single unit one after the other
			o := s.buy()
			p := s.begin(o, "key-1")
			s.approve(p, sandbox.Late)
			s.expirePayments()
			late, payments = append(late, o), append(payments, p)
		}
		s.must(s.db.Ent.Sale.UpdateOneID(s.sale).SetStatus(sale.StatusENDED).Exec(t.Context()))
		s.must(s.conn.Cmd.HSet(t.Context(), s.keys.Item(id.ShardOf(s.sale), s.item), "run", "0123456789abcdef").Err())
		s.step(preload.New(preload.Config{
			DB: s.db, Gate: reservation.NewGate(reservation.GateConfig{Client: s.conn.Script, Keys: s.keys, Timeout: testenv.Wait}),
			Backlog: noMessages{}, NoteTimeout: testenv.Wait,
			Clock: s.clock, Log: quiet,
		}).Step)
		s.settleDown()
		for i, o := range late {
			now, err := s.pay.Payment(t.Context(), payments[i].ID)
			s.must(err)
			is := s.order(o).Status
			kept := is == order.Paid && now.Status == payment.Succeeded
			if !kept && (is != order.Expired || now.Status != payment.Refunded) {
				t.Errorf("order %s, payment %s: neither an order nor a refund", is, now.Status)
			}
		}
		s.wantFigures(figures{sold: 1})
	})
}

// Without a gate no script counts the units of a buyer.
func TestLateMoneyGoesBackWhenTheLimitOfTheSaleIsUsedUpAfterTheEnd(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Late)
		s.expirePayments()
		s.must(s.db.Ent.Order.Create().SetID(id.New[id.Order]()).SetNumber("OTHER").SetSaleID(s.sale).SetItemID(id.New[id.Item]()).SetUserID(o.User).
			SetStatus(entorder.StatusPAID).SetQuantity(1).SetUnitPriceMinor(1).SetCurrency("EUR").SetEpoch(1).
			SetReservedAt(opening).SetCreatedAt(opening).SetUpdatedAt(opening).Exec(t.Context()))
		s.must(s.db.Ent.Sale.UpdateOneID(s.sale).SetStatus(sale.StatusENDED).SetTotalLimit(1).Exec(t.Context()))
		s.must(s.conn.Cmd.Del(t.Context(), s.keys.Item(id.ShardOf(s.sale), s.item)).Err())
		s.settleDown()
		s.wantOrder(o, order.Expired)
		s.wantPayment(p, payment.Refunded)
	})
}

func TestMoneyForACancelledOrderGoesBack(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		s.approve(p, sandbox.Late)
		if _, err := s.pay.Cancel(t.Context(), o.ID, o.User, "changed my mind"); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(window)
		s.settleDown()
		s.wantOrder(o, order.Cancelled)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
	})
}

func TestMoneyThatComesTwiceGoesBackOnce(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		o := s.buy()
		first := s.begin(o, "key-1")
		s.approve(first, sandbox.Late)
		s.must(s.pay.Settle(t.Context(), s.say(first, payment.EventClosed))) // closed, according to our record
		second := s.begin(o, "key-2")
		s.approve(second, sandbox.Prompt)
		s.settleDown()
		s.clock.Advance(window)
		s.settleDown()
		s.wantOrder(o, order.Paid)
		s.wantPayment(first, payment.Refunded)
		s.wantPayment(second, payment.Succeeded)
		s.wantFigures(figures{available: 2, sold: 1, stock: 2, reserved: 1, holders: 1})
	})
}

// say records an event about a payment.
func (s *shop) say(p *payment.Payment, kind payment.EventKind) id.Held {
	s.t.Helper()
	event, err := s.pay.Record(s.t.Context(), sandbox.Name, payment.Event{
		ID: id.New[uuid.UUID]().String(), Payment: p.ID, Kind: kind, Transaction: "T" + p.ID.String(), AmountMinor: p.AmountMinor,
		Currency: p.Currency, At: s.clock.Now(),
	})
	s.must(err)
	return event
}

// Two concurrent cancels return one unit.
func TestCancelsAtOnceReturnOneUnit(t *testing.T) {
	onBoth(t, 5, func(t *testing.T, s *shop) {
		o := s.buy()
		p := s.begin(o, "key-1")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := s.pay.Cancel(t.Context(), o.ID, o.User, "no")
				if err != nil || got.Status != order.Cancelled {
					t.Errorf("cancel: %+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		s.settleDown()
		s.wantOrder(o, order.Cancelled)
		s.wantPayment(p, payment.Closed)
		s.wantFigures(figures{available: 5, stock: 5})
		// The buyer may buy again.
		if s.place(o.User, 1) == nil {
			t.Error("the buyer may not buy again")
		}
	})
}

func TestWhoMayCancelWhat(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5)
	mine, paid, expired := s.buy(), s.buy(), s.buy()
	_, err := s.pay.Cancel(t.Context(), mine.ID, id.New[id.User](), "")
	s.wantRefused(err, fault.Unknown)
	s.payNow(paid)
	_, err = s.pay.Cancel(t.Context(), paid.ID, paid.User, "")
	s.wantRefused(err, fault.Conflict)
	s.expirePayments()
	_, err = s.pay.Cancel(t.Context(), expired.ID, expired.User, "")
	s.wantRefused(err, fault.OrderExpired)
}

// A cancel that finds the payment paid leaves the order paid.
func TestACancelLosesAgainstAPaymentThatWasFirst(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		s.approve(s.begin(o, "key-1"), sandbox.Delayed)
		got, err := s.pay.Cancel(t.Context(), o.ID, o.User, "")
		s.wantRefused(err, fault.Conflict)
		if got.Status != order.Paid {
			t.Errorf("order %+v", got)
		}
	})
}

func TestAnOperatorVoidsUnpaidAndPaidOrders(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, s *shop) {
		unpaid, paid := s.buy(), s.buy()
		s.begin(unpaid, "key-1")
		p := s.payNow(paid)
		operator := id.New[id.User]()
		for range 2 {
			for _, o := range []*order.Order{unpaid, paid} {
				if _, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: operator, Note: "bot"}); err != nil {
					t.Fatal(err)
				}
			}
			s.settleDown()
		}
		s.wantOrder(unpaid, order.Cancelled)
		s.wantOrder(paid, order.Refunded)
		s.wantPayment(p, payment.Refunded)
		s.wantFigures(figures{available: 3, stock: 3})
		_, err := s.pay.Void(t.Context(), payment.VoidInput{Order: id.New[id.Order](), Operator: operator})
		s.wantRefused(err, fault.Unknown)
	})
}

// A void that finds the payment paid is not refused: it refunds the money.
func TestAVoidOfAnOrderThatWasPaidFirstRefundsIt(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, s *shop) {
		o := s.buy()
		s.approve(s.begin(o, "key-1"), sandbox.Delayed)
		got, err := s.pay.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: id.New[id.User](), Note: "bot"})
		if err != nil || got.Status != order.Refunding {
			t.Fatalf("void: %+v, %v", got, err)
		}
		s.settleDown()
		s.wantOrder(o, order.Refunded)
	})
}

// The limit of one live order is per user and item, not per user.
func TestAnOrderOfOneItemKeepsNoBuyerFromAnother(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, s *shop) {
		o := s.buy()
		if s.place(o.User, 1) != nil {
			t.Error("two orders of one item")
		}
		s.newSale(1)
		if s.place(o.User, 1) == nil {
			t.Error("the buyer of one item may not buy another")
		}
	})
}

// Bots reserve all stock and begin payments without paying: five seconds after the
// payment window all units are available again.
func TestStockHeldByBotsIsSellableAgainAfterTheWindow(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1000)
	spread(1000, func(i int) {
		if o := s.buy(); i%10 == 0 {
			s.begin(o, "key-1")
		}
	})
	if s.place(id.New[id.User](), 1) != nil {
		t.Error("more was sold than is there")
	}
	s.clock.Advance(window + 5*time.Second)
	s.step(s.pay.ExpireOverdue)
	for range 3 {
		s.step(s.returner.Step)
	}
	s.wantFigures(figures{available: 1000, stock: 1000})
}

// noMessages is a backlog without messages.
type noMessages struct{}

func (noMessages) Requests(context.Context, int) ([]order.Request, error)  { return nil, nil }
func (noMessages) Unhandled(context.Context, int) ([]order.Request, error) { return nil, nil }
