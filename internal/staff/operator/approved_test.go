package operator_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
)

// change is a change of a sale that buyers know, or of its product.
type change struct {
	name  string
	alone bool // one person makes it
	// before: only until the opening.
	before bool
	make   func(ctx context.Context, e *env, by sale.Actor, v *sale.Sale) error
}

func failed[T any](_ T, err error) error { return err }

func ofGoods(name string, alone bool, p operator.GoodsPatch) change {
	return change{name: name, alone: alone, make: func(ctx context.Context, e *env, by sale.Actor, v *sale.Sale) error {
		return failed(e.ops.UpdateGoods(ctx, by, v.Items[0].Goods.ID, p))
	}}
}

func ofSale(name string, alone bool, p operator.SalePatch) change {
	return change{name: name, alone: alone, make: func(ctx context.Context, e *env, by sale.Actor, v *sale.Sale) error {
		return failed(e.ops.UpdateSale(ctx, by, v.ID, p))
	}}
}

func ofSwitches(name string, alone bool, p operator.SwitchesPatch) change {
	return change{name: name, alone: alone, make: func(ctx context.Context, e *env, by sale.Actor, v *sale.Sale) error {
		return failed(e.ops.SetSwitches(ctx, operator.ActInput{By: by, Sale: v.ID}, p))
	}}
}

func ofTimes(name string, alone bool, starts, ends, preheat time.Duration) change {
	moved := func(at time.Time, by time.Duration) *time.Time {
		at = at.Add(by)
		return &at
	}
	return change{name: name, alone: alone, before: true, make: func(ctx context.Context, e *env, by sale.Actor, v *sale.Sale) error {
		return failed(e.ops.Schedule(ctx, operator.ScheduleInput{
			By: by, Sale: v.ID, StartsAt: moved(v.StartsAt, starts), EndsAt: moved(v.EndsAt, ends), PreheatAt: moved(v.PreheatAt, preheat),
		}))
	}}
}

func ofStock(name string, alone bool, units int) change {
	return change{name: name, alone: alone, make: func(ctx context.Context, e *env, by sale.Actor, v *sale.Sale) error {
		return failed(e.ops.AdjustStock(ctx, operator.AdjustInput{By: by, Item: v.Items[0].ID, Units: units, Note: "counted"}))
	}}
}

func ptr[T any](v T) *T { return &v }

// changesAfterApproval has each field of a sale and its product that can change after the
// approval.
func changesAfterApproval() []change {
	picture, data := ptr("https://cdn.example.com/other.png"), ptr("data:image/png;base64,iVBORw0KGgo=")
	return []change{
		ofSale("title", false, operator.SalePatch{Title: ptr("Winter")}),
		ofSale("rules", false, operator.SalePatch{Rules: ptr("No refunds.")}),
		ofSale("accent", true, operator.SalePatch{Accent: ptr("#0b5fff")}),
		ofSale("title and accent", false, operator.SalePatch{Title: ptr("Winter"), Accent: ptr("#0b5fff")}),
		ofTimes("the opening", false, 7*24*time.Hour, 7*24*time.Hour, 7*24*time.Hour),
		ofTimes("an earlier opening", false, -10*time.Minute, 0, -10*time.Minute),
		ofTimes("a later end before the opening", false, 0, time.Hour, 0),
		ofTimes("an earlier end", false, 0, -time.Minute, 0),
		ofTimes("the preload", true, 0, 0, time.Minute),
		ofGoods("name", false, operator.GoodsPatch{Name: ptr("Kettle, refurbished")}),
		ofGoods("description", false, operator.GoodsPatch{Description: ptr("Used.")}),
		ofGoods("picture", false, operator.GoodsPatch{ImageURL: &picture}),
		ofGoods("picture in the address", false, operator.GoodsPatch{ImageURL: &data}),
		ofGoods("alternative text", false, operator.GoodsPatch{ImageAlt: ptr("A teapot")}),
		ofGoods("a higher list price", false, operator.GoodsPatch{ListPrice: &money.Amount{Minor: 999_900, Currency: "CNY"}}),
		ofGoods("a lower list price", false, operator.GoodsPatch{ListPrice: &money.Amount{Minor: 5000, Currency: "CNY"}}),
		ofGoods("id in another system", true, operator.GoodsPatch{ExternalID: ptr("erp-7")}),
		ofGoods("stock keeping unit", true, operator.GoodsPatch{SKU: ptr("K-7")}),
		ofSwitches("no captcha", false, operator.SwitchesPatch{CaptchaRequired: ptr(false)}),
		ofSwitches("fewer kinds of captcha", false, operator.SwitchesPatch{CaptchaKinds: []string{"TEXT"}}),
		ofSwitches("harder proofs of work", true, operator.SwitchesPatch{PowMax: ptr(2_000_000)}),
		ofSwitches("permits", true, operator.SwitchesPatch{PermitRatio: ptr(3.0)}),
		ofSwitches("inflow", true, operator.SwitchesPatch{InflowPerSecond: ptr(10)}),
		ofSwitches("rate limit", true, operator.SwitchesPatch{LimitBurst: ptr(3), LimitPerSecond: ptr(0.5)}),
		ofStock("some units more", true, 5),
		ofStock("many units more", false, operator.DefaultTwoPersonUnits+1),
		ofStock("one unit fewer", false, -1),
	}
}

