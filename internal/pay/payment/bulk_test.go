package payment_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// 100,000 of each take about an hour; -at-each 20000 makes as many in all.
var (
	races    = flag.Int("races", manyRaces, "four-way races to run")
	payments = flag.Int("payments", manyPayments, "payments to make with bad call-backs")
)

const (
	perShop  = 1000 // orders until a new shop, because the checks of a shop read all its orders
	perRush  = 100  // concurrent orders
	hands    = 8    // concurrent calls
	sweepers = 4
)

// inShops distributes a large number of orders over shops, of which a few run in
// parallel.
func inShops(t *testing.T, all int, run func(s *shop, orders int)) {
	t.Helper()
	var done atomic.Int64
	t.Run("shops", func(shops *testing.T) {
		for from := 0; from < all; from += perShop {
			shops.Run("", func(t *testing.T) {
				t.Parallel()
				if shops.Failed() {
					return
				}
				orders := min(perShop, all-from)
				run(newShop(t, 1), orders)
				if n := done.Add(int64(orders)); all > perShop {
					t.Logf("%d of %d", n, all)
				}
			})
		}
	})
}

// spread calls do for each index below n, concurrently.
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

// settleWhole runs the loops until all work is complete.
func (s *shop) settleWhole() {
	s.t.Helper()
	for range 200 {
		if s.count(unfinished, s.sale) == 0 {
			return
		}
		s.clock.Advance(5 * time.Second)
		s.work()
	}
}

// Final states of the orders of a sale, and the events in their logs.
const (
	ends  = `SELECT status, count(*) FROM orders o WHERE {o} GROUP BY status`
	turns = `SELECT e.code, count(*) FROM order_events e JOIN orders o ON o.id = e.order_id WHERE {o} GROUP BY e.code`
)

// Pay, expire, cancel and void race for one order, with four sweepers. Half of the
// payments are approved before the race and only their call-backs race; the others are
// paid during the race, whatever the state of the order.
func TestManyFourWayRacesEndOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ended, went := map[string]int{}, map[string]int{}
	inShops(t, *races, func(s *shop, orders int) {
		s.prompt.Store(true)
		for left := orders; left > 0; left -= perRush {
			placed := s.rush(min(perRush, left))
			s.race(placed)
			s.sound()
			s.settleWhole()
			s.quietened()
			mu.Lock()
			s.tally(ends, ended)
			s.tally(turns, went)
			mu.Unlock()
		}
		s.allQuiet()
	})
	all := 0
	for _, n := range ended {
		all += n
	}
	if all != *races || ended[string(order.PendingPayment)]+ended[string(order.Refunding)] != 0 {
		t.Errorf("%d races ended as %v", *races, ended)
	}
	t.Logf("%d races, 0 double ends, every unit accounted for; orders ended as %v after turns %v", *races, ended, went)
}

// rush places orders in a new sale and begins a payment for each.
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

// race starts all sides: the sweepers first, and each other side at a random point
// while the sweepers close payments or expire the orders. So no side wins every race.
func (s *shop) race(placed []*order.Order) {
	s.t.Helper()
	s.clock.Advance(window + 20*time.Second) // late money and delayed call-backs are due
	ctx := s.t.Context()
	last := (sweepers + 1) * len(placed) // cancels close payments too
	moment := func() int { return min(rand.IntN(2*last), last) }
	moments := make([]int, len(placed))
	for i := range moments {
		moments[i] = moment()
	}
	slices.Sort(moments)
	sweep := &starter{waiting: map[chan struct{}]int{}}
	s.flaky.lose(sweep.hear)
	defer s.flaky.lose(nil)
	at(func() {
		sweep.wait(moment())
		s.side("call-backs", func() error { _, err := s.courier.Step(ctx); return err })
	}, func() {
		sweep.wait(moment())
		s.side("check", func() error { _, err := s.check(ctx); return err })
	}, func() {
		whose := rand.Perm(len(placed))
		spread(len(placed), func(i int) {
			sweep.wait(moments[i])
			s.callOff(placed[whose[i]], whose[i]%3 == 0)
		})
	}, func() {
		expire := func() { s.side("expire", func() error { _, err := s.pay.ExpireOverdue(ctx); return err }) }
		at(slices.Repeat([]func(){expire}, sweepers)...)
		sweep.advance(math.MaxInt32)
	})
}

