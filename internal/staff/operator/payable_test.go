package operator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
)

// TestASaleThatNoProviderTakesIsRefused has the limits of Stripe at each step of a review.
func TestASaleThatNoProviderTakesIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	ctx := t.Context()
	taking := e.config(nil)
	taking.Payments = payment.New(payment.Config{DB: e.db, Orders: e.orders, Clock: e.clock, Log: taking.Log, Providers: []payment.Provider{stripe.New(stripe.Config{Clock: e.clock})}})
	strict := operator.New(taking)
	for name, c := range map[string]struct {
		price        money.Amount
		limit        int
		field, broke string // none = can be paid
	}{
		"too little":         {money.Amount{Minor: 49, Currency: "USD"}, 1, "price", "USD 0.49; stripe ≥ USD 0.50"},
		"enough":             {money.Amount{Minor: 50, Currency: "USD"}, 1, "", ""},
		"too much":           {money.Amount{Minor: 1_000_000_00, Currency: "USD"}, 1, "price", "USD 1000000.00; stripe ≤ USD 999999.99"},
		"too much together":  {money.Amount{Minor: 500_000_00, Currency: "USD"}, 2, "purchaseLimit", "USD 1000000.00; stripe ≤ USD 999999.99"},
		"another currency":   {money.Amount{Minor: 1234, Currency: "KWD"}, 1, "price", "KWD 1.234; stripe AED, AUD"},
		"in forints":         {money.Amount{Minor: 99950, Currency: "HUF"}, 1, "", ""},
		"in forints, little": {money.Amount{Minor: 9950, Currency: "HUF"}, 1, "price", "HUF 99.50; stripe ≥ HUF 175.00"},
	} {
		d := e.draft(5)
		g, err := e.ops.CreateGoods(ctx, ann, operator.GoodsDraft{Name: name, ListPrice: c.price})
		e.must(err)
		d.Title, d.PaymentWindow = name, 24*time.Hour
		d.Items = []operator.ItemDraft{{Goods: g.ID, Price: c.price, Stock: 5, PurchaseLimit: c.limit}}
		v, err := e.ops.CreateSale(ctx, ann, d)
		e.must(err)
		check := func(step string, err error) {
			t.Helper()
			if c.field == "" {
				if err != nil {
					t.Errorf("%s, %s: %v", name, step, err)
				}
				return
			}
			refusal, ok := fault.AsRefusal(err)
			var bad fault.BadField
			if !ok || !errors.As(fault.Each(refusal)[0], &bad) || !slices.Equal(bad.At, []string{"items", "0", c.field}) ||
				bad.Rule.Code != fault.PayableCode || !strings.HasPrefix(bad.Rule.Bound, c.broke) {
				t.Errorf("%s, %s: %v (%+v), want %s of %s", name, step, err, bad, c.broke, c.field)
			}
		}
		in := func(by sale.Actor) operator.ActInput { return operator.ActInput{By: by, Sale: v.ID} }
		_, err = strict.Submit(ctx, in(ann))
		check("submit", err)
		if err != nil { // as with other providers
			_, err = e.ops.Submit(ctx, in(ann))
			e.must(err)
		}
		_, err = strict.Approve(ctx, in(carla))
		check("approve", err)
		if err != nil {
			_, err = e.ops.Approve(ctx, in(carla))
			e.must(err)
		}
		_, err = strict.Schedule(ctx, operator.ScheduleInput{By: carla, Sale: v.ID})
		check("schedule", err)
	}
}
