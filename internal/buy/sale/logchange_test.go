package sale_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"seckill/internal/buy/sale"
)

func TestChangesOfALogLineHaveFormerAndNewValuesByName(t *testing.T) {
	t.Parallel()
	was, limit, ratio := "Morning", "2", "1.5"
	for details, want := range map[string][]sale.LogChange{
		"":            {},
		"not JSON":    {},
		`{"units":5}`: {{Name: "units", Kind: sale.ValueNumber, To: "5"}},
		`{"title":"Evening","purchaseLimit":null,"items":[{"stock":1}],"totalLimit":3,"openedAt":"2026-11-20T12:00:00Z","hideExactStock":true,` +
			`"before":{"title":"Morning","purchaseLimit":2,"items":null,"totalLimit":null}}`: {
			{Name: "hideExactStock", Kind: sale.ValueBoolean, To: "true"},
			{Name: "items", Kind: sale.ValueJSON, FromKnown: true, To: `[{"stock":1}]`},
			{Name: "openedAt", Kind: sale.ValueInstant, To: "2026-11-20T12:00:00Z"},
			{Name: "purchaseLimit", Kind: sale.ValueNumber, From: &limit, FromKnown: true, To: "null"},
			{Name: "title", Kind: sale.ValueText, From: &was, FromKnown: true, To: "Evening"},
			{Name: "totalLimit", Kind: sale.ValueNumber, FromKnown: true, To: "3"},
		},
		// Former releases logged all switches, and the permits per thousand.
		`{"captchaRequired":true,"captchaKinds":[],"permitPerMille":1250,"limitBurst":5,"before":{"permitPerMille":1500}}`: {
			{Name: "permitRatio", Kind: sale.ValueNumber, From: &ratio, FromKnown: true, To: "1.25"},
		},
	} {
		if diff := cmp.Diff(want, sale.LogLine{Details: details}.Changes()); diff != "" {
			t.Errorf("%s: %s", details, diff)
		}
		if diff := cmp.Diff(want, sale.GoodsLine{Details: details}.Changes()); diff != "" {
			t.Errorf("%s: %s", details, diff)
		}
	}
}
