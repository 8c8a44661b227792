package operator_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	entpayment "seckill/ent/payment"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

// asked returns a refund that a buyer requested.
func (e *env) asked(v *sale.Sale) id.Refund {
	e.t.Helper()
	o := e.pay(e.order(v))
	asked, err := e.pays.AskRefund(e.t.Context(), payment.RefundRequest{Order: o.ID, User: o.User, Reason: "too small", IdempotencyKey: "0123456789abcdef"})
	e.must(err)
	return asked.Refund.ID
}

func (e *env) refund(ops *operator.Service, by sale.Actor, refund id.Refund) (operator.Returned, error) {
	return ops.Return(e.t.Context(), operator.ReturnInput{By: by, Kind: operator.Refund, Refund: payment.Decision{Refund: refund}})
}

// An order costs 49.00: three are above the bound of 100.00.
func TestOnePersonReturnsMoneyUpToABound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		cfg := e.config(nil)
		cfg.TwoPersonMoney = 10_000
		ops := operator.New(cfg)
		v := e.put(sale.Live, 10)
		status := func(refund id.Refund) payment.RefundStatus {
			r, err := e.pays.Refund(t.Context(), refund)
			e.must(err)
			return r.Status
		}
		for n := range 2 {
			refund := e.asked(v)
			done, err := e.refund(ops, ann, refund)
			if err != nil || done.Intervention.State != operator.Done || status(refund) != payment.RefundSending {
				t.Fatalf("refund %d: %+v, %v", n+1, done, err)
			}
			if again, err := e.refund(ops, ann, refund); err != nil || !again.Replayed {
				t.Errorf("the same again: %+v, %v", again, err)
			}
		}
		third := e.asked(v)
		waits, err := e.refund(ops, ann, third)
		if err != nil || waits.Intervention.State != operator.Requested || status(third) != payment.RefundRequested {
			t.Fatalf("above the bound: %+v, %v", waits, err)
		}
		if again, err := e.refund(ops, ann, third); err != nil || again.Intervention.ID != waits.Intervention.ID {
			t.Errorf("requested again: %+v, %v", again, err)
		}
		if done, err := e.refund(ops, bob, e.asked(v)); err != nil || done.Intervention.State != operator.Done {
			t.Errorf("another person has a bound of their own: %+v, %v", done, err)
		}
		in := operator.DecideInput{By: ann, Intervention: waits.Intervention.ID, Confirm: true}
		if _, err := ops.Decide(t.Context(), in); fault.ReasonOf(err) != fault.Conflict || status(third) != payment.RefundRequested {
			t.Errorf("confirmed by the requester: %v", err)
		}
		in.By = bob
		if done, err := ops.Decide(t.Context(), in); err != nil || done.State != operator.Done || status(third) != payment.RefundSending {
			t.Errorf("confirmed by a second person: %+v, %v", done, err)
		}
		e.clock.Advance(25 * time.Hour)
		_, err = e.pre.Step(t.Context())
		e.must(err)
		lists, err := ops.Interventions(t.Context(), operator.InterventionList{Kind: operator.Refund})
		e.must(err)
		if states := slices.Collect(func(yield func(operator.State) bool) {
			for _, in := range lists {
				if !yield(in.State) {
					return
				}
			}
		}); len(states) != 4 || slices.Contains(states, operator.Requested) {
			t.Errorf("%v", states)
		}
	})
}

// moneyActs are the acts that return money, each with what makes a subject of 49.00, an act on it,
// and whether its money went back.
var moneyActs = map[operator.Kind]struct {
	make func(e *env, v *sale.Sale) operator.ReturnInput
	back func(e *env, in operator.ReturnInput) bool
}{
	operator.Refund: {
		func(e *env, v *sale.Sale) operator.ReturnInput {
			return operator.ReturnInput{Refund: payment.Decision{Refund: e.asked(v)}}
		},
		func(e *env, in operator.ReturnInput) bool { return e.refundIs(in, payment.RefundSending) },
	},
	operator.SettleRefund: {
		func(e *env, v *sale.Sale) operator.ReturnInput {
			in := operator.ReturnInput{Refund: payment.Decision{Refund: e.asked(v)}}
			_, err := e.db.SQL.ExecContext(e.t.Context(), "UPDATE refunds SET status = 'FAILED' WHERE id = $1", in.Refund.Refund)
			e.must(err)
			return in
		},
		func(e *env, in operator.ReturnInput) bool { return e.refundIs(in, payment.RefundSettled) },
	},
	operator.ReturnPayment: {heldMoney, heldIsBack},
	operator.SettlePayment: {heldMoney, heldIsBack},
}

