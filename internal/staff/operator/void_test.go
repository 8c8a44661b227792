package operator_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/ent/salelog"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

func (e *env) void(o *order.Order, by sale.Actor) (operator.Voided, fault.Refusal) {
	e.t.Helper()
	v, err := e.ops.VoidOrder(e.t.Context(), operator.VoidInput{By: by, Order: o.ID, Note: "a robot"})
	return v, testenv.Refusal(e.t, err)
}

func (e *env) status(o *order.Order) order.Status {
	e.t.Helper()
	now, err := e.orders.Reload(e.t.Context(), o.ID)
	e.must(err)
	return now.Status
}

func TestAnUnpaidOrderIsVoidedAtOnceAndItsUnitGoesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		o := e.order(v)
		done, refusal := e.void(o, ann)
		if refusal != nil || done.Order.Status != order.Cancelled || done.Intervention.State != operator.Done {
			t.Fatalf("%+v %+v", done, refusal)
		}
		e.want(v, figures{total: 10, available: 10, gateTotal: 10, stock: 9, reserved: 1})
		e.returned()
		e.returned()
		e.want(v, figures{total: 10, available: 10, gateTotal: 10, stock: 10})
		if len(e.published) != 1 || e.published[0].Status != order.Cancelled {
			t.Errorf("published: %+v", e.published)
		}
		log, err := e.orders.Timeline(t.Context(), done.Order)
		if last := log[len(log)-1]; err != nil || last.Code != order.CodeVoided || last.By.User != ann.ID || last.Note != "a robot" {
			t.Errorf("the order's log: %+v %v", log, err)
		}
		lines, err := e.sales.Log(t.Context(), v.ID, 1)
		if err != nil || lines[0].Act != sale.ActVoid || *lines[0].Actor != ann.ID || lines[0].Note != "a robot" {
			t.Errorf("the sale's log: %+v %v", lines, err)
		}
		if again, refusal := e.void(o, ann); fault.ReasonOf(refusal) != fault.Conflict || again.Order.Status != order.Cancelled {
			t.Errorf("voided twice: %+v %+v", again, refusal)
		}
	})
}

func TestAPaidOrderIsVoidedByTwoPersons(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		o := e.pay(e.order(v))
		asked, refusal := e.void(o, ann)
		if refusal != nil || asked.Intervention.State != operator.Requested || e.status(o) != order.Paid {
			t.Fatalf("%+v %+v", asked, refusal)
		}
		if again, refusal := e.void(o, bob); refusal != nil || again.Intervention.ID != asked.Intervention.ID {
			t.Errorf("asked twice: %+v %+v", again, refusal)
		}
		decide := func(by sale.Actor) (*operator.Intervention, error) {
			return e.ops.Decide(t.Context(), operator.DecideInput{By: by, Intervention: asked.Intervention.ID, Confirm: true})
		}
		if _, err := decide(ann); fault.ReasonOf(err) != fault.Conflict || e.status(o) != order.Paid {
			t.Errorf("confirmed by the same person: %v", err)
		}
		done, err := decide(bob)
		if err != nil || done.State != operator.Done || e.status(o) != order.Refunding {
			t.Fatalf("confirmed: %+v %+v %s", done, err, e.status(o))
		}
		refund, err := e.db.Ent.Refund.Query().Only(t.Context())
		if err != nil || refund.OrderID != o.ID || refund.Cause != "VOIDED" || refund.Status != "SENDING" || !refund.Restock || *refund.DecidedBy != bob.ID {
			t.Errorf("the money: %+v %v", refund, err)
		}
	})
}

