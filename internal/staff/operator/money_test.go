package operator_test

import (
	"slices"
	"testing"
	"time"

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
