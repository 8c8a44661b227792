package payment_test

import (
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/payment/sandbox"
	"seckill/internal/stream"
)

// The everyday numbers are what a test run can wait for; 100,000 of each take
// some hours.
var (
	races    = flag.Int("races", 60, "four-way races to run")
	payments = flag.Int("payments", 200, "payments to make with bad call-backs")
)

const (
	perShop = 1000 // orders until a new shop: its checks read all that it has
	perRush = 100  // orders at once
	hands   = 8    // how many act at once
)

// inShops splits a large number of orders over shops, one after the other.
func inShops(t *testing.T, all int, run func(s *shop, orders int)) {
	t.Helper()
	for done := 0; done < all; done += perShop {
		t.Run("", func(t *testing.T) { run(newShop(t, perShop), min(perShop, all-done)) })
		if t.Failed() {
			return
		}
		if all > perShop {
			t.Logf("%d of %d", min(all, done+perShop), all)
		}
	}
}

// spread does something for each of n, many at once.
func spread(n int, do func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(hands, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	wg.Wait()
}

// settleWhole runs the loops until everything has come to its end.
func (s *shop) settleWhole() {
	s.t.Helper()
	for range 200 {
		if s.count(unfinished) == 0 {
			return
		}
		s.clock.Advance(5 * time.Second)
		s.work()
	}
}

// Pay, lapse, cancel and void meet on one order, with four sweepers. Half of the
// money is with the bank when the race begins and only its call-back races; the
// other half comes in during the race, however the order ends.
func TestFourWayRacesEndOnce(t *testing.T) {
	t.Parallel()
	var ends [4]atomic.Int64
	inShops(t, *races, func(s *shop, orders int) {
		s.prompt.Store(true)
		for left := orders; left > 0; left -= perRush {
			placed := s.rush(min(perRush, left))
			s.race(placed)
			s.sound()
			s.settleWhole()
			s.quietened()
			for _, o := range placed {
				switch now := s.order(o); now.Status {
				case order.Paid:
					ends[0].Add(1)
				case order.Expired:
					ends[1].Add(1)
				case order.Cancelled:
					ends[2].Add(1)
				case order.Refunded:
					ends[3].Add(1)
				case order.PendingPayment, order.Refunding:
					s.t.Fatalf("order %s is %s", now.ID, now.Status)
				}
			}
		}
	})
	t.Logf("%d races: %d paid, %d expired, %d cancelled, %d paid, voided and refunded; no double end",
		*races, ends[0].Load(), ends[1].Load(), ends[2].Load(), ends[3].Load())
}

// rush places orders in a sale of their own, with a payment begun for each.
func (s *shop) rush(orders int) []*order.Order {
	s.t.Helper()
	s.newSale(orders)
	placed := make([]*order.Order, orders)
	spread(orders, func(i int) {
		placed[i] = s.buy()
		habit := sandbox.Delayed
		if i%2 == 0 {
			habit = sandbox.Late
		}
		s.approve(s.begin(placed[i], "key-1"), habit)
	})
	return placed
}

func (s *shop) race(placed []*order.Order) {
	s.t.Helper()
	s.clock.Advance(window + 20*time.Second) // late money is due, and so are delayed call-backs
	run := func(what string, do func() error) func() {
		return func() {
			if err := do(); err != nil && fault.CodeOf(err) != fault.Unavailable && !stream.IsLater(err) {
				s.t.Errorf("%s: %v", what, err)
			}
		}
	}
	ctx := s.t.Context()
	all := []func(){func() {
		spread(len(placed), func(i int) {
			o := placed[i]
			at(run("cancel", func() error { _, _, err := s.pay.Cancel(ctx, o.ID, o.User, ""); return err }),
				run("void", func() error {
					void := s.pay.VoidUnpaid
					if i%3 == 0 { // money or not
						void = s.pay.Void
					}
					_, _, err := void(ctx, payment.VoidInput{Order: o.ID, Operator: id.New()})
					return err
				}))
		})
	}}
	for range 4 {
		all = append(all, run("lapse", func() error { _, err := s.lapser.Step(ctx); return err }))
	}
	all = append(all, run("check", func() error { _, err := s.pay.CheckOpen(ctx); return err }),
		run("call-backs", func() error { _, err := s.courier.Step(ctx); return err }))
	at(all...)
}

// Payments with bad call-backs: one in ten comes several times, one in ten long
// after the lapse, one in twenty after those that followed it, one in twenty times
// out; some of our calls to the bank fail. The bank's ledger and ours are equal to
// the cent.
func TestLedgersAgreeAfterBadCallbacks(t *testing.T) {
	t.Parallel()
	var lost, timedOut atomic.Int64
	kinds := map[sandbox.Habit]*atomic.Int64{}
	for _, habit := range []sandbox.Habit{sandbox.Prompt, sandbox.Delayed, sandbox.Duplicate, sandbox.Late} {
		kinds[habit] = &atomic.Int64{}
	}
	var bank, ours int
	inShops(t, *payments, func(s *shop, orders int) {
		s.prompt.Store(true)
		s.flaky.lose(oneIn(50, &lost))
		post := oneIn(20, &timedOut)
		roads := func() fate { return post("") }
		s.roads.Store(&roads)
		for left := orders; left > 0; left -= perRush {
			spread(min(perRush, left), func(int) { s.payBadly(kinds) })
			s.work()
		}
		s.settleDown()
		s.clock.Advance(window)
		s.flaky.lose(nil)
		s.roads.Store(nil)
		s.settleWhole()
		s.quietened()
		bank += s.count(`SELECT COALESCE(sum(amount_minor - refunded_minor), 0) FROM sandbox_charges WHERE status = 'PAID'`)
		ours += s.count(`SELECT COALESCE(sum(amount_minor), 0) FROM payments p JOIN orders o ON o.id = p.order_id
			WHERE p.status = 'SUCCEEDED' AND o.status = 'PAID'`)
	})
	t.Logf("%d payments: %d prompt, %d reordered, %d duplicate, %d late; %d call-backs timed out, %d calls lost; the bank keeps %d cents, and we %d",
		*payments, kinds[sandbox.Prompt].Load(), kinds[sandbox.Delayed].Load(), kinds[sandbox.Duplicate].Load(),
		kinds[sandbox.Late].Load(), timedOut.Load(), lost.Load(), bank, ours)
	if bank != ours {
		t.Errorf("the bank keeps %d cents, and we %d", bank, ours)
	}
}

// oneIn loses one call in n, before or after it was carried out.
func oneIn(n int, count *atomic.Int64) func(string) fate {
	return func(string) fate {
		if rand.IntN(n) != 0 {
			return fine
		}
		count.Add(1)
		return fate(1 + rand.IntN(lostFates-1))
	}
}

func (s *shop) payBadly(kinds map[sandbox.Habit]*atomic.Int64) {
	o := s.buy()
	p, _, err := s.pay.Pay(s.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-1"})
	if err != nil || p.Payment == nil {
		return // the buyer gives up
	}
	habit := habitOf(rand.IntN(20))
	kinds[habit].Add(1)
	s.approve(p.Payment, habit)
	if rand.IntN(20) == 0 {
		_, _, _ = s.pay.Cancel(s.t.Context(), o.ID, o.User, "")
	}
}

func habitOf(n int) sandbox.Habit {
	switch {
	case n < 2:
		return sandbox.Duplicate
	case n < 4:
		return sandbox.Late
	case n < 5:
		return sandbox.Delayed
	}
	return sandbox.Prompt
}