func TestUnitsOfAPaidOrderAreVoidedByTwoPersons(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		o := e.pay(e.orderOf(v, 3))
		ask := func(units int) (operator.Voided, error) {
			return e.ops.VoidOrder(t.Context(), operator.VoidInput{By: ann, Order: o.ID, Note: "a cracked one", Units: &units})
		}
		for _, units := range []int{0, 4} {
			if _, err := ask(units); fault.ReasonOf(err) != fault.InvalidInput {
				t.Errorf("%d units: %v", units, err)
			}
		}
		asked, err := ask(1)
		if err != nil || asked.Intervention.State != operator.Requested || asked.Intervention.Units != 1 {
			t.Fatalf("%+v %v", asked.Intervention, err)
		}
		done, err := e.ops.Decide(t.Context(), operator.DecideInput{By: bob, Intervention: asked.Intervention.ID, Confirm: true})
		if err != nil || done.State != operator.Done {
			t.Fatalf("%+v %v", done, err)
		}
		refund, err := e.db.Ent.Refund.Query().Only(t.Context())
		if err != nil || refund.Quantity != 1 || refund.AmountMinor != 4900 || refund.Cause != "VOIDED" {
			t.Errorf("the money: %+v %v", refund, err)
		}
	})
}

func TestAnUnpaidOrderIsVoidedAsAWhole(t *testing.T) {
	t.Parallel()
	e := setup(t)
	o := e.orderOf(e.put(sale.Live, 10), 3)
	for _, units := range []int{1, 3} {
		_, err := e.ops.VoidOrder(t.Context(), operator.VoidInput{By: ann, Order: o.ID, Note: "x", Units: &units})
		if fault.ReasonOf(err) != fault.InvalidInput || e.status(o) != order.PendingPayment {
			t.Errorf("%d units: %v", units, err)
		}
	}
}

// The first void's entry in the log of the order does not count as one of the second.
func TestAVoidThatMeetsTheRefundOfItsBuyerIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	o := e.pay(e.orderOf(v, 3))
	if _, err := e.pays.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: bob.ID, Note: "x", Act: id.New[id.Act](), Units: 1}); err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(time.Minute) // the money of the first is still on its way
	act, now := id.New[id.Act](), e.clock.Now()
	e.must(e.db.Ent.Intervention.Create().SetID(act).SetKind("VOID_ORDER").SetState("REFUNDING").SetSaleID(v.ID).SetItemID(o.Item).
		SetOrderID(o.ID).SetQuantity(1).SetNote("x").SetRequestedBy(ann.ID).SetDecidedBy(bob.ID).SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context()))
	e.finish()
	e.wantState(&operator.Intervention{ID: act}, operator.Refused)
}

func TestAVoidThatWasLeftHalfWayIsFinished(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	// The process crashed after writing its intent, or after the order had ended and
	// before the log of the sale was written.
	for name, ended := range map[string]bool{"before the order ended": false, "after the order ended": true} {
		unpaid, paid := e.order(v), e.pay(e.order(v))
		for o, state := range map[*order.Order]intervention.State{unpaid: intervention.StateFINISHING, paid: intervention.StateREFUNDING} {
			act, now := id.New[id.Act](), e.clock.Now()
			e.must(e.db.Ent.Intervention.Create().SetID(act).SetKind("VOID_ORDER").SetState(state).SetSaleID(v.ID).SetItemID(o.Item).
				SetOrderID(o.ID).SetQuantity(1).SetNote("x").SetRequestedBy(ann.ID).SetDecidedBy(bob.ID).
				SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context()))
			if ended {
				_, err := e.pays.Void(t.Context(), payment.VoidInput{Order: o.ID, Operator: bob.ID, Note: "x"})
				if err != nil {
					t.Fatal(err)
				}
			}
			if counts := e.finish(); counts["DONE"] != 1 {
				t.Errorf("%s, %s: %v", name, state, counts)
			}
			e.wantState(&operator.Intervention{ID: act}, operator.Done)
		}
		if a, b := e.status(unpaid), e.status(paid); a != order.Cancelled || b != order.Refunding {
			t.Errorf("%s: the orders are %s and %s", name, a, b)
		}
	}
	if n, err := e.db.Ent.SaleLog.Query().Where(salelog.SaleID(v.ID), salelog.Act(string(sale.ActVoid))).Count(t.Context()); n != 4 || err != nil {
		t.Errorf("%d voids in the log, error %v", n, err)
	}
}

