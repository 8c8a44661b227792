package payment_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func u(text string) id.Held { return id.Held(uuid.MustParse(text)) }

// units is the stock of a rapid run: fewer units than buyers.
const units = 3

// life is the state of a rapid run with one item.
type life struct {
	*shop
	users  []id.User
	orders []*order.Order
	pays   []*payment.Payment
}

// Invariants I1 to I5 hold after each step, in any sequence of: place, pay, duplicate,
// late and reordered call-backs, decline, expire, cancel, refund, void, a crash at
// every external call, restart. In the end all money and units are accounted for.
func TestManyLivesOfPaymentsKeepTheBooks(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	placed := 0
	rapid.Check(t, func(rt *rapid.T) {
		s.flaky.lose(nil)
		s.newSale(units)
		l := &life{shop: s, users: []id.User{id.New[id.User](), id.New[id.User](), id.New[id.User](), id.New[id.User]()}}
		l.orders = append(l.orders, l.place(l.users[0], 1)) // so that there is always an order to draw
		rt.Repeat(l.mortal(l.steps()))
		s.flaky.lose(nil)
		s.restart()
		s.settleDown()
		s.clock.Advance(window)
		s.settleDown()
		for _, o := range l.orders { // refunds that wait for an operator
			l.decideAll(o, true)
		}
		s.settleDown()
		s.quietened()
		placed += len(l.orders)
	})
	if !t.Failed() {
		testenv.RecordFault(t, testenv.FaultRow{
			Fault: "process killed at calls of payments and gates, at random", Accepted: placed, Stored: s.count(`SELECT count(*) FROM orders`, everything),
		})
	}
}

// mortal ends a step where our process crashes: its memory is lost, and a new process
// continues.
func (l *life) mortal(steps map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	for name, step := range steps {
		steps[name] = func(rt *rapid.T) {
			defer func() {
				if p := recover(); p == errDied { //nolint:errorlint // what was thrown is the value itself
					l.restart()
				} else if p != nil {
					panic(p)
				}
			}()
			step(rt)
		}
	}
	return steps
}

func (l *life) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"place": func(rt *rapid.T) {
			if o := l.place(rapid.SampledFrom(l.users).Draw(rt, "user"), rapid.IntRange(1, 2).Draw(rt, "units")); o != nil {
				l.orders = append(l.orders, o)
			}
		},
		"pay": func(rt *rapid.T) {
			o := l.pick(rt)
			key := "key-" + strconv.Itoa(rapid.IntRange(1, 2).Draw(rt, "key"))
			p, err := l.pay.Pay(rt.Context(), payment.PayInput{Order: o.ID, User: o.User, Provider: sandbox.Name, IdempotencyKey: key})
			if l.allowed(rt, err); err == nil && p.Payment != nil {
				l.pays = append(l.pays, p.Payment)
			}
		},
		"bank": func(rt *rapid.T) {
			if len(l.pays) == 0 {
				return // the bank has no charge
			}
			p := rapid.SampledFrom(l.pays).Draw(rt, "payment")
			c, err := l.bank.ByMerchant(rt.Context(), p.ID)
			if err != nil {
				return // the bank has no charge for it
			}
			if habit := rapid.SampledFrom([]sandbox.Habit{sandbox.Prompt, sandbox.Delayed, sandbox.Duplicate, sandbox.Late, ""}).Draw(rt, "habit"); habit != "" {
				_ = l.bank.Approve(rt.Context(), c.ID, habit) // it may be closed
			} else {
				_ = l.bank.Decline(rt.Context(), c.ID, "CARD_DECLINED")
			}
		},
		"cancel": func(rt *rapid.T) {
			o := l.pick(rt)
			_, err := l.pay.Cancel(rt.Context(), o.ID, o.User, "")
			l.allowed(rt, err)
		},
		"void": func(rt *rapid.T) {
			_, err := l.pay.Void(rt.Context(), payment.VoidInput{Order: l.pick(rt).ID, Operator: id.New[id.User]()})
			l.allowed(rt, err)
		},
		"refund": func(rt *rapid.T) {
			o := l.pick(rt)
			in := payment.RefundRequest{Order: o.ID, User: o.User, Reason: "x", IdempotencyKey: id.New[uuid.UUID]().String()}
			if units := rapid.IntRange(0, 2).Draw(rt, "refunded"); units > 0 {
				in.Quantity = &units
			}
			_, err := l.pay.AskRefund(rt.Context(), in)
			l.allowed(rt, err)
		},
		"decide": func(rt *rapid.T) { l.decideAll(l.pick(rt), rapid.Bool().Draw(rt, "approve")) },
		"time": func(rt *rapid.T) {
			l.clock.Advance(time.Duration(rapid.IntRange(1, 600).Draw(rt, "seconds")) * time.Second)
		},
		"deliver": func(*rapid.T) { l.step(l.courier.Step) },
		"events":  func(*rapid.T) { l.step(l.pay.RetryEvents) },
		"refunds": func(*rapid.T) { l.step(l.refund) },
		"expire":  func(*rapid.T) { l.step(l.pay.ExpireOverdue) },
		"return":  func(*rapid.T) { l.step(l.returner.Step) },
		"check":   func(*rapid.T) { l.step(l.check) },
		"weather": func(rt *rapid.T) { l.lose(rapid.IntRange(0, 2).Draw(rt, "of three")) },
		"restart": func(*rapid.T) { l.restart() },
		"":        func(*rapid.T) { l.sound(); l.gateSound() },
	}
}

// gateSound fails the test when the gate's units do not add up to the loaded stock.
func (l *life) gateSound() {
	l.t.Helper()
	if f := l.figures(); f.stock < 0 || f.reserved < 0 || f.stock+f.reserved != units {
		l.t.Fatalf("the gate has %d and %d units, and %d were loaded", f.stock, f.reserved, units)
	}
}

// lose loses ofThree of three external calls from now on.
func (l *life) lose(ofThree int) {
	l.flaky.lose(func(string) fate {
		if rand.IntN(3) >= ofThree {
			return fine
		}
		return fate(rand.IntN(allFates))
	})
}

func (l *life) pick(rt *rapid.T) *order.Order {
	return rapid.SampledFrom(l.orders).Draw(rt, "order")
}

// allowed accepts the errors that a caller may get when external calls fail.
func (l *life) allowed(rt *rapid.T, err error) {
	if unlessRefused(err) != nil && fault.CodeOf(err) != fault.Unavailable {
		rt.Fatal(err)
	}
}

func (s *shop) decideAll(o *order.Order, approve bool) {
	s.t.Helper()
	all, err := s.pay.RefundsOf(s.t.Context(), o.ID)
	s.must(err)
	for _, r := range all[o.ID] {
		if r.Status == payment.RefundRequested {
			_, err := s.pay.DecideRefund(s.t.Context(), payment.Decision{Refund: r.ID, Operator: id.New[id.User](), Approve: approve})
			s.must(unlessRefused(err))
		}
	}
}

func (l *life) String() string {
	return fmt.Sprintf("%d orders, %d payments", len(l.orders), len(l.pays))
}
