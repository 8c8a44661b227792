package operator_test

import (
	"strings"
	"testing"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

func TestASaleHasAnAccentThatCanBeRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		d := e.draft(10)
		d.Accent = "#B3261E"
		v, err := e.ops.CreateSale(t.Context(), ann, d)
		if err != nil || v.Accent.Color != "#b3261e" || v.Accent.Light.Fill != "#b3261e" || v.Accent.Dark.Text == "" {
			t.Fatalf("%+v, %v", v, err)
		}
		for color, rule := range map[string]string{"#ff6a00": "contrast: 2.87", "red": "format: #rrggbb"} {
			_, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Accent: &color})
			refusal := testenv.Refusal(t, err)
			if fault.ReasonOf(err) != fault.InvalidInput || refusal.Path()[0] != "accent" || !strings.Contains(refusal.Error(), rule) {
				t.Errorf("%s: %v", color, err)
			}
		}
		same := "#B3261E"
		if again, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Accent: &same}); err != nil || again.Accent != v.Accent {
			t.Errorf("the same colour: %+v, %v", again, err)
		}
		none := ""
		got, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Accent: &none})
		if err != nil || got.Accent.Color != "" {
			t.Fatalf("without: %+v, %v", got, err)
		}
		e.wantChange(got.Sale, sale.ActUpdate, "accent", "", "#b3261e")
	})
}

func TestTheAccentOfAnApprovedSaleCanChange(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	color, pale := "#136b3b", "#ffcc00"
	got, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Accent: &color})
	if err != nil || got.Accent.Color != color || got.Status != sale.Live {
		t.Fatalf("%+v, %v", got, err)
	}
	e.wantChange(got.Sale, sale.ActDescribe, "accent", color, "")
	if _, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Accent: &pale}); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("a pale colour: %v", err)
	}
}

func TestACopyHasTheAccentOfItsSale(t *testing.T) {
	t.Parallel()
	e := setup(t)
	d := e.draft(10)
	d.Accent = "#136b3b"
	v, err := e.ops.CreateSale(t.Context(), ann, d)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := e.ops.CopySale(t.Context(), bob, operator.CopyInput{Sale: v.ID, StartsAt: d.StartsAt, EndsAt: d.EndsAt})
	if err != nil || copied.Accent != v.Accent {
		t.Errorf("%+v, %v", copied, err)
	}
}