func (e *env) refundIs(in operator.ReturnInput, status payment.RefundStatus) bool {
	r, err := e.pays.Refund(e.t.Context(), in.Refund.Refund)
	e.must(err)
	return r.Status == status
}

// heldMoney makes money that came for an order beside its payment.
func heldMoney(e *env, v *sale.Sale) operator.ReturnInput {
	o := e.pay(e.order(v))
	paid, err := e.db.Ent.Payment.Query().Where(entpayment.OrderID(o.ID)).OnlyID(e.t.Context())
	e.must(err)
	in, now := operator.ReturnInput{Held: id.New[id.Held]()}, e.clock.Now()
	e.must(e.db.Ent.PaymentEvent.Create().SetID(in.Held).SetProvider("SANDBOX").SetEventID(uuid.NewString()).SetPaymentID(paid).
		SetKind("SUCCEEDED").SetAmountMinor(4900).SetCurrency("CNY").SetTransaction(uuid.NewString()).SetState("HELD").
		SetTryAt(now).SetHappenedAt(now).SetCreatedAt(now).Exec(e.t.Context()))
	return in
}

func heldIsBack(e *env, in operator.ReturnInput) bool {
	h, err := e.pays.HeldEvent(e.t.Context(), in.Held)
	e.must(err)
	return h == nil
}

func TestEveryActThatReturnsMoneyHasTheBoundOfOnePerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		cfg := e.config(nil)
		cfg.TwoPersonMoney = 5_000
		ops, v := operator.New(cfg), e.put(sale.Live, 50)
		for kind, a := range moneyActs {
			member := sale.Actor{ID: id.New[id.User](), Role: ann.Role}
			do := func() (operator.ReturnInput, operator.Returned) {
				in := a.make(e, v)
				in.By, in.Kind, in.Note = member, kind, "by bank transfer"
				done, err := ops.Return(t.Context(), in)
				if err != nil || done.Intervention == nil {
					t.Fatalf("%s: %+v, %v", kind, done, err)
				}
				return in, done
			}
			if in, done := do(); done.Intervention.State != operator.Done || !a.back(e, in) {
				t.Errorf("%s below the bound: %+v", kind, done.Intervention)
			}
			in, waits := do()
			if waits.Intervention.State != operator.Requested || a.back(e, in) {
				t.Errorf("%s above the bound: %+v", kind, waits.Intervention)
			}
			decide := operator.DecideInput{By: member, Intervention: waits.Intervention.ID, Confirm: true}
			if _, err := ops.Decide(t.Context(), decide); fault.ReasonOf(err) != fault.Conflict || a.back(e, in) {
				t.Errorf("%s confirmed by its requester: %v", kind, err)
			}
			decide.By = bob
			if now, err := ops.Decide(t.Context(), decide); err != nil || now.State != operator.Done || !a.back(e, in) {
				t.Errorf("%s confirmed by a second person: %+v, %v", kind, now, err)
			}
		}
	})
}

// Of acts at a time that are above the bound together, at most one is made alone, whatever their kinds.
func TestActsAtATimeDoNotPassTheBoundOfOnePerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		cfg := e.config(nil)
		cfg.TwoPersonMoney = 5_000
		ops, v := operator.New(cfg), e.put(sale.Live, 50)
		for range 3 {
			member := sale.Actor{ID: id.New[id.User](), Role: ann.Role}
			var inputs []operator.ReturnInput
			for kind, a := range moneyActs {
				in := a.make(e, v)
				in.By, in.Kind, in.Note = member, kind, "by bank transfer"
				inputs = append(inputs, in)
			}
			var alone atomic.Int32
			var wg sync.WaitGroup
			for _, in := range inputs {
				wg.Go(func() {
					done, err := ops.Return(t.Context(), in)
					if err != nil {
						t.Errorf("%s: %v", in.Kind, err)
					} else if done.Intervention.State == operator.Done {
						alone.Add(1)
					}
				})
			}
			wg.Wait()
			back := 0
			for _, in := range inputs {
				if moneyActs[in.Kind].back(e, in) {
					back++
				}
			}
			if alone.Load() > 1 || back > 1 {
				t.Errorf("%d acts were made alone, the money of %d went back", alone.Load(), back)
			}
		}
	})
}