func TestAnOrderThatIsPaidMeanwhileNeedsTwoPersonsToo(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	o := e.order(v)
	act, now := id.New[id.Act](), e.clock.Now()
	e.must(e.db.Ent.Intervention.Create().SetID(act).SetKind("VOID_ORDER").SetState("FINISHING").SetSaleID(v.ID).SetItemID(o.Item).
		SetOrderID(o.ID).SetQuantity(1).SetNote("x").SetRequestedBy(ann.ID).SetCreatedAt(now).SetUpdatedAt(now).Exec(t.Context()))
	e.pay(o)
	e.finish()
	e.wantState(&operator.Intervention{ID: act}, operator.Refused)
	if s := e.status(o); s != order.Paid {
		t.Errorf("the order is %s", s)
	}
}

func TestVoidsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	o := e.order(v)
	if _, err := e.ops.VoidOrder(t.Context(), operator.VoidInput{By: ann, Order: id.Order(uuid.New()), Note: "x"}); fault.ReasonOf(err) != fault.Unknown {
		t.Errorf("unknown order: %v", err)
	}
	if _, err := e.ops.VoidOrder(t.Context(), operator.VoidInput{By: ann, Order: o.ID}); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("no reason: %v", err)
	}
	if _, err := e.ops.VoidOrder(t.Context(), operator.VoidInput{By: buyer, Order: o.ID, Note: "x"}); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("by a customer: %v", err)
	}
	if _, err := e.ops.VoidOrder(t.Context(), operator.VoidInput{Order: o.ID, Note: "x"}); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("by an anonymous caller: %v", err)
	}
}

func TestVoidsInEveryStatusByEveryRole(t *testing.T) {
	t.Parallel()
	fit := []sale.Status{sale.Preheated, sale.Live, sale.Paused, sale.Ended}
	for _, status := range sale.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			v := e.put(status, 5)
			for name, by := range map[string]sale.Actor{"customer": buyer, "operator": bob, "admin": dora, "anonymous": anonymous} {
				o := e.order(v)
				done, err := e.ops.VoidOrder(t.Context(), operator.VoidInput{By: by, Order: o.ID, Note: "a robot"})
				want := order.PendingPayment
				switch {
				case name == "anonymous" && fault.CodeOf(err) != fault.Unauthenticated,
					name == "customer" && fault.CodeOf(err) != fault.Forbidden:
					t.Errorf("by %s: %v", name, err)
				case !by.Role.AtLeast(auth.Operator):
				case slices.Contains(fit, status):
					want = order.Cancelled
					if err != nil || done.Intervention.State != operator.Done {
						t.Errorf("by %s: %+v %v, want it done", name, done, err)
					}
				case fault.ReasonOf(err) != fault.Conflict:
					t.Errorf("by %s: %v, want a conflict", name, err)
				}
				if got := e.status(o); got != want {
					t.Errorf("by %s: the order is %s, want %s", name, got, want)
				}
			}
		})
	}
}

// Operators void and the buyer pays concurrently: one of the two wins, and all units are
// accounted for.
func TestVoidAndPaymentMeetOnOneRow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 30)
		for range 15 {
			o := e.order(v)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					_, err := e.ops.VoidOrder(context.Background(), operator.VoidInput{By: ann, Order: o.ID, Note: "x"})
					if err != nil && fault.ReasonOf(err) != fault.Conflict {
						t.Errorf("void: %v", err)
					}
				})
			}
			wg.Go(func() {
				err := e.db.WithTx(context.Background(), func(ctx context.Context, tx *ent.Tx) error {
					_, err := order.Apply(ctx, tx, order.Move{
						Order: o, To: order.Paid, At: e.clock.Now(),
						Entry: order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodePaid},
					})
					return err
				})
				if err != nil && !errors.Is(err, order.ErrMoved) {
					t.Errorf("pay: %v", err)
				}
			})
			wg.Wait()
			if s := e.status(o); s != order.Paid && s != order.Cancelled {
				t.Errorf("the order is %s", s)
			}
		}
		e.returned()
		f := e.figures(v)
		if f.available+f.sold != 30 || f.held != 0 || f.stock != f.available || f.reserved != f.sold {
			t.Errorf("figures %+v", f)
		}
	})
}
