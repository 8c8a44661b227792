package operator_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/staff/operator"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestASaleGoesThroughItsWholeLife(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		in := operator.ActInput{By: ann, Sale: v.ID, Note: "a look at the stock"}
		held, err := e.ops.Pause(t.Context(), in)
		if err != nil || held.Status != sale.Paused || held.Notice != in.Note {
			t.Fatalf("pause: %+v %v", held, err)
		}
		if g := e.gate(v); g["gate"] != reservation.GatePaused {
			t.Errorf("the gate of a held sale: %v", g)
		}
		if seen, err := e.catalog.Snapshot(t.Context()); err != nil || seen.Sale(v.ID).Status != sale.Paused {
			t.Errorf("the catalogue does not show it at once: %v", err)
		}
		on, err := e.ops.Resume(t.Context(), in)
		if err != nil || on.Status != sale.Live || on.Notice != "" {
			t.Fatalf("resume: %+v %v", on, err)
		}
		if g := e.gate(v); g["gate"] != reservation.GateOpen {
			t.Errorf("the gate of a sale that goes on: %v", g)
		}
		over, err := e.ops.End(t.Context(), operator.ActInput{By: carla, Sale: v.ID, Note: "enough"})
		if err != nil || over.Status != sale.Ended || over.Notice != "enough" {
			t.Fatalf("end: %+v %v", over, err)
		}
		if g := e.gate(v); g["gate"] != reservation.GateEnded {
			t.Errorf("the gate of a sale that is over: %v", g)
		}
		e.wantLog(v, sale.ActCreate, sale.ActSubmit, sale.ActApprove, sale.ActSchedule, sale.ActPreheat, sale.ActOpen,
			sale.ActPause, sale.ActResume, sale.ActEnd)
	})
}

func (e *env) wantLog(v *sale.Sale, want ...sale.Act) {
	e.t.Helper()
	lines, err := e.sales.Log(e.t.Context(), v.ID, 100)
	e.must(err)
	if len(lines) != len(want) {
		e.t.Fatalf("%d lines in the log, want %d: %+v", len(lines), len(want), lines)
	}
	for i, act := range want {
		l := lines[len(lines)-1-i]
		if l.Act != act || l.Revision != int64(i+1) || l.At.IsZero() || (l.Actor == nil) != (act == sale.ActOpen) {
			e.t.Errorf("line %d is %+v, want %s", i, l, act)
		}
	}
}

func TestASaleIsCalledOffBeforeItBeginsAndEndedAfter(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for status, want := range map[sale.Status]sale.Status{
		sale.Draft: sale.Cancelled, sale.PendingApproval: sale.Cancelled, sale.Rejected: sale.Cancelled, sale.Approved: sale.Cancelled,
		sale.Scheduled: sale.Cancelled, sale.Preheated: sale.Cancelled, sale.Live: sale.Ended, sale.Paused: sale.Ended,
	} {
		v := e.put(status, 5)
		got, err := e.ops.End(t.Context(), operator.ActInput{By: carla, Sale: v.ID, Note: "no"})
		if err != nil || got.Status != want {
			t.Errorf("end of %s: %v %v", status, got.Status, err)
			continue
		}
		if loaded := status.Loaded(); loaded == (got.SettledAt != nil) || (loaded && e.gate(v)["gate"] != reservation.GateEnded) {
			t.Errorf("end of %s: settled at %v, gate %v", status, got.SettledAt, e.gate(v))
		}
	}
}

// The change is recorded, and the operator learns that the gates may still sell.
func TestAnActThatStopsASaleWhoseGatesCannotBeReachedIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, act := range map[sale.Status]func(e *env, in operator.ActInput) (*sale.Sale, error){
		sale.Paused: func(e *env, in operator.ActInput) (*sale.Sale, error) { return e.ops.Pause(e.t.Context(), in) },
		sale.Ended:  func(e *env, in operator.ActInput) (*sale.Sale, error) { return e.ops.End(e.t.Context(), in) },
	} {
		server := testenv.RedisServer(t)
		e := newEnv(t, testdb.Postgres(t), server.ShortConn(), "t:")
		v := e.put(sale.Live, 5)
		server.Kill()
		if _, err := act(e, operator.ActInput{By: carla, Sale: v.ID, Note: "stop"}); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		if now := e.read(v.ID).Status; now != name {
			t.Errorf("%s: the record says %s", name, now)
		}
		server.Restart()
		testenv.Eventually(t, testenv.Wait, func() bool {
			_, err := e.pre.Step(t.Context())
			return err == nil && e.gate(v)["gate"] != reservation.GateOpen
		}, "the scheduler stops the gate")
	}
}