// callOff lets buyer and operator end an order concurrently; with paid, the operator
// ends it even when it is paid.
func (s *shop) callOff(o *order.Order, paid bool) {
	ctx := s.t.Context()
	void := s.pay.VoidUnpaid
	if paid {
		void = s.pay.Void
	}
	at(func() {
		s.side("cancel", func() error { _, err := s.pay.Cancel(ctx, o.ID, o.User, ""); return unlessRefused(err) })
	}, func() {
		s.side("void", func() error {
			_, err := void(ctx, payment.VoidInput{Order: o.ID, Operator: id.New[id.User]()})
			return unlessRefused(err)
		})
	})
}

// side runs one side of a race, which may return a retryable error.
func (s *shop) side(what string, do func() error) {
	if err := do(); err != nil && fault.CodeOf(err) != fault.Unavailable && !stream.IsRetryable(err) {
		s.t.Errorf("%s: %v", what, err)
	}
}

// starter counts closed payments, and releases each waiting side at its count.
type starter struct {
	mu      sync.Mutex
	closed  int                   // guarded by mu
	waiting map[chan struct{}]int // guarded by mu; the count to wait for
}

func (g *starter) hear(call string) fate {
	if call == "close" {
		g.advance(1)
	}
	return fine
}

func (g *starter) advance(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed += n
	for ready, many := range g.waiting {
		if many <= g.closed {
			close(ready)
			delete(g.waiting, ready)
		}
	}
}

func (g *starter) wait(many int) {
	ready := make(chan struct{})
	g.mu.Lock()
	g.waiting[ready] = many
	g.mu.Unlock()
	g.advance(0)
	<-ready
}

// Payments with faulty call-backs: 10 % are duplicated, 10 % arrive long after the
// expiry, 5 % arrive out of order, 5 % time out; some of our calls to the bank fail.
// The bank's ledger and ours agree to the cent.
func TestLedgersAgreeAfterManyBadCallbacks(t *testing.T) {
	t.Parallel()
	var lost, timedOut atomic.Int64
	kinds := map[sandbox.Habit]*atomic.Int64{}
	for _, habit := range []sandbox.Habit{sandbox.Prompt, sandbox.Delayed, sandbox.Duplicate, sandbox.Late} {
		kinds[habit] = &atomic.Int64{}
	}
	var bank, ours atomic.Int64
	inShops(t, *payments, func(s *shop, orders int) {
		s.prompt.Store(true)
		s.newSale(orders)
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
		s.allQuiet()
		bank.Add(int64(s.count(`SELECT COALESCE(sum(amount_minor - refunded_minor), 0) FROM sandbox_charges WHERE status = 'PAID'`, everything)))
		ours.Add(int64(s.count(`SELECT COALESCE(sum(p.amount_minor), 0) FROM payments p JOIN orders o ON o.id = p.order_id
			WHERE p.status = 'SUCCEEDED' AND o.status = 'PAID'`, everything)))
	})
	t.Logf("%d payments: %d prompt, %d reordered, %d duplicate, %d late; %d call-backs timed out, %d calls lost; the bank keeps %d cents, and we %d",
		*payments, kinds[sandbox.Prompt].Load(), kinds[sandbox.Delayed].Load(), kinds[sandbox.Duplicate].Load(),
		kinds[sandbox.Late].Load(), timedOut.Load(), lost.Load(), bank.Load(), ours.Load())
	if bank.Load() != ours.Load() {
		t.Errorf("the bank keeps %d cents, and we %d", bank.Load(), ours.Load())
	}
}

// oneIn loses one call in n, before or after its execution.
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
	p, err := s.pay.Pay(s.t.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: "key-1"})
	if err != nil || p.Payment == nil {
		return // the buyer stops trying
	}
	habit := habitOf(rand.IntN(20))
	kinds[habit].Add(1)
	s.approve(p.Payment, habit)
	if rand.IntN(20) == 0 {
		_, _ = s.pay.Cancel(s.t.Context(), o.ID, o.User, "")
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