// state is what a change could have changed.
func (e *env) state(v *sale.Sale) string {
	e.t.Helper()
	now := e.read(v.ID)
	now.Revision, now.Items[0].Revision, now.Epoch = 0, 0, 0
	text, err := json.Marshal(now)
	e.must(err)
	return string(text)
}

func TestOnePersonChangesNothingThatBuyersMindAfterTheApproval(t *testing.T) {
	t.Parallel()
	for _, status := range []sale.Status{sale.Scheduled, sale.Live} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			for _, c := range changesAfterApproval() {
				if c.before && status == sale.Live {
					continue
				}
				v := e.put(status, 10)
				was := e.state(v)
				e.must(c.make(t.Context(), e, ann, v))
				if changed := e.state(v) != was; changed != c.alone {
					t.Errorf("%s by one person: changed is %t, want %t", c.name, changed, c.alone)
				}
				if c.alone {
					continue
				}
				waiting, err := e.ops.Interventions(t.Context(), operator.InterventionList{Sale: &v.ID, States: []operator.State{operator.Requested}})
				e.must(err)
				if len(waiting) != 1 {
					t.Errorf("%s: %d requests wait for a second person", c.name, len(waiting))
					continue
				}
				in := operator.DecideInput{By: ann, Intervention: waiting[0].ID, Confirm: true}
				if _, err := e.ops.Decide(t.Context(), in); fault.ReasonOf(err) != fault.Conflict || e.state(v) != was {
					t.Errorf("%s, confirmed by the requester: %v", c.name, err)
				}
				in.By = bob
				if done, err := e.ops.Decide(t.Context(), in); err != nil || done.State != operator.Done || e.state(v) == was {
					t.Errorf("%s, confirmed by a second person: %+v, %v", c.name, done, err)
				}
			}
		})
	}
}

// terms returns the values that were changed since the approval.
func (e *env) changedTerms(v *sale.Sale) (names []string) {
	e.t.Helper()
	a, err := e.ops.Approval(e.t.Context(), v.ID)
	e.must(err)
	for _, term := range a.Terms {
		if term.Changed() {
			names = append(names, term.Name+": "+*term.Approved+" → "+*term.Now)
		}
	}
	return names
}

func TestWhatWasApprovedIsKeptBesideWhatIsNow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Approved, 10)
		if got := e.changedTerms(v); got != nil {
			t.Errorf("right after the approval: %q", got)
		}
		_, err := e.second(e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Title: ptr("Winter")}))
		e.must(err)
		asked, err := e.ops.UpdateGoods(t.Context(), ann, v.Items[0].Goods.ID, operator.GoodsPatch{ListPrice: ptr(price(999_900))})
		e.must(err)
		_, err = e.ops.Decide(t.Context(), operator.DecideInput{By: bob, Intervention: asked.Intervention.ID, Confirm: true})
		e.must(err)
		if act, _ := e.adjust(v, 3); act == nil || act.State != operator.Done {
			t.Errorf("%+v", act)
		}
		want := []string{"title: Autumn → Winter", "listPrice: 99.00 → 9999.00", "stock: 10 → 13"}
		if got := e.changedTerms(v); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		a, err := e.ops.Approval(t.Context(), v.ID)
		if err != nil || a.By != carla.ID || a.Terms[0].Name != "title" || *a.Terms[0].Approved != "Autumn" {
			t.Errorf("%+v, %v", a, err)
		}
		lines, err := e.sales.Log(t.Context(), v.ID, 50)
		e.must(err)
		at := slices.IndexFunc(lines, func(l sale.LogLine) bool { return l.Act == sale.ActApprove })
		if at < 0 || !strings.Contains(lines[at].Details, a.Hash) {
			t.Errorf("the log has no hash of what was approved: %+v", lines)
		}
	})
}

