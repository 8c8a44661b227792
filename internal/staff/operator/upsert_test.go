package operator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

func kettle() operator.GoodsDraft {
	return operator.GoodsDraft{Name: "Kettle", ListPrice: price(9900), ExternalID: "erp:4711", SKU: "K-1"}
}

func TestAProductOfAnotherSystemIsCreatedOnceAndThenChanged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		g, created, err := e.ops.UpsertGoods(t.Context(), ann, id.Goods{}, kettle())
		if err != nil || !created || g.ExternalID != "erp:4711" || g.SKU != "K-1" {
			t.Fatalf("%+v, created %v: %v", g, created, err)
		}
		again, created, err := e.ops.UpsertGoods(t.Context(), ann, id.Goods{}, kettle())
		if err != nil || created || again.ID != g.ID || again.Revision != g.Revision {
			t.Errorf("the same again: %+v, created %v: %v", again, created, err)
		}
		cheaper := kettle()
		cheaper.ListPrice, cheaper.SKU = price(8800), ""
		changed, created, err := e.ops.UpsertGoods(t.Context(), ann, id.Goods{}, cheaper)
		if err != nil || created || changed.ID != g.ID || changed.ListPrice != price(8800) || changed.SKU != "" || changed.Revision != g.Revision+1 {
			t.Errorf("another price: %+v, created %v: %v", changed, created, err)
		}
		if name := "Pot"; true { // an edit by hand keeps the id
			edited, err := e.ops.UpdateGoods(t.Context(), bob, g.ID, operator.GoodsPatch{Name: &name})
			if err != nil || edited.ExternalID != "erp:4711" {
				t.Errorf("edited by hand: %+v %v", edited, err)
			}
		}
	})
}

func TestConcurrentUpsertsHaveOneProductAndOneSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		const calls = 8
		var all sync.WaitGroup
		goods, sales := make([]id.Goods, calls), make([]id.Sale, calls)
		made := make(chan bool, 2*calls)
		starts := e.clock.Now().Add(time.Hour)
		for i := range calls {
			all.Go(func() {
				g, created, err := e.ops.UpsertGoods(t.Context(), ann, id.Goods{}, kettle())
				if err != nil {
					t.Error(err)
					return
				}
				goods[i] = g.ID
				made <- created
				v, created, err := e.ops.UpsertSale(t.Context(), ann, autumn(g.Goods, starts))
				if err != nil {
					t.Error(err)
					return
				}
				sales[i] = v.ID
				made <- created
			})
		}
		all.Wait()
		close(made)
		n := 0
		for created := range made {
			if created {
				n++
			}
		}
		for i := range calls {
			if goods[i] != goods[0] || sales[i] != sales[0] {
				t.Errorf("call %d has another product or sale", i)
			}
		}
		if n != 2 {
			t.Errorf("%d calls created something, want one for the product and one for the sale", n)
		}
	})
}

func autumn(g *sale.Goods, starts time.Time) operator.SaleDraft {
	return operator.SaleDraft{
		Title: "Autumn", Reference: "campaign-7", StartsAt: starts, EndsAt: starts.Add(time.Hour), PaymentWindow: 15 * time.Minute,
		Items: []operator.ItemDraft{{Goods: g.ID, Price: price(4900), Stock: 7}},
	}
}

func TestASaleOfAnotherSystemIsADraftThatCanBeSentAgainInEveryState(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		g, _, err := e.ops.UpsertGoods(t.Context(), ann, id.Goods{}, kettle())
		if err != nil {
			t.Fatal(err)
		}
		draft := autumn(g.Goods, e.clock.Now().Add(time.Hour))
		v, created, err := e.ops.UpsertSale(t.Context(), ann, draft)
		if err != nil || !created || v.ExternalReference != "campaign-7" || v.Status != sale.Draft {
			t.Fatalf("%+v, created %v: %v", v, created, err)
		}
		draft.Title = "Late autumn"
		v, created, err = e.ops.UpsertSale(t.Context(), ann, draft)
		if err != nil || created || v.Title != "Late autumn" || v.Revision != 2 {
			t.Fatalf("another title: %+v, created %v: %v", v, created, err)
		}
		if _, err := e.ops.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID}); err != nil {
			t.Fatal(err)
		}
		if v, _, err = e.ops.UpsertSale(t.Context(), ann, draft); err != nil || v.Status != sale.PendingApproval || v.Revision != 3 {
			t.Errorf("the same again: %+v %v", v, err)
		}
		draft.Title = "Winter"
		_, _, err = e.ops.UpsertSale(t.Context(), ann, draft)
		if testenv.Refusal(t, err).Reason() != fault.Conflict {
			t.Errorf("a change after the submission: %v", err)
		}
	})
}

func TestAProductIsLinkedToAnotherSystemOnce(t *testing.T) {
	t.Parallel()
	e := setup(t)
	byHand, err := e.ops.CreateGoods(t.Context(), ann, operator.GoodsDraft{Name: "Kettle", ListPrice: price(9900)})
	if err != nil {
		t.Fatal(err)
	}
	g, created, err := e.ops.UpsertGoods(t.Context(), ann, byHand.ID, kettle())
	if err != nil || created || g.ID != byHand.ID || g.ExternalID != "erp:4711" {
		t.Fatalf("%+v, created %v: %v", g, created, err)
	}
	if g, _, err = e.ops.UpsertGoods(t.Context(), ann, byHand.ID, kettle()); err != nil || g.Revision != 2 {
		t.Errorf("linked again: %+v %v", g, err)
	}
	for why, d := range map[fault.Reason]operator.GoodsDraft{fault.Conflict: {ExternalID: "erp:4712"}, fault.Unknown: {ExternalID: "erp:4713"}} {
		d.Name, d.ListPrice = "Kettle", price(9900)
		link := byHand.ID
		if why == fault.Unknown {
			link = id.Goods(uuid.New())
		}
		_, _, err := e.ops.UpsertGoods(t.Context(), ann, link, d)
		if testenv.Refusal(t, err).Reason() != why {
			t.Errorf("%s: %v", d.ExternalID, err)
		}
	}
	for _, bad := range []string{"", "two words", "类", "12345678901234567890123456789012345678901234567890123456789012345"} {
		d := kettle()
		d.ExternalID = bad
		_, _, err := e.ops.UpsertGoods(t.Context(), ann, id.Goods{}, d)
		if testenv.Refusal(t, err).Reason() != fault.InvalidInput {
			t.Errorf("id %q: %v", bad, err)
		}
	}
}