func TestASaleHeldBeforeItsOpeningGoesOnWaiting(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Preheated, 5)
	in := operator.ActInput{By: ann, Sale: v.ID, Note: "wait"}
	if _, err := e.ops.Pause(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if on, err := e.ops.Resume(t.Context(), in); err != nil || on.Status != sale.Preheated {
		t.Fatalf("resume before the opening: %+v %v", on, err)
	}
}

// acts returns the operations on a sale, each with its input.
func (e *env) acts(v *sale.Sale, by sale.Actor) map[sale.Act]func() error {
	ctx, in := e.t.Context(), operator.ActInput{By: by, Sale: v.ID, Note: "because"}
	only := func(_ *sale.Sale, err error) error { return err }
	changed := func(_ operator.Changed, err error) error { return err }
	color, hard, early := "#0b5fff", 300_000, v.StartsAt.Add(-9*time.Minute)
	return map[sale.Act]func() error{
		sale.ActUpdate: func() error {
			return changed(e.ops.UpdateSale(ctx, by, v.ID, operator.SalePatch{Accent: &color}))
		},
		sale.ActSubmit:   func() error { return only(e.ops.Submit(ctx, in)) },
		sale.ActApprove:  func() error { return only(e.ops.Approve(ctx, in)) },
		sale.ActReject:   func() error { return only(e.ops.Reject(ctx, in)) },
		sale.ActWithdraw: func() error { return only(e.ops.Withdraw(ctx, in)) },
		sale.ActSchedule: func() error {
			return changed(e.ops.Schedule(ctx, operator.ScheduleInput{By: by, Sale: v.ID, PreheatAt: &early}))
		},
		sale.ActPreheat: func() error { return only(e.ops.Preheat(ctx, in)) },
		sale.ActPause:   func() error { return only(e.ops.Pause(ctx, in)) },
		sale.ActResume:  func() error { return only(e.ops.Resume(ctx, in)) },
		sale.ActEnd:     func() error { return only(e.ops.End(ctx, in)) },
		sale.ActSwitch: func() error {
			return changed(e.ops.SetSwitches(ctx, in, operator.SwitchesPatch{PowMax: &hard}))
		},
		sale.ActCodes: func() error {
			_, err := e.ops.CreateCodes(ctx, operator.CodesInput{ActInput: in, Source: "press", Codes: 2, Uses: 1})
			return err
		},
		sale.ActAdjust: func() error {
			_, err := e.ops.AdjustStock(ctx, operator.AdjustInput{By: by, Item: v.Items[0].ID, Units: 1, Note: "more"})
			return err
		},
	}
}

// fits lists the statuses in which each operation is allowed, apart from the role.
var fits = map[sale.Act][]sale.Status{
	sale.ActUpdate: { // of sales that were approved, title and rules
		sale.Draft, sale.Rejected, sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused, sale.Ended,
	},
	sale.ActSubmit:  {sale.Draft},
	sale.ActApprove: {sale.PendingApproval}, sale.ActReject: {sale.PendingApproval}, sale.ActWithdraw: {sale.PendingApproval},
	sale.ActSchedule: {sale.Approved, sale.Scheduled, sale.Preheated},
	sale.ActPreheat:  {sale.Scheduled, sale.Preheated, sale.Live, sale.Paused}, // repeating it changes nothing
	sale.ActPause:    {sale.Preheated, sale.Live}, sale.ActResume: {sale.Paused},
	sale.ActEnd: {
		sale.Draft, sale.PendingApproval, sale.Rejected, sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused,
	},
	sale.ActSwitch: {
		sale.Draft, sale.PendingApproval, sale.Rejected, sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused,
	},
	sale.ActCodes: {
		sale.Draft, sale.PendingApproval, sale.Rejected, sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused,
	},
	sale.ActAdjust: {sale.Approved, sale.Scheduled, sale.Preheated, sale.Live, sale.Paused},
}

var needsAdmin = map[sale.Act]bool{sale.ActApprove: true, sale.ActReject: true, sale.ActEnd: true}

