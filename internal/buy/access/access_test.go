package access_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seckill/internal/buy/access"
)

// drawRule draws rules of few sources, so that buyers fit some.
var drawRule = rapid.Custom(func(t *rapid.T) access.Rule {
	r := access.Rule{
		Kind:  rapid.SampledFrom([]access.Kind{access.All, access.VerifiedContact, access.Claim, access.List, access.ByCode}).Draw(t, "kind"),
		After: rapid.SampledFrom([]int{0, 1, 60, 1800}).Draw(t, "after"),
	}
	switch r.Kind {
	case access.Claim:
		r.Source = "tier=" + rapid.SampledFrom([]string{"gold", "silver", "a=b"}).Draw(t, "value")
	case access.List, access.ByCode:
		r.Source = rapid.SampledFrom([]string{"members", "press"}).Draw(t, "list")
	case access.All, access.VerifiedContact:
	}
	if r.Kind != access.All && rapid.Bool().Draw(t, "keeps") {
		r.Keep, r.Until = rapid.IntRange(1, 9).Draw(t, "keep"), r.After+rapid.SampledFrom([]int{1, 60, 3600}).Draw(t, "until")
	}
	return r
})

var drawBuyer = rapid.Custom(func(t *rapid.T) access.Buyer {
	b := access.Buyer{
		Verified: rapid.Bool().Draw(t, "verified"),
		Claims:   map[string][]string{"tier": rapid.SliceOfN(rapid.SampledFrom([]string{"gold", "silver", "a=b", "gol"}), 0, 2).Draw(t, "tier")},
		Lists:    rapid.SliceOfN(rapid.SampledFrom([]string{"members", "press", "member"}), 0, 2).Draw(t, "lists"),
	}
	if rapid.Bool().Draw(t, "has a code") {
		b.Code, b.CodeSource = access.Code{Batch: 1, Number: 7}, rapid.SampledFrom([]string{"members", "press", "member"}).Draw(t, "code")
	}
	return b
})

// fits is a second opinion: whether a rule of each kind fits.
func fits(r access.Rule, b access.Buyer) bool {
	return r.Kind == access.All ||
		r.Kind == access.VerifiedContact && b.Verified ||
		r.Kind == access.Claim && slices.ContainsFunc(b.Claims["tier"], func(v string) bool { return "tier="+v == r.Source }) ||
		r.Kind == access.ByCode && b.CodeSource == r.Source ||
		r.Kind == access.List && slices.ContainsFunc(b.Lists, func(l string) bool { return l == r.Source })
}

// The first rule that fits decides: before its time, and without one, there is no access.
func TestTheFirstRuleThatFitsDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := access.Rules(rapid.SliceOfN(drawRule, 0, 5).Draw(t, "rules"))
		buyer := drawBuyer.Draw(t, "buyer")
		opens := time.Unix(1_700_000_000, 0)
		now := opens.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "now")) * time.Second)
		got, restricted := rules.Of(buyer, opens)
		if restricted != (len(rules) > 0) {
			t.Fatalf("restricted %t by %d rules", restricted, len(rules))
		}
		i := slices.IndexFunc(rules, func(r access.Rule) bool { return fits(r, buyer) })
		if i < 0 {
			if got.Rule != nil || got.Open(now) || got.Waits(now) {
				t.Fatalf("%v give %+v, and none fits", rules.Texts(), got)
			}
			return
		}
		from := opens.Add(time.Duration(rules[i].After) * time.Second)
		if got.Rule != &rules[i] || got.Index != i || !got.From.Equal(from) || got.Open(now) != !now.Before(from) {
			t.Fatalf("%v give %+v, rule %d fits first", rules.Texts(), got, i)
		}
		// The waiting room takes before the opening whose time it is, and later those whose time has come.
		if waits := !now.Before(from) || rules[i].After == 0; got.Waits(now) != waits {
			t.Fatalf("%v: waits %t, want %t", rules.Texts(), got.Waits(now), waits)
		}
		if got.Open(now) && !got.Open(now.Add(time.Second)) {
			t.Fatal("access was lost with time")
		}
	})
}

// Pages are pushed at the second of each rule, and of each share.
func TestEachTimeOfARuleIsAChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := access.Rules(rapid.SliceOfN(drawRule, 0, 5).Draw(t, "rules"))
		opens, kept := time.Unix(1_700_000_000, 0), 0
		for _, r := range rules {
			times := []time.Time{r.From(opens)}
			if r.Keep > 0 {
				times = append(times, r.KeptUntil(opens))
			}
			for _, at := range times {
				if rules.Begun(opens, at.Add(-time.Nanosecond)) >= rules.Begun(opens, at) {
					t.Fatalf("%v: nothing changes at %s", rules.Texts(), at)
				}
			}
			kept += r.Keep
		}
		if rules.Kept() != kept {
			t.Fatalf("%v keep %d, want %d", rules.Texts(), rules.Kept(), kept)
		}
	})
}

func TestStoredRulesAreReadAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := access.Rules(rapid.SliceOfN(drawRule, 0, 5).Draw(t, "rules"))
		if read := access.Parse(rules.JSON()); !slices.Equal(read, rules) {
			t.Fatalf("%+v are read as %+v", rules, read)
		}
	})
}

// Rules that cannot be read must not open a sale that they close.
func TestUnreadableRulesLetInNoBuyer(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "[]", "null", `[{"kind":"LATER"}]`} {
		got, restricted := access.Parse(text).Of(access.Buyer{Verified: true}, time.Unix(0, 0))
		if !restricted || got.Open(time.Unix(1<<40, 0)) {
			t.Errorf("%s: %+v, restricted %t", text, got, restricted)
		}
	}
}
