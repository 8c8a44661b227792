package operator_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/staff/operator"
)

// wantWindow compares the times of a sale's gate in Redis.
func (e *env) wantWindow(v *sale.Sale, opens, closes time.Time) {
	e.t.Helper()
	g := e.gate(v)
	if want := strconv.FormatInt(opens.UnixMilli(), 10); g["opens"] != want {
		e.t.Errorf("the gate opens at %s, want %s", g["opens"], want)
	}
	if want := strconv.FormatInt(closes.UnixMilli(), 10); g["closes"] != want {
		e.t.Errorf("the gate closes at %s, want %s", g["closes"], want)
	}
}

// wantChange compares the newest line of a sale's log: one field, its value now and before.
func (e *env) wantChange(v *sale.Sale, act sale.Act, field, now, before string) {
	e.t.Helper()
	lines, err := e.ops.Timeline(e.t.Context(), v.ID)
	e.must(err)
	var d map[string]any
	e.must(json.Unmarshal([]byte(lines[0].Details), &d))
	old, _ := d["before"].(map[string]any)
	if lines[0].Act != act || d[field] != now || old[field] != before {
		e.t.Errorf("the log has %s %s, want %s of %s from %s to %s", lines[0].Act, lines[0].Details, act, field, before, now)
	}
}

func logged(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func TestALoadedSaleIsRescheduledBeforeItsOpening(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Preheated, 5)
		opens, closes := v.StartsAt.Add(3*time.Hour), v.EndsAt.Add(4*time.Hour)
		got, err := e.second(e.ops.Schedule(t.Context(), operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: &opens, EndsAt: &closes, Note: "the lorry is late"}))
		if err != nil || got.Status != sale.Preheated || !got.StartsAt.Equal(opens) || !got.EndsAt.Equal(closes) {
			t.Fatalf("%+v, %v", got, err)
		}
		e.wantWindow(v, opens, closes)
		e.wantChange(v, sale.ActSchedule, "startsAt", logged(opens), logged(v.StartsAt))
		e.clock.Advance(v.StartsAt.Sub(e.clock.Now()) + time.Minute)
		e.step()
		if now := e.read(v.ID); now.Status != sale.Preheated || now.Epoch != v.Epoch {
			t.Errorf("after the former start the sale is %s at epoch %d", now.Status, now.Epoch)
		}
		e.clock.Advance(opens.Sub(e.clock.Now()) - 20*time.Second)
		late := opens.Add(time.Hour)
		if _, err := e.ops.Schedule(t.Context(), operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: &late}); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("20 s before the opening: %v, want CONFLICT", err)
		}
		e.clock.Advance(21 * time.Second)
		e.step()
		if now := e.read(v.ID); now.Status != sale.Live {
			t.Errorf("after its start the sale is %s", now.Status)
		}
		if _, err := e.ops.Schedule(t.Context(), operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: &late}); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("a live sale is rescheduled: %v", err)
		}
	})
}

func TestAPausedSaleIsRescheduledBeforeItsOpening(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Preheated, 5)
	in := operator.ActInput{By: ann, Sale: v.ID, Note: "wait"}
	if _, err := e.ops.Pause(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	opens, closes := v.StartsAt.Add(time.Hour), v.EndsAt.Add(time.Hour)
	got, err := e.second(e.ops.Schedule(t.Context(), operator.ScheduleInput{By: ann, Sale: v.ID, StartsAt: &opens, EndsAt: &closes}))
	if err != nil || got.Status != sale.Paused {
		t.Fatalf("%+v, %v", got, err)
	}
	e.wantWindow(v, opens, closes)
	if g := e.gate(v)["gate"]; g != "paused" {
		t.Errorf("the gate is %s", g)
	}
}

func TestTheSchedulerGivesAGateTheTimesOfItsSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Preheated, 5)
		// The process of the operator crashed after the commit.
		opens, closes := v.StartsAt.Add(time.Hour), v.EndsAt.Add(time.Hour)
		e.must(e.db.Ent.Sale.UpdateOneID(v.ID).SetStartsAt(opens).SetEndsAt(closes).AddRevision(1).Exec(t.Context()))
		e.step()
		e.wantWindow(v, opens, closes)
	})
}

