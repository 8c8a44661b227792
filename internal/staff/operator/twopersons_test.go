package operator_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
)

func TestSmallAdjustmentsDoNotAddUpToMoreThanOnePersonMayPutOnSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		states := make([]operator.State, 0, 5)
		for range 5 {
			act, refusal := e.adjust(v, operator.DefaultTwoPersonUnits)
			if refusal != nil {
				t.Fatalf("%+v", refusal)
			}
			states = append(states, act.State)
		}
		want := []operator.State{operator.Done, operator.Requested, operator.Requested, operator.Requested, operator.Requested}
		if !slices.Equal(states, want) {
			t.Errorf("five times +100: %v, want %v", states, want)
		}
		e.want(v, figures{total: 110, available: 110, gateTotal: 110, stock: 110})
		if !slices.ContainsFunc(e.lines(), func(line sale.LogLine) bool { return line.Act == "REQUEST_ADJUST_STOCK" }) {
			t.Error("the live feed has no line about the request")
		}
		e.clock.Advance(25 * time.Hour)
		v = e.put(sale.Live, 10)
		if act, refusal := e.adjust(v, 1); refusal != nil || act.State != operator.Done {
			t.Errorf("another item: %+v %+v", act, refusal)
		}
	})
}

func (e *env) lines() []sale.LogLine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.notes)
}

func TestTheLogNamesWhoAskedAndWhoConfirmed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	act, _ := e.adjust(v, operator.DefaultTwoPersonUnits+1)
	if _, err := e.ops.Decide(t.Context(), operator.DecideInput{By: bob, Intervention: act.ID, Confirm: true, Note: "counted in the warehouse"}); err != nil {
		t.Fatal(err)
	}
	lines, err := e.ops.Timeline(t.Context(), v.ID)
	if err != nil || lines[0].Act != sale.ActAdjust {
		t.Fatalf("%+v, %v", lines, err)
	}
	var d struct{ RequestedBy, RequestNote, ConfirmedBy, ConfirmNote string }
	if err := json.Unmarshal([]byte(lines[0].Details), &d); err != nil {
		t.Fatal(err)
	}
	if d.RequestedBy != ann.ID.Public() || d.RequestNote != act.Note || d.ConfirmedBy != bob.ID.Public() || d.ConfirmNote != "counted in the warehouse" {
		t.Errorf("%+v", d)
	}
}

func TestAnOperatorCannotDecideAboutTheirOwnOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		unpaid, paid := e.order(v), e.pay(e.order(v))
		own := func(userID [16]byte) sale.Actor { return sale.Actor{ID: userID, Role: carla.Role} }
		if _, refusal := e.void(unpaid, own(unpaid.User)); fault.ReasonOf(refusal) != fault.Conflict {
			t.Errorf("void of an unpaid order by its buyer: %+v", refusal)
		}
		asked, refusal := e.void(paid, ann)
		if refusal != nil {
			t.Fatalf("%+v", refusal)
		}
		_, err := e.ops.Decide(t.Context(), operator.DecideInput{By: own(paid.User), Intervention: asked.Intervention.ID, Confirm: true})
		if fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("confirmed by the buyer: %v", err)
		}
		other := e.pay(e.order(v))
		asking, err := e.pays.AskRefund(t.Context(), payment.RefundRequest{
			Order: other.ID, User: other.User, Reason: "too small", IdempotencyKey: "0123456789abcdef",
		})
		if err != nil {
			t.Fatal(err)
		}
		decide := func(by [16]byte) error {
			_, err := e.pays.DecideRefund(t.Context(), payment.Decision{Refund: asking.Refund.ID, Operator: by, Approve: true})
			return err
		}
		if err := decide(other.User); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("refund decided by the buyer: %v", err)
		}
		if err := decide(bob.ID); err != nil {
			t.Errorf("refund decided by another: %v", err)
		}
	})
}