// Every operation, in every status, by every role: 600 attempts.
func TestEveryActInEveryStatusByEveryRole(t *testing.T) {
	t.Parallel()
	for _, status := range sale.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			v := e.put(status, 5)
			for act := range fits {
				for name, by := range map[string]sale.Actor{"customer": buyer, "operator": bob, "admin": dora, "author": ann, "anonymous": anonymous} {
					before := v.Revision
					err := e.acts(v, by)[act]()
					after := e.read(v.ID).Revision
					allowed := by.Role.AtLeast(roleOf(act))
					fit := contains(fits[act], status)
					switch {
					case name == "anonymous" && fault.CodeOf(err) != fault.Unauthenticated,
						name != "anonymous" && !allowed && fault.CodeOf(err) != fault.Forbidden:
						t.Errorf("%s by %s: %v", act, name, err)
					case allowed && !fit && (fault.ReasonOf(err) != fault.Conflict):
						t.Errorf("%s by %s: %v, want a conflict", act, name, err)
					case allowed && fit && (err != nil):
						t.Errorf("%s by %s: %v, want it done", act, name, err)
					}
					again := act == sale.ActPreheat && status != sale.Scheduled
					if changed := after > before; changed != (allowed && fit && !again) {
						t.Errorf("%s by %s: revision %d → %d", act, name, before, after)
					}
					if after != before {
						v = e.put(status, 5)
					}
				}
			}
		})
	}
}

func roleOf(act sale.Act) auth.Role {
	if needsAdmin[act] {
		return carla.Role
	}
	return ann.Role
}

func contains(list []sale.Status, s sale.Status) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

func TestASaleWhoseStartHasPassedIsNotApproved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.PendingApproval, 5)
		e.clock.Advance(v.StartsAt.Sub(e.clock.Now()))
		got, err := e.ops.Approve(t.Context(), operator.ActInput{By: carla, Sale: v.ID})
		if bad, ok := errors.AsType[fault.BadField](err); !ok || bad.Rule != fault.StartInTheFuture {
			t.Errorf("%+v, %v; want that its start has passed", got, err)
		}
		if now := e.read(v.ID); now.Status != sale.PendingApproval {
			t.Errorf("the sale is %s", now.Status)
		}
	})
}

func TestAnAuthorCannotApproveTheirOwnSale(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v, err := e.ops.CreateSale(t.Context(), carla, e.draft(5))
	if err != nil {
		t.Fatal(err)
	}
	rules := "one each"
	if _, err := e.ops.UpdateSale(t.Context(), dora, v.ID, operator.SalePatch{Rules: &rules}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ops.Submit(t.Context(), operator.ActInput{By: ann, Sale: v.ID}); err != nil {
		t.Fatal(err)
	}
	for who, by := range map[string]sale.Actor{"its maker": carla, "its editor": dora} {
		if got, err := e.ops.Approve(t.Context(), operator.ActInput{By: by, Sale: v.ID}); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("approved by %s: %+v %v", who, got, err)
		} else if _, ok := errors.AsType[operator.SelfApproval](err); !ok {
			t.Errorf("%s does not learn why: %v", who, err)
		}
	}
	other := sale.Actor{ID: id.New[id.User](), Role: carla.Role}
	if got, err := e.ops.Approve(t.Context(), operator.ActInput{By: other, Sale: v.ID}); err != nil || got.Status != sale.Approved {
		t.Errorf("approved by another: %+v %v", got, err)
	}
}

func TestAnUnknownSaleIsReported(t *testing.T) {
	t.Parallel()
	e := setup(t)
	ghost := &sale.Sale{ID: id.New[id.Sale](), Items: []*sale.Item{{ID: id.New[id.Item]()}}}
	for act, try := range e.acts(ghost, carla) {
		if err := try(); fault.ReasonOf(err) != fault.Unknown {
			t.Errorf("%s: %v", act, err)
		}
	}
}

// Many operators act at once, in several processes: each operation happens once.
func TestOfManyOperatorsAtOnceOneWins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 5)
		other := operator.New(e.config(nil))
		for round := range 5 {
			var wg sync.WaitGroup
			var mu sync.Mutex
			done := map[sale.Status]int{}
			for i := range 12 {
				ops := e.ops
				if i%2 == 0 {
					ops = other
				}
				wg.Go(func() {
					in := operator.ActInput{By: ann, Sale: v.ID, Note: "now"}
					act := ops.Pause
					if round%2 == 1 {
						act = ops.Resume
					}
					got, err := act(context.Background(), in)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						done[got.Status]++
					} else if fault.ReasonOf(err) != fault.Conflict {
						t.Errorf("refused: %v", err)
					}
				})
			}
			wg.Wait()
			want, gate := sale.Paused, reservation.GatePaused
			if round%2 == 1 {
				want, gate = sale.Live, reservation.GateOpen
			}
			if len(done) != 1 || done[want] != 1 || e.gate(v)["gate"] != gate {
				t.Errorf("round %d: %v, gate %v", round, done, e.gate(v)["gate"])
			}
		}
	})
}
