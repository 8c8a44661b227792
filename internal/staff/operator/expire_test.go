package operator_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	entpayment "seckill/ent/payment"
	"seckill/ent/salelog"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
)

func (e *env) expire(o *order.Order, by sale.Actor) (*order.Order, error) {
	e.t.Helper()
	return e.ops.ExpireOrder(context.Background(), operator.ExpireInput{By: by, Order: o.ID, Note: "the bank closed"})
}

// paying adds an open payment at a provider that no process has.
func (e *env) paying(o *order.Order) {
	e.t.Helper()
	now := e.clock.Now()
	e.must(e.db.Ent.Payment.Create().SetID(id.New[id.Payment]()).SetOrderID(o.ID).SetUserID(o.User).SetProvider("gone").SetStatus(entpayment.StatusPENDING).
		SetAmountMinor(1).SetCurrency("EUR").SetIdempotencyKey("key-1").SetExpiresAt(now).SetCheckAt(now).SetCreatedAt(now).SetUpdatedAt(now).
		Exec(e.t.Context()))
}

// A void waits for the provider; both acts meet when the void is finished later.
func TestAnUnpaidOrderIsExpiredAtOnceByTwoOperatorsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		o := e.order(v)
		e.paying(o)
		if waiting, refusal := e.void(o, bob); refusal != nil || waiting.Intervention.State != operator.Finishing {
			t.Fatalf("void: %+v %v", waiting, refusal)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		done := map[id.User]int{}
		for _, by := range []sale.Actor{ann, bob, ann, bob} {
			wg.Go(func() {
				got, err := e.expire(o, by)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					done[by.ID]++
				} else if fault.ReasonOf(err) != fault.Conflict {
					t.Errorf("expire: %v", err)
				}
				if got == nil || got.Status != order.Expired {
					t.Errorf("order %+v", got)
				}
			})
		}
		wg.Wait()
		if done[ann.ID]+done[bob.ID] != 1 {
			t.Fatalf("done by %v", done)
		}
		winner := ann
		if done[bob.ID] == 1 {
			winner = bob
		}
		e.want(v, figures{total: 10, available: 10, gateTotal: 10, stock: 9, reserved: 1})
		for range 2 {
			e.returned()
		}
		if counts := e.finish(); counts["REFUSED"] != 1 {
			t.Errorf("the void that waited: %v", counts)
		}
		e.want(v, figures{total: 10, available: 10, gateTotal: 10, stock: 10})
		if len(e.published) != 1 || e.published[0].Status != order.Expired {
			t.Errorf("published: %+v", e.published)
		}
		log, err := e.orders.Timeline(t.Context(), e.published[0])
		if last := log[len(log)-1]; err != nil || last.Code != order.CodeExpired || last.By.User != winner.ID || last.Note != "the bank closed" {
			t.Errorf("the order's log: %+v %v", log, err)
		}
		lines, err := e.db.Ent.SaleLog.Query().Where(salelog.SaleID(v.ID), salelog.Act(string(sale.ActExpire))).All(t.Context())
		if err != nil || len(lines) != 1 || *lines[0].ActorID != winner.ID || lines[0].Note != "the bank closed" {
			t.Errorf("the sale's log: %+v %v", lines, err)
		}
		shown := slices.DeleteFunc(e.lines(), func(l sale.LogLine) bool { return l.Act != sale.ActExpire })
		if len(shown) != 1 || *shown[0].Actor != winner.ID || shown[0].Note != "the bank closed" {
			t.Errorf("the feed: %+v", shown)
		}
	})
}

func TestOrdersThatMustNotBeExpiredAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	o, paid := e.order(v), e.pay(e.order(v))
	refused := func(what string, in operator.ExpireInput, want fault.Reason) {
		t.Helper()
		if _, err := e.ops.ExpireOrder(t.Context(), in); fault.ReasonOf(err) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("unknown order", operator.ExpireInput{By: ann, Order: id.Order(uuid.New()), Note: "x"}, fault.Unknown)
	refused("no reason", operator.ExpireInput{By: ann, Order: o.ID, Note: " "}, fault.InvalidInput)
	refused("paid", operator.ExpireInput{By: ann, Order: paid.ID, Note: "x"}, fault.Conflict)
	refused("one's own", operator.ExpireInput{By: sale.Actor{ID: o.User, Role: auth.Admin}, Order: o.ID, Note: "x"}, fault.Conflict)
	for by, want := range map[sale.Actor]fault.Code{buyer: fault.Forbidden, anonymous: fault.Unauthenticated} {
		if _, err := e.expire(o, by); fault.CodeOf(err) != want {
			t.Errorf("by %q: %v", by.Role, err)
		}
	}
	if a, b := e.status(o), e.status(paid); a != order.PendingPayment || b != order.Paid {
		t.Errorf("the orders are %s and %s", a, b)
	}
}