func TestTitleAndRulesOfAnApprovedSaleChangeAtAnyTime(t *testing.T) {
	t.Parallel()
	e := setup(t)
	title, rules, window := "Winter", "Two each.", time.Hour
	for _, status := range []sale.Status{sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused, sale.Ended} {
		v := e.put(status, 5)
		same := v.HideExactStock
		got, err := e.second(e.ops.UpdateSale(t.Context(), bob, v.ID, operator.SalePatch{Title: &title, Rules: &rules, HideExactStock: &same, Note: "a typing error"}))
		if err != nil || got.Status != status || got.Title != title || got.Rules != rules || got.Slug != v.Slug || got.Revision != v.Revision+1 {
			t.Errorf("%s: %+v, %v", status, got, err)
			continue
		}
		e.wantChange(v, sale.ActDescribe, "title", title, v.Title)
		if _, err := e.ops.UpdateSale(t.Context(), bob, v.ID, operator.SalePatch{Title: &title, PaymentWindow: &window}); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("the payment window of a sale that is %s: %v, want CONFLICT", status, err)
		}
		long := string(make([]byte, 200))
		if _, err := e.ops.UpdateSale(t.Context(), bob, v.ID, operator.SalePatch{Title: &long}); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("a title of 200 zero characters: %v", err)
		}
	}
	waiting := e.put(sale.PendingApproval, 5)
	if _, err := e.ops.UpdateSale(t.Context(), bob, waiting.ID, operator.SalePatch{Title: &title}); fault.ReasonOf(err) != fault.Conflict {
		t.Errorf("a sale changes while it waits for approval: %v", err)
	}
}

func TestTheLogHasTheValuesBeforeAChange(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Draft, 5)
	title, kinds := "Winter", []string{"MATH"}
	if _, err := e.ops.UpdateSale(t.Context(), ann, v.ID, operator.SalePatch{Title: &title}); err != nil {
		t.Fatal(err)
	}
	e.wantChange(v, sale.ActUpdate, "title", title, "Autumn")
	burst := 7
	if _, err := e.ops.SetSwitches(t.Context(), operator.ActInput{By: ann, Sale: v.ID}, operator.SwitchesPatch{LimitBurst: &burst, CaptchaKinds: kinds}); err != nil {
		t.Fatal(err)
	}
	lines, err := e.ops.Timeline(t.Context(), v.ID)
	e.must(err)
	var d struct {
		LimitBurst int
		Before     map[string]any
	}
	e.must(json.Unmarshal([]byte(lines[0].Details), &d))
	if d.LimitBurst != 7 || d.Before["limitBurst"] != 0.0 || len(d.Before) != 2 {
		t.Errorf("the switches in the log: %s", lines[0].Details)
	}
}

func TestACopyHasTheSwitchesOfItsSale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Ended, 5)
		burst, captcha, ratio := 7, false, 3.0
		e.must(e.db.Ent.Sale.UpdateOneID(v.ID).SetLimitBurst(burst).SetCaptchaRequired(captcha).SetPermitPerMille(int(ratio * 1000)).
			SetCaptchaKinds("MATH").SetPowMax(100_000).SetInflowPerSecond(9).SetLimitPerSecond(0.5).Exec(t.Context()))
		v = e.read(v.ID)
		starts := e.clock.Now().Add(time.Hour)
		made, err := e.ops.CopySale(t.Context(), bob, operator.CopyInput{Sale: v.ID, StartsAt: starts, EndsAt: starts.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		is, _ := json.Marshal(made.Switches) // of numbers and texts
		was, _ := json.Marshal(v.Switches)   // as above
		if string(is) != string(was) {
			t.Errorf("the copy has %s, want %s", is, was)
		}
	})
}

func (e *env) extend(v *sale.Sale, by sale.Actor, ends time.Time) (operator.Changed, error) {
	e.t.Helper()
	return e.ops.Extend(e.t.Context(), operator.ExtendInput{By: by, Sale: v.ID, EndsAt: ends, Note: "many are still buying"})
}

