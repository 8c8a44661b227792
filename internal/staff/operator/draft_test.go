package operator_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/sale"
	"seckill/internal/gate/preload"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

func TestGoodsAreMadeAndChanged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		picture := "/media/abc.png"
		g, err := e.ops.CreateGoods(t.Context(), ann, operator.GoodsDraft{
			Name: " Kettle ", Description: "Boils.", ImageURL: &picture, ImageAlt: " " + strings.Repeat("白", 200) + " ", ListPrice: price(9900),
		})
		if err != nil || g.Name != "Kettle" || *g.ImageURL != picture || g.ImageAlt != strings.Repeat("白", 200) {
			t.Fatalf("%+v %v", g, err)
		}
		name, none := strings.Repeat("壶", 120), (*string)(nil)
		amount, alt := price(8800), "A white kettle with a gooseneck spout"
		edited, err := e.ops.UpdateGoods(t.Context(), bob, g.ID, operator.GoodsPatch{
			Name: &name, ImageURL: &none, ImageAlt: &alt, ListPrice: &amount, Note: "a fairer price",
		})
		g = edited.Goods
		if err != nil || g.Name != name || g.ImageURL != nil || g.ImageAlt != alt || g.ListPrice != amount || g.Description != "Boils." || g.Revision != 2 {
			t.Fatalf("%+v %v", g, err)
		}
		if seen, _, err := e.catalog.Goods(t.Context(), g.ID); err != nil || seen == nil || seen.Name != name {
			t.Errorf("the catalogue shows something else: %v", err)
		}
		if again, err := e.ops.UpdateGoods(t.Context(), ann, g.ID, operator.GoodsPatch{Name: &name}); err != nil || again.Revision != 2 {
			t.Errorf("a change of nothing: %+v %v", again, err)
		}
		log, err := e.sales.GoodsLog(t.Context(), g.ID, 50)
		if err != nil || len(log) != 2 || log[0].Act != sale.ActUpdate || log[0].Actor != bob.ID || log[0].Revision != 2 || log[0].Note != "a fairer price" ||
			log[1].Act != sale.ActCreate || log[1].Actor != ann.ID || log[1].At.IsZero() {
			t.Fatalf("log %+v %v", log, err)
		}
		for _, part := range []string{`"listPrice":"88.00"`, `"imageUrl":""`, `"imageAlt":"A white kettle with a gooseneck spout"`, `"name":"壶`} {
			if !strings.Contains(log[0].Details, part) || strings.Contains(log[0].Details, "description") {
				t.Errorf("no %s in %s", part, log[0].Details)
			}
		}
		alt = " "
		if g, err := e.ops.UpdateGoods(t.Context(), ann, g.ID, operator.GoodsPatch{ImageAlt: &alt}); err != nil || g.ImageAlt != "" || g.Name != name {
			t.Errorf("without an alternative text: %+v %v", g, err)
		}
	})
}

func TestGoodsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	ok := func() operator.GoodsDraft { return operator.GoodsDraft{Name: "Kettle", ListPrice: price(9900)} }
	for field, spoil := range map[string]func(d *operator.GoodsDraft){
		"name":        func(d *operator.GoodsDraft) { d.Name = " " },
		"description": func(d *operator.GoodsDraft) { d.Description = strings.Repeat("x", 10_001) },
		"imageUrl":    func(d *operator.GoodsDraft) { u := "javascript:alert(1)"; d.ImageURL = &u },
		"imageAlt":    func(d *operator.GoodsDraft) { d.ImageAlt = strings.Repeat("x", 201) },
		"listPrice":   func(d *operator.GoodsDraft) { d.ListPrice = price(0) },
	} {
		d := ok()
		spoil(&d)
		_, err := e.ops.CreateGoods(t.Context(), ann, d)
		refusal := testenv.Refusal(t, err)
		if fault.ReasonOf(err) != fault.InvalidInput || refusal.Path()[0] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, address := range []string{"http://a.example/x.png", "//a.example/x.png", "x.png", "data:text/html,x", "https:///x"} {
		d := ok()
		d.ImageURL = &address
		if _, err := e.ops.CreateGoods(t.Context(), ann, d); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("picture at %s: %v", address, err)
		}
	}
	if _, err := e.ops.CreateGoods(t.Context(), buyer, ok()); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("by a customer: %v", err)
	}
	g := e.goods("Kettle")
	euro := money.Amount{Minor: 100, Currency: "EUR"}
	if _, err := e.ops.UpdateGoods(t.Context(), ann, g.ID, operator.GoodsPatch{ListPrice: &euro}); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("another currency: %v", err)
	}
	if _, err := e.ops.UpdateGoods(t.Context(), ann, id.Goods(uuid.New()), operator.GoodsPatch{}); fault.ReasonOf(err) != fault.Unknown {
		t.Errorf("unknown goods: %v", err)
	}
}

