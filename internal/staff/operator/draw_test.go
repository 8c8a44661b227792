package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/stripe"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

func TestTheRulesOfADrawArePartOfWhatIsApproved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		d := e.draft(10)
		d.EndsAt = d.StartsAt.Add(3 * time.Hour)
		d.Draw = sale.DrawRules{EntrySeconds: 3600, OfferSeconds: 600}
		v, err := e.ops.CreateSale(t.Context(), ann, d)
		if err != nil || v.Mode() != sale.Draw || !v.EntriesCloseAt().Equal(v.StartsAt.Add(time.Hour)) {
			t.Fatalf("%+v %v", v, err)
		}
		rules := sale.DrawRules{EntrySeconds: 1800, OfferSeconds: 900}
		_, err = e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Draw: &rules})
		e.must(err)
		lines, err := e.sales.Log(t.Context(), v.ID, 1)
		e.must(err)
		if text := lines[0].Details; !strings.Contains(text, `"draw":"DRAW entries 1800 s, offers 900 s"`) {
			t.Errorf("the log has %s", text)
		}
		_, err = e.ops.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID})
		e.must(err)
		_, err = e.ops.Approve(t.Context(), operator.ActInput{By: carla, Sale: v.ID})
		e.must(err)
		a, err := e.ops.Approval(t.Context(), v.ID)
		e.must(err)
		i := slices.IndexFunc(a.Terms, func(term sale.Term) bool { return term.Name == "draw" })
		if i < 0 || a.Terms[i].Changed() {
			t.Errorf("approved %+v", a.Terms)
		}
		done, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Draw: &sale.DrawRules{}})
		if err == nil || done.Intervention != nil {
			t.Errorf("a draw becomes a rush after its approval: %+v %v", done, err)
		}
		ends := v.StartsAt.Add(40 * time.Minute)
		_, err = e.ops.Schedule(t.Context(), operator.ScheduleInput{By: ann, Sale: v.ID, EndsAt: &ends})
		if refusal := testenv.Refusal(t, err); !pathsOf(refusal)["endsAt"] {
			t.Errorf("an end before that of the first offers: %v", err)
		}
		template, err := e.ops.SaveTemplate(t.Context(), ann, v.ID, "Draw")
		e.must(err)
		again, err := e.ops.CreateFromTemplate(t.Context(), ann,
			operator.FromTemplate{Template: template.ID, StartsAt: e.clock.Now().Add(48 * time.Hour)})
		if err != nil || again.Draw != rules {
			t.Errorf("from the template %+v %v", again, err)
		}
	})
}

func TestRulesOfADrawThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for want, rules := range map[string]sale.DrawRules{
		"draw.entrySeconds": {EntrySeconds: sale.MinEntrySeconds - 1, OfferSeconds: 600},
		"draw.offerSeconds": {EntrySeconds: 600, OfferSeconds: 86_400}, // longer than the sale
	} {
		d := e.draft(5)
		d.Draw = rules
		_, err := e.ops.CreateSale(t.Context(), ann, d)
		if refusal := testenv.Refusal(t, err); fault.ReasonOf(err) != fault.InvalidInput || !pathsOf(refusal)[want] {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A draw asks for cards only where a provider authorizes them, and says so in its terms.
func TestCardsAtEntryNeedAProviderThatAuthorizesThem(t *testing.T) {
	t.Parallel()
	e := setup(t)
	d := e.draft(10)
	d.EndsAt = d.StartsAt.Add(3 * time.Hour)
	d.Draw = sale.DrawRules{EntrySeconds: 3600, OfferSeconds: 600, Authorize: true}
	_, err := e.ops.CreateSale(t.Context(), ann, d)
	if refusal := testenv.Refusal(t, err); !pathsOf(refusal)["draw.authorizeEntries"] {
		t.Errorf("without a provider: %v", err)
	}
	taking := e.config(nil)
	taking.Payments = payment.New(payment.Config{DB: e.db, Orders: e.orders, Clock: e.clock, Log: taking.Log, Providers: []payment.Provider{stripe.New(stripe.Config{Clock: e.clock})}})
	strict := operator.New(taking)
	v, err := strict.CreateSale(t.Context(), ann, d)
	if err != nil || !v.Draw.Authorize || !strings.Contains(v.Draw.String(), "cards authorized at entry") {
		t.Fatalf("%+v %v", v, err)
	}
	_, err = strict.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID})
	e.must(err)
	_, err = e.ops.Approve(t.Context(), operator.ActInput{By: carla, Sale: v.ID}) // Stripe was removed meanwhile
	if refusal := testenv.Refusal(t, err); !pathsOf(refusal)["draw.authorizeEntries"] {
		t.Errorf("approved without a provider: %v", err)
	}
	_, err = strict.Approve(t.Context(), operator.ActInput{By: carla, Sale: v.ID})
	e.must(err)
}
