package operator_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

var members = access.Rules{{Kind: access.List, Name: "Members", Source: "vip"}, {Kind: access.All, After: 1800}}

func TestAccessRulesArePartOfWhatIsApproved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		d := e.draft(10)
		d.Access = &members
		v, err := e.ops.CreateSale(t.Context(), ann, d)
		if err != nil || !reflect.DeepEqual(v.Access, members) {
			t.Fatalf("%+v %v", v, err)
		}
		title := "Winter"
		changed, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Title: &title})
		if err != nil || !reflect.DeepEqual(changed.Sale.Access, members) {
			t.Fatalf("after another change %+v %v", changed.Sale, err)
		}
		first := access.Rules{{Kind: access.Claim, Name: "Gold", Source: "tier=gold"}, {Kind: access.All, After: 60}}
		_, err = e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Access: &first})
		e.must(err)
		lines, err := e.sales.Log(t.Context(), v.ID, 1)
		e.must(err)
		if text := lines[0].Details; !strings.Contains(text, `"access":["CLAIM tier=gold (Gold)","ALL + 60 s"]`) {
			t.Errorf("the log has %s", text)
		}
		in := operator.ActInput{By: ann, Sale: v.ID}
		_, err = e.ops.Submit(t.Context(), in)
		e.must(err)
		_, err = e.ops.Approve(t.Context(), operator.ActInput{By: carla, Sale: v.ID})
		e.must(err)
		a, err := e.ops.Approval(t.Context(), v.ID)
		e.must(err)
		i := slices.IndexFunc(a.Terms, func(term sale.Term) bool { return term.Name == "access" })
		if i < 0 || a.Terms[i].Changed() || *a.Terms[i].Approved != `["CLAIM tier=gold (Gold)","ALL + 60 s"]` {
			t.Errorf("approved %+v", a.Terms)
		}
		// afterwards not even two persons let others in
		done, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Access: &access.Rules{}})
		if err == nil || done.Intervention != nil {
			t.Errorf("rules of an approved sale: %+v %v", done, err)
		}
		template, err := e.ops.SaveTemplate(t.Context(), ann, v.ID, "Gold first")
		e.must(err)
		later := e.clock.Now().Add(48 * time.Hour)
		again, err := e.ops.CreateFromTemplate(t.Context(), ann, operator.FromTemplate{Template: template.ID, StartsAt: later})
		if err != nil || !reflect.DeepEqual(again.Access, first) || !again.Access[1].From(again.StartsAt).Equal(later.Add(time.Minute)) {
			t.Errorf("from the template %+v %v", again, err)
		}
	})
}

func TestAccessRulesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	all := access.Rule{Kind: access.All}
	for want, rules := range map[string]access.Rules{
		"access.1.kind":         {all, {Kind: access.VerifiedContact}},
		"access.1.afterSeconds": {all, {Kind: access.All, After: 7200}},
		"access.0.afterSeconds": {{Kind: access.VerifiedContact, After: -1}, all},
		"access.0.name":         {{Kind: access.List, Source: "vip"}, all},
		"access.0.source":       {{Kind: access.List, Source: "V I P", Name: "Members"}, all},
		"access.1.source":       {{Kind: access.Claim, Source: "tier=gold", Name: "Gold"}, {Kind: access.Claim, Source: "tier", Name: "Gold"}},
		"access.1.name":         {{Kind: access.VerifiedContact}, {Kind: access.All, Name: "Friends"}},
		"access":                {{Kind: access.All, After: 1}},
		"access.0.keepUnits":    {{Kind: access.VerifiedContact, Keep: -1}, all},
		"access.1.keepUnits":    {{Kind: access.VerifiedContact}, {Kind: access.All, Keep: 1, Until: 60}},
		"access.0.keepSeconds":  {{Kind: access.VerifiedContact, Keep: 1}, all},
		"access.1.keepSeconds":  {all, {Kind: access.VerifiedContact, After: 60, Keep: 1, Until: 60}},
	} {
		d := e.draft(5)
		d.Access = &rules
		_, err := e.ops.CreateSale(t.Context(), ann, d)
		if refusal := testenv.Refusal(t, err); fault.ReasonOf(err) != fault.InvalidInput || !pathsOf(refusal)[want] {
			t.Errorf("%s: %v", want, err)
		}
	}
	for name, rules := range map[string]access.Rules{
		"a share after the end":  {{Kind: access.VerifiedContact, Keep: 1, Until: 7201}, all},
		"a time without units":   {{Kind: access.VerifiedContact, Until: 60}, all},
		"shares above the stock": {{Kind: access.VerifiedContact, Keep: 3, Until: 60}, {Kind: access.List, Name: "M", Source: "vip", Keep: 3, Until: 90}, all},
	} {
		d := e.draft(5)
		d.Access = &rules
		if _, err := e.ops.CreateSale(t.Context(), ann, d); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := e.draft(5)
	d.Access, d.Draw = &access.Rules{{Kind: access.VerifiedContact, Keep: 1, Until: 60}, all}, sale.DrawRules{EntrySeconds: 600, OfferSeconds: 600}
	if _, err := e.ops.CreateSale(t.Context(), ann, d); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("a share in a draw: %v", err)
	}
	d = e.draft(5)
	many := make(access.Rules, access.MaxRules+1)
	for i := range many {
		many[i] = access.Rule{Kind: access.List, Name: "Group", Source: fmt.Sprintf("list-%d", i)}
	}
	d.Access = &many
	if _, err := e.ops.CreateSale(t.Context(), ann, d); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("%d rules: %v", len(many), err)
	}
}

// pathsOf returns the refused fields.
func pathsOf(refusal fault.Refusal) map[string]bool {
	paths := map[string]bool{}
	for _, each := range fault.Each(refusal) {
		paths[strings.Join(each.Path(), ".")] = true
	}
	return paths
}