func TestADraftIsWrittenAndRewritten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.sale(10)
		if v.Status != sale.Draft || !strings.HasPrefix(v.Slug, "autumn-") || len(v.Items) != 1 || v.Items[0].Total != 10 ||
			!v.PreheatAt.Equal(v.StartsAt.Add(-10*time.Minute)) || *v.CreatedBy != ann.ID {
			t.Fatalf("%+v", v)
		}
		cup, limit, slug := e.goods("Cup"), 3, "winter-26"
		got, err := e.ops.UpdateSale(t.Context(), bob, v.ID, operator.SalePatch{
			Slug: &slug, PurchaseLimit: &limit, Note: "for the winter",
			Items: []operator.ItemDraft{{Goods: cup.ID, Price: price(100), Stock: 7}, {Goods: v.Items[0].Goods.ID, Price: price(200), Stock: 8}},
		})
		if err != nil || got.Slug != slug || got.PurchaseLimit != 3 || got.Title != "Autumn" ||
			len(got.Items) != 2 || got.Items[0].Goods.Name != "Cup" || got.Items[1].Available != 8 || got.Revision != 2 {
			t.Fatalf("%+v %v", got, err)
		}
		lines, err := e.sales.Log(t.Context(), v.ID, 1)
		if d := lines[0].Details; err != nil || lines[0].Note != "for the winter" || strings.Contains(d, "title") || !strings.Contains(d, `"slug":"winter-26"`) ||
			!strings.Contains(d, `"purchaseLimit":3`) || !strings.Contains(d, `"price":"2.00","purchaseLimit":3,"stock":8`) {
			t.Errorf("log %+v %v", lines, err)
		}
		if _, err := e.ops.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.ops.Reject(t.Context(), operator.ActInput{By: carla, Sale: v.ID, Note: "too cheap"}); err != nil {
			t.Fatal(err)
		}
		limit = 2
		got, err = e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{PurchaseLimit: &limit})
		if err != nil || got.Status != sale.Draft || len(got.Items) != 2 {
			t.Errorf("a sale that was sent back is a draft again: %+v %v", got, err)
		}
	})
}

func TestAnUpdateWithAnUnknownProductChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v, title := e.sale(10), "Winter"
		got, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Title: &title, Items: []operator.ItemDraft{
			{Goods: v.Items[0].Goods.ID, Price: price(100), Stock: 7}, {Goods: id.Goods(uuid.New()), Price: price(100), Stock: 7},
		}})
		refusal := testenv.Refusal(t, err)
		if fault.ReasonOf(err) != fault.Unknown || got.Revision != v.Revision || strings.Join(refusal.Path(), ".") != "items.1.goodsId" {
			t.Fatalf("%+v, %v", got, err)
		}
		if after := e.read(v.ID); after.Title != v.Title || after.Revision != v.Revision || len(after.Items) != 1 || after.Items[0].Total != 10 {
			t.Errorf("the sale is %+v, was %+v", after, v)
		}
	})
}

func TestDraftsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.must(func() error {
		d := e.draft(5)
		d.Slug = "taken"
		_, err := e.ops.CreateSale(t.Context(), ann, d)
		return err
	}())
	for want, c := range map[string]struct {
		reason fault.Reason
		spoil  func(d *operator.SaleDraft)
	}{
		"title":                 {fault.InvalidInput, func(d *operator.SaleDraft) { d.Title = "" }},
		"slug":                  {fault.InvalidInput, func(d *operator.SaleDraft) { d.Slug = "No Slug" }},
		"rules":                 {fault.InvalidInput, func(d *operator.SaleDraft) { d.Rules = strings.Repeat("x", 10_001) }},
		"endsAt":                {fault.InvalidInput, func(d *operator.SaleDraft) { d.EndsAt = d.StartsAt }},
		"paymentWindowSeconds":  {fault.InvalidInput, func(d *operator.SaleDraft) { d.PaymentWindow = 29 * time.Second }},
		"purchaseLimit":         {fault.InvalidInput, func(d *operator.SaleDraft) { d.PurchaseLimit = 201 }},
		"items.0.purchaseLimit": {fault.InvalidInput, func(d *operator.SaleDraft) { d.Items[0].PurchaseLimit = 11 }},
		"items":                 {fault.InvalidInput, func(d *operator.SaleDraft) { d.Items = nil }},
		"items.0.stock":         {fault.InvalidInput, func(d *operator.SaleDraft) { d.Items[0].Stock = 0 }},
		"items.0.price":         {fault.InvalidInput, func(d *operator.SaleDraft) { d.Items[0].Price.Minor = -1 }},
		"items.1.goodsId":       {fault.InvalidInput, func(d *operator.SaleDraft) { d.Items = append(d.Items, d.Items[0]) }},
		"items.1.price.currencyCode": {fault.InvalidInput, func(d *operator.SaleDraft) {
			d.Items = append(d.Items, operator.ItemDraft{Goods: e.goods("Cup").ID, Price: money.Amount{Minor: 1, Currency: "EUR"}, Stock: 1})
		}},
		"items.0.goodsId": {fault.Unknown, func(d *operator.SaleDraft) { d.Items[0].Goods = id.Goods(uuid.New()) }},
	} {
		d := e.draft(5)
		c.spoil(&d)
		_, err := e.ops.CreateSale(t.Context(), ann, d)
		refusal := testenv.Refusal(t, err)
		if fault.ReasonOf(err) != c.reason || strings.Join(refusal.Path(), ".") != want {
			t.Errorf("%s: %v", want, err)
		}
	}
	d := e.draft(5)
	d.Slug = "taken"
	if _, err := e.ops.CreateSale(t.Context(), ann, d); fault.ReasonOf(err) != fault.Conflict {
		t.Errorf("a slug that is taken: %v", err)
	}
	d = e.draft(5)
	d.Title = "双十一"
	if v, err := e.ops.CreateSale(t.Context(), ann, d); err != nil || len(v.Slug) < 8 {
		t.Errorf("a title without Latin letters: %+v %v", v, err)
	}
}

func TestADraftWhoseStartHasPassedIsNotSubmitted(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.sale(5)
	e.clock.Advance(time.Hour)
	in := operator.ActInput{By: ann, Sale: v.ID}
	if _, err := e.ops.Submit(t.Context(), in); fault.ReasonOf(err) != fault.InvalidInput {
		t.Fatalf("submitted: %v", err)
	}
	title, ends := "Winter", e.clock.Now().Add(2*time.Hour)
	if _, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Title: &title}); err != nil {
		t.Errorf("its title is not changed: %v", err)
	}
	if _, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{EndsAt: &ends}); fault.ReasonOf(err) != fault.InvalidInput {
		t.Errorf("its end is changed, and its start is still in the past: %v", err)
	}
	starts := e.clock.Now().Add(time.Minute)
	if _, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{StartsAt: &starts, EndsAt: &ends}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ops.Submit(t.Context(), in); err != nil {
		t.Error(err)
	}
}

func TestZeroBytesInTextsAreRefusedAndNotAFaultOfOurs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		const zero = "a\x00b"
		name, v := zero, e.sale(5)
		create := func(spoil func(d *operator.SaleDraft)) error {
			d := e.draft(5)
			spoil(&d)
			_, err := e.ops.CreateSale(t.Context(), ann, d)
			return err
		}
		for field, try := range map[string]func() error{
			"title": func() error { return create(func(d *operator.SaleDraft) { d.Title = zero }) },
			"rules": func() error { return create(func(d *operator.SaleDraft) { d.Rules = zero }) },
			"description": func() error {
				_, err := e.ops.CreateGoods(t.Context(), ann, operator.GoodsDraft{Name: "Kettle", Description: zero, ListPrice: price(9900)})
				return err
			},
			"name": func() error {
				_, err := e.ops.UpdateGoods(t.Context(), ann, v.Items[0].Goods.ID, operator.GoodsPatch{Name: &name})
				return err
			},
			"note": func() error {
				_, err := e.ops.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID, Note: zero})
				return err
			},
		} {
			err := try()
			refusal := testenv.Refusal(t, err)
			if fault.ReasonOf(err) != fault.InvalidInput || refusal.Path()[0] != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
}

