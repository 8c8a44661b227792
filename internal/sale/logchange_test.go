package sale_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"seckill/internal/sale"
)

func TestChangesOfALogLineHaveFormerAndNewValuesByName(t *testing.T) {
	t.Parallel()
	was, limit := "Morning", "2"
	for details, want := range map[string][]sale.LogChange{
		"":            {},
		"not JSON":    {},
		`{"units":5}`: {{Name: "units", To: "5"}},
		`{"title":"Evening","purchaseLimit":null,"items":[{"stock":1}],"before":{"title":"Morning","purchaseLimit":2,"items":null}}`: {
			{Name: "items", To: `[{"stock":1}]`}, {Name: "purchaseLimit", From: &limit, To: "null"}, {Name: "title", From: &was, To: "Evening"},
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