func TestALiveSaleIsExtendedByOnePersonUpToABoundAndByTwoBeyondIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 5)
		first := v.EndsAt.Add(operator.DefaultTwoPersonExtension)
		got, err := e.extend(v, ann, first)
		if err != nil || got.Intervention.State != operator.Done || !got.Sale.EndsAt.Equal(first) {
			t.Fatalf("%+v, %v", got, err)
		}
		e.wantWindow(v, v.StartsAt, first)
		e.wantChange(v, sale.ActExtend, "endsAt", logged(first), logged(v.EndsAt))
		if again, err := e.extend(v, ann, first); err != nil || again.Sale.Revision != got.Sale.Revision {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		second := first.Add(time.Minute)
		asked, err := e.extend(v, ann, second)
		if err != nil || asked.Intervention == nil || asked.Intervention.State != operator.Requested {
			t.Fatalf("beyond the bound: %+v, %v", asked, err)
		}
		if again, err := e.extend(v, ann, second); err != nil || again.Intervention.ID != asked.Intervention.ID {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		e.wantWindow(v, v.StartsAt, first)
		confirm := operator.DecideInput{By: ann, Intervention: asked.Intervention.ID, Confirm: true, Note: "right"}
		if _, err := e.ops.Decide(t.Context(), confirm); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("confirmed by who asked: %v", err)
		}
		confirm.By = bob
		if done, err := e.ops.Decide(t.Context(), confirm); err != nil || done.State != operator.Done {
			t.Fatalf("confirmed by a second person: %+v, %v", done, err)
		}
		e.wantWindow(v, v.StartsAt, second)
		e.wantChange(v, sale.ActExtend, "endsAt", logged(second), logged(first))
		e.clock.Advance(v.EndsAt.Sub(e.clock.Now()) + time.Minute)
		e.step()
		if now := e.read(v.ID); now.Status != sale.Live {
			t.Errorf("after its former end the sale is %s", now.Status)
		}
		e.must(e.pre.Load(t.Context(), v.ID))
		e.wantWindow(v, v.StartsAt, second)
		e.clock.Advance(second.Sub(e.clock.Now()))
		if _, err := e.extend(v, ann, second.Add(time.Minute)); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("a sale whose end has passed is extended: %v", err)
		}
		e.step()
		if now := e.read(v.ID); now.Status != sale.Ended {
			t.Errorf("after its end the sale is %s", now.Status)
		}
	})
}

func TestRequestsOfASaleThatEndedAreRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 5)
		asked, err := e.extend(v, ann, v.EndsAt.Add(time.Hour))
		e.must(err)
		more, err := e.ops.AdjustStock(t.Context(), operator.AdjustInput{By: ann, Item: v.Items[0].ID, Units: 1000, Note: "a delivery"})
		e.must(err)
		count := func() int {
			waiting, err := e.ops.AwaitingSecond(t.Context())
			e.must(err)
			return len(waiting)
		}
		if _, err := e.ops.Step(t.Context()); err != nil || count() != 2 {
			t.Fatalf("%d requests wait while the sale is live, %v", count(), err)
		}
		if _, err := e.ops.End(t.Context(), operator.ActInput{By: carla, Sale: v.ID, Note: "enough"}); err != nil {
			t.Fatal(err)
		}
		if counts, err := e.ops.Step(t.Context()); err != nil || counts[string(operator.Refused)] != 2 || count() != 0 {
			t.Errorf("%v, %d requests still wait, %v", counts, count(), err)
		}
		for _, in := range []*operator.Intervention{asked.Intervention, more} {
			if now, err := e.ops.Intervention(t.Context(), in.ID); err != nil || now.State != operator.Refused {
				t.Errorf("%s is %+v, %v", in.Kind, now, err)
			}
		}
	})
}

func TestAnExtensionEndsLaterAndWithinSevenDays(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 5)
	for name, ends := range map[string]time.Time{"earlier": v.EndsAt.Add(-time.Minute), "in eight days": v.EndsAt.Add(8 * 24 * time.Hour)} {
		if _, err := e.extend(v, ann, ends); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%s: %v, want INVALID_INPUT", name, err)
		}
	}
	if _, err := e.extend(v, buyer, v.EndsAt.Add(time.Minute)); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("by a customer: %v", err)
	}
	if _, err := e.extend(e.put(sale.Scheduled, 5), ann, e.clock.Now().Add(5*time.Hour)); fault.ReasonOf(err) != fault.Conflict {
		t.Errorf("of a sale that is not loaded: %v", err)
	}
}