func TestWhatWasApprovedIsNeverChanged(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Approved, 10)
	for _, statement := range []string{"UPDATE sale_approvals SET terms = '{}' WHERE id = $1", "DELETE FROM sale_approvals WHERE id = $1"} {
		if _, err := e.db.SQL.ExecContext(t.Context(), statement, v.ID); err == nil {
			t.Errorf("%s succeeds", statement)
		}
	}
}

// The second person confirms what the request says, not what came after it.
func TestAConfirmedChangeIsWhatWasRequested(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		first, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Rules: ptr("One each.")})
		e.must(err)
		again, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Rules: ptr("One each.")})
		e.must(err)
		if again.Intervention.ID != first.Intervention.ID {
			t.Error("the same request again is another one")
		}
		_, err = e.second(e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Rules: ptr("Two each.")}))
		e.must(err)
		now, err := e.ops.Decide(t.Context(), operator.DecideInput{By: bob, Intervention: first.Intervention.ID, Confirm: true})
		if fault.ReasonOf(err) != fault.Conflict || now.State != operator.Refused || e.read(v.ID).Rules != "Two each." {
			t.Errorf("%+v, %v", now, err)
		}
		got := first.Intervention.Changes()
		if len(got) != 1 || got[0].Name != "rules" || got[0].To != "One each." {
			t.Errorf("the request shows %+v", got)
		}
	})
}

// A product that a sale offers is approved with it: also while the sale waits, and with each
// of its sales.
func TestAProductChangesAloneWhileNoSaleThatWasApprovedOffersIt(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for status, free := range map[sale.Status]bool{
		sale.Draft: true, sale.Rejected: true, sale.PendingApproval: false, sale.Approved: false, sale.Ended: true, sale.Cancelled: true,
	} {
		v := e.put(status, 10)
		got, err := e.ops.UpdateGoods(t.Context(), bob, v.Items[0].Goods.ID, operator.GoodsPatch{Name: ptr("Pot")})
		e.must(err)
		if (got.Name == "Pot") != free || (got.Intervention == nil) != free {
			t.Errorf("%s: %+v", status, got)
		}
	}
}

func TestAProductChangeIsInTheLogOfEachSaleThatOffersIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		d := e.draft(5)
		d.Items[0].Goods = v.Items[0].Goods.ID
		other, err := e.ops.CreateSale(t.Context(), ann, d)
		e.must(err)
		asked, err := e.ops.UpdateGoods(t.Context(), ann, v.Items[0].Goods.ID, operator.GoodsPatch{Name: ptr("Pot"), Note: "as on the box"})
		e.must(err)
		_, err = e.ops.Decide(t.Context(), operator.DecideInput{By: bob, Intervention: asked.Intervention.ID, Confirm: true})
		e.must(err)
		for _, of := range []*sale.Sale{v, other} {
			lines, err := e.sales.Log(t.Context(), of.ID, 1)
			e.must(err)
			if l := lines[0]; l.Act != sale.ActGoods || *l.Actor != bob.ID || l.Note != "as on the box" || !strings.Contains(l.Details, `"name":"Pot"`) ||
				!strings.Contains(l.Details, v.Items[0].Goods.ID.Public()) || !strings.Contains(l.Details, ann.ID.Public()) {
				t.Errorf("%s has %+v", of.Status, l)
			}
		}
		snap, err := e.catalog.Snapshot(t.Context())
		e.must(err)
		if !snap.Sale(v.ID).PreparedBy(bob.ID) {
			t.Error("who confirmed the change may buy")
		}
	})
}

// Two pictures in their addresses begin alike.
func TestAnotherPictureInItsAddressIsAChange(t *testing.T) {
	t.Parallel()
	e := setup(t)
	begin := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 40)
	first, second := ptr(begin+"AAAA"), ptr(begin+"BBBB")
	g, err := e.ops.CreateGoods(t.Context(), ann, operator.GoodsDraft{Name: "Kettle", ListPrice: price(9900), ImageURL: first})
	e.must(err)
	got, err := e.ops.UpdateGoods(t.Context(), ann, g.ID, operator.GoodsPatch{ImageURL: &second})
	if err != nil || *got.ImageURL != *second {
		t.Errorf("%+v, %v", got, err)
	}
}