func TestSalesOfOneLongTitleHaveSlugsOfTheirOwn(t *testing.T) {
	t.Parallel()
	e := setup(t)
	format := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*-[a-z0-9]{8}$`)
	for _, title := range []string{
		strings.Repeat("x", 46), strings.Repeat("x", 47), strings.Repeat("x", 55), strings.Repeat("x", 56), strings.Repeat("x", 120),
		strings.Repeat("x", 54) + " and more", // cut at the end of the word
		"Seasonal clearance of household appliances and kitchenware, week 47",
	} {
		slugs := map[string]bool{}
		for range 2 {
			d := e.draft(5)
			d.Title = title
			v, err := e.ops.CreateSale(t.Context(), ann, d)
			if err != nil {
				t.Errorf("%s: %v", title, err)
				continue
			}
			if !format.MatchString(v.Slug) || len(v.Slug) > 64 {
				t.Errorf("%s: slug %s", title, v.Slug)
			}
			slugs[v.Slug] = true
		}
		if len(slugs) != 2 {
			t.Errorf("%s: slugs %v", title, slugs)
		}
	}
}

func TestTimesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Approved, 5)
	now := e.clock.Now()
	at := func(d time.Duration) *time.Time { u := now.Add(d); return &u }
	for field, in := range map[string]operator.ScheduleInput{
		"startsAt":  {StartsAt: at(-time.Second)},
		"endsAt":    {StartsAt: at(3 * time.Hour)},
		"preheatAt": {PreheatAt: at(90 * time.Minute)},
	} {
		in.By, in.Sale = ann, v.ID
		_, err := e.ops.Schedule(t.Context(), in)
		refusal := testenv.Refusal(t, err)
		if fault.ReasonOf(err) != fault.InvalidInput || refusal.Path()[0] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	// The scheduler would not load it at that time.
	early := operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: at(72 * time.Hour), EndsAt: at(73 * time.Hour), PreheatAt: at(time.Hour)}
	_, err := e.ops.Schedule(t.Context(), early)
	if refusal, ok := errors.AsType[fault.BadField](err); !ok || refusal.At[0] != "preheatAt" || refusal.Rule != fault.NearStart {
		t.Errorf("preloaded days before the start: %v", err)
	}
	if covered := (preload.DefaultSlots - 1) * preload.DefaultSlot; operator.MaxPreheat != covered {
		t.Errorf("a preload is allowed %s before the start, the slots cover %s", operator.MaxPreheat, covered)
	}
	in := operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: at(2 * time.Hour), EndsAt: at(3 * time.Hour), Note: "later"}
	_, err = e.second(e.ops.Schedule(t.Context(), in))
	got := e.read(v.ID)
	if err != nil || got.Status != sale.Scheduled || !got.PreheatAt.Equal(now.Add(110*time.Minute)) {
		t.Errorf("%+v %v", got, err)
	}
	lines, err := e.sales.Log(t.Context(), v.ID, 1)
	if err != nil || lines[0].Note != "later" || !strings.Contains(lines[0].Details, `"preheatAt"`) {
		t.Errorf("log %+v %v", lines, err)
	}
}

func TestSwitchesAreSeenByEveryProcessWithinASecond(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 5)
		there := e.another()
		if s, err := there.Snapshot(t.Context()); err != nil || !s.Sale(v.ID).Switches.CaptchaRequired {
			t.Fatal(err)
		}
		no, ratio, inflow, burst, rate, hard := false, 1.25, 50, 9, 2.5, 300_000
		got, err := e.second(e.ops.SetSwitches(t.Context(), operator.ActInput{By: ann, Sale: v.ID, Note: "rush"}, operator.SwitchesPatch{
			CaptchaRequired: &no, CaptchaKinds: []string{"MATH", "PROOF_OF_WORK"}, PermitRatio: &ratio,
			InflowPerSecond: &inflow, LimitBurst: &burst, LimitPerSecond: &rate, PowMax: &hard,
		}))
		if err != nil {
			t.Fatal(err)
		}
		e.clock.Advance(time.Second)
		s, err := there.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := s.Sale(v.ID).Switches
		if w.CaptchaRequired || strings.Join(w.CaptchaKinds, " ") != "MATH PROOF_OF_WORK" || w.PermitPerMille != 1250 ||
			w.InflowPerSecond != 50 || w.PowMax != 300_000 || w.LimitBurst != 9 || w.LimitPerSecond != 2.5 || got.Revision != v.Revision+1 {
			t.Errorf("switches %+v", w)
		}
		lines, err := e.sales.Log(t.Context(), v.ID, 1)
		if err != nil || lines[0].Act != sale.ActSwitch || !strings.Contains(lines[0].Details, `"permitRatio":1.25`) || !strings.Contains(lines[0].Details, `"proofOfWorkMax":300000`) || lines[0].Note != "rush" {
			t.Errorf("log %+v %v", lines, err)
		}
		easy, endless := 9_999, 10_000_001
		wrong := []operator.SwitchesPatch{{PowMax: &easy}, {PowMax: &endless}, {PowMax: neg()}, {CaptchaKinds: []string{"GUESS"}}, {PermitRatio: nan()}, {InflowPerSecond: neg()}, {LimitBurst: neg()}}
		for _, p := range wrong {
			if _, err := e.ops.SetSwitches(t.Context(), operator.ActInput{By: ann, Sale: v.ID}, p); fault.ReasonOf(err) != fault.InvalidInput {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
}

func TestTheLogHasOnlyWhatChangedUnderTheNamesOfTheInput(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Approved, 5)
		ratio, required := 0.5, v.Switches.CaptchaRequired
		_, err := e.ops.SetSwitches(t.Context(), operator.ActInput{By: ann, Sale: v.ID}, operator.SwitchesPatch{PermitRatio: &ratio, CaptchaRequired: &required, CaptchaKinds: []string{}})
		e.must(err)
		closes := v.EndsAt.Add(time.Hour)
		_, err = e.second(e.ops.Schedule(t.Context(), operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: &v.StartsAt, EndsAt: &closes, PreheatAt: &v.PreheatAt}))
		e.must(err)
		lines, err := e.ops.Timeline(t.Context(), v.ID)
		e.must(err)
		for i, want := range []string{"endsAt", "permitRatio"} {
			got := slices.DeleteFunc(lines[i].Changes(), func(c sale.LogChange) bool {
				return strings.HasPrefix(c.Name, "confirm") || strings.HasPrefix(c.Name, "request")
			})
			if len(got) != 1 || got[0].Name != want || !got[0].FromKnown {
				t.Errorf("%s has %+v, want %s alone", lines[i].Act, got, want)
			}
		}
	})
}

// Such a sale would ask for proofs of work, which programs solve.
func TestASaleWithAnOutsideCaptchaNeedsItsService(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v, err := e.ops.CreateSale(t.Context(), ann, e.draft(5))
		e.must(err)
		patch := operator.SwitchesPatch{CaptchaKinds: []string{"EXTERNAL", "TEXT"}}
		broken := func(err error) bool {
			field, ok := errors.AsType[fault.BadField](err)
			return ok && field.Rule == fault.CaptchaService
		}
		if _, err := e.ops.SetSwitches(t.Context(), operator.ActInput{By: ann, Sale: v.ID}, patch); !broken(err) {
			t.Errorf("the switch without a service: %v", err)
		}
		cfg := e.config(nil)
		cfg.ExternalCaptcha = true
		with := operator.New(cfg)
		_, err = with.SetSwitches(t.Context(), operator.ActInput{By: ann, Sale: v.ID}, patch)
		e.must(err)
		if _, err := e.ops.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID}); !broken(err) {
			t.Errorf("submitted without a service: %v", err)
		}
		_, err = with.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID})
		e.must(err)
		if _, err := e.ops.Approve(t.Context(), operator.ActInput{By: dora, Sale: v.ID}); !broken(err) {
			t.Errorf("approved without a service: %v", err)
		}
		_, err = with.Approve(t.Context(), operator.ActInput{By: dora, Sale: v.ID})
		e.must(err)
	})
}
