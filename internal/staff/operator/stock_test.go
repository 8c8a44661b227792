package operator_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/ent/intervention"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/staff/operator"
	"seckill/internal/testenv"
)

func (e *env) adjust(v *sale.Sale, units int) (*operator.Intervention, fault.Refusal) {
	e.t.Helper()
	act, err := e.ops.AdjustStock(e.t.Context(), operator.AdjustInput{By: ann, Item: v.Items[0].ID, Units: units, Note: "because"})
	if err == nil && units < 0 && act.State == operator.Requested {
		return e.confirm(act)
	}
	return act, testenv.Refusal(e.t, err)
}

// ask requests a removal that a second person has to confirm.
func (e *env) ask(v *sale.Sale, units int) *operator.Intervention {
	e.t.Helper()
	act, err := e.ops.AdjustStock(e.t.Context(), operator.AdjustInput{By: ann, Item: v.Items[0].ID, Units: units, Note: "because"})
	e.must(err)
	return act
}

func (e *env) confirm(act *operator.Intervention) (*operator.Intervention, fault.Refusal) {
	e.t.Helper()
	act, err := e.ops.Decide(e.t.Context(), operator.DecideInput{By: bob, Intervention: act.ID, Confirm: true})
	return act, testenv.Refusal(e.t, err)
}

func (e *env) wantState(act *operator.Intervention, want operator.State) {
	e.t.Helper()
	now, err := e.ops.Intervention(e.t.Context(), act.ID)
	e.must(err)
	if now.State != want {
		e.t.Errorf("the intervention is %s, want %s", now.State, want)
	}
}

// finish runs the loop that continues interrupted interventions.
func (e *env) finish() map[string]int {
	e.t.Helper()
	e.clock.Advance(3 * time.Second)
	counts, err := e.ops.Step(e.t.Context())
	e.must(err)
	return counts
}

func TestStockIsAddedAndTakenBeforeAndDuringASale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		waits := e.put(sale.Scheduled, 10)
		if act, refusal := e.adjust(waits, 5); refusal != nil || act.State != operator.Done {
			t.Errorf("added before loading: %+v %+v", act, refusal)
		}
		if act, refusal := e.adjust(waits, -12); refusal != nil || act.State != operator.Done {
			t.Errorf("taken before loading: %+v %+v", act, refusal)
		}
		if _, refusal := e.adjust(waits, -4); fault.ReasonOf(refusal) != fault.Conflict {
			t.Errorf("four of three: %+v", refusal)
		}
		e.want(waits, figures{total: 3, available: 3})

		live := e.put(sale.Live, 10)
		e.order(live)
		if act, refusal := e.adjust(live, 7); refusal != nil || act.State != operator.Done {
			t.Errorf("added to a live sale: %+v %+v", act, refusal)
		}
		e.want(live, figures{total: 17, available: 16, held: 1, gateTotal: 17, stock: 16, reserved: 1})
		if act, refusal := e.adjust(live, -16); refusal != nil || act.State != operator.Done {
			t.Errorf("taken from a live sale: %+v %+v", act, refusal)
		}
		act, refusal := e.adjust(live, -1)
		if _, ok := errors.AsType[operator.TooFew](refusal); !ok || fault.ReasonOf(refusal) != fault.Conflict || act != nil {
			t.Errorf("the unit that is held: %+v %+v", act, refusal)
		}
		e.want(live, figures{total: 1, available: 0, held: 1, gateTotal: 1, stock: 0, reserved: 1})
		if n := e.movements(live); n != 2 {
			t.Errorf("%d lines of the ledger, want 2", n)
		}
	})
}

func TestARemovalIsRefusedWhenItsUnitsWereSoldBeforeTheConfirmation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 1)
		asked := e.ask(v, -1)
		e.order(v)
		act, refusal := e.confirm(asked)
		if _, ok := errors.AsType[operator.TooFew](refusal); !ok || act.State != operator.Refused {
			t.Errorf("%+v %+v", act, refusal)
		}
		e.want(v, figures{total: 1, held: 1, gateTotal: 1, reserved: 1})
	})
}

func (e *env) movements(v *sale.Sale) int {
	e.t.Helper()
	n, err := e.db.Ent.StockMovement.Query().
		Where(stockmovement.ItemID(v.Items[0].ID), stockmovement.KindEQ(stockmovement.KindADJUST)).Count(e.t.Context())
	e.must(err)
	return n
}

func TestAdjustmentsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	for name, in := range map[string]operator.AdjustInput{
		"nothing":   {By: ann, Item: v.Items[0].ID, Note: "x"},
		"no reason": {By: ann, Item: v.Items[0].ID, Units: 1, Note: "  "},
		"too many":  {By: ann, Item: v.Items[0].ID, Units: 10_000_001, Note: "x"},
		"long note": {By: ann, Item: v.Items[0].ID, Units: 1, Note: strings.Repeat("好", 201)},
	} {
		if _, err := e.ops.AdjustStock(t.Context(), in); fault.ReasonOf(err) != fault.InvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := operator.AdjustInput{By: ann, Item: id.Item(uuid.New()), Units: 1, Note: strings.Repeat("好", 200)}
	if _, err := e.ops.AdjustStock(t.Context(), in); fault.ReasonOf(err) != fault.Unknown {
		t.Errorf("unknown item: %v", err)
	}
	e.want(v, figures{total: 10, available: 10, gateTotal: 10, stock: 10})
}

func TestTheSameKeyIsTheSameAct(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	in := operator.AdjustInput{By: ann, Item: v.Items[0].ID, Units: 3, Note: "more", Key: "press-of-the-button-1"}
	var first *operator.Intervention
	for i := range 3 {
		act, err := e.ops.AdjustStock(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = act
		}
		if act.ID != first.ID || act.State != operator.Done {
			t.Errorf("call %d: %+v", i, act)
		}
	}
	in.Units = 4
	if _, err := e.ops.AdjustStock(t.Context(), in); fault.ReasonOf(err) != fault.IdempotencyMismatch {
		t.Errorf("the key with other input: %v", err)
	}
	e.want(v, figures{total: 13, available: 13, gateTotal: 13, stock: 13})
}

func TestManyUnitsNeedTwoPersons(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *env) {
		v := e.put(sale.Live, 10)
		act, refusal := e.adjust(v, operator.DefaultTwoPersonUnits+1)
		if refusal != nil || act.State != operator.Requested {
			t.Fatalf("%+v %+v", act, refusal)
		}
		unchanged := figures{total: 10, available: 10, gateTotal: 10, stock: 10}
		e.want(v, unchanged)
		decide := func(by sale.Actor, confirm bool) (*operator.Intervention, error) {
			return e.ops.Decide(t.Context(), operator.DecideInput{By: by, Intervention: act.ID, Confirm: confirm, Note: "seen"})
		}
		if _, err := decide(ann, true); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("confirmed by the same person: %v", err)
		}
		if _, err := decide(buyer, true); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("confirmed by a customer: %v", err)
		}
		e.want(v, unchanged)
		done, err := decide(bob, true)
		if err != nil || done.State != operator.Done || *done.DecidedBy != bob.ID || done.Decision != "seen" {
			t.Fatalf("confirmed by another: %+v %v", done, err)
		}
		e.want(v, figures{total: 111, available: 111, gateTotal: 111, stock: 111})
		if _, err := decide(dora, true); fault.ReasonOf(err) != fault.Conflict {
			t.Errorf("confirmed twice: %v", err)
		}
		act, _ = e.adjust(v, 500)
		if taken, err := decide(ann, false); err != nil || taken.State != operator.Declined {
			t.Errorf("taken back by the one who asked: %+v %v", taken, err)
		}
		e.want(v, figures{total: 111, available: 111, gateTotal: 111, stock: 111})
		open, err := e.ops.Interventions(t.Context(), operator.InterventionList{Sale: &v.ID, States: []operator.State{operator.Requested}})
		if err != nil || len(open) != 0 {
			t.Errorf("%d requests are open, error %v", len(open), err)
		}
	})
}

// flaky drops requests to Redis, or replies, depending on its mode.
type flaky struct{ mode atomic.Int32 }

const (
	works      = 0
	losesAsks  = 1 // the request does not reach Redis
	losesReply = 2 // executed, but the reply is lost
)

var errLost = &net.OpError{Op: "read", Err: errors.New("connection reset")}

func (f *flaky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flaky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *flaky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		switch f.mode.Load() {
		case losesAsks:
			cmd.SetErr(errLost)
			return errLost
		case losesReply:
			if err := next(ctx, cmd); err != nil {
				return err
			}
			cmd.SetErr(errLost)
			return errLost
		}
		return next(ctx, cmd)
	}
}

// breaking replaces the process by one whose connection to the gate can fail.
func (e *env) breaking() *flaky {
	e.t.Helper()
	conn, err := redisconn.Open(e.t.Context(), testenv.RedisURL(e.t))
	e.must(err)
	e.t.Cleanup(func() { _ = conn.Close() })
	f := &flaky{}
	conn.Script.AddHook(f)
	cfg := e.config(nil)
	cfg.Gate = reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: e.keys, Timeout: testenv.Wait})
	e.ops = operator.New(cfg)
	return f
}

func TestACrashBetweenTheTwoStoresIsMadeGood(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]int32{"nothing reached Redis": losesAsks, "the reply was lost": losesReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			v := e.put(sale.Live, 10)
			e.order(v)
			f := e.breaking()

			f.mode.Store(mode)
			more, refusal := e.adjust(v, 5)
			if refusal != nil || more.State != operator.Finishing {
				t.Fatalf("units put on sale: %+v %+v", more, refusal)
			}
			fewer, refusal := e.adjust(v, -4)
			if refusal != nil || fewer.State != operator.Taking {
				t.Fatalf("units taken off sale: %+v %+v", fewer, refusal)
			}
			if got := e.figures(v); got.total != 15 || got.available != 14 {
				t.Errorf("the record: %+v, want the added units and not yet without the taken ones", got)
			}
			f.mode.Store(works)
			if counts := e.finish(); counts["DONE"] != 2 {
				t.Errorf("finished: %v", counts)
			}
			e.want(v, figures{total: 11, available: 10, held: 1, gateTotal: 11, stock: 10, reserved: 1})
			if counts := e.finish(); len(counts) != 0 {
				t.Errorf("finished again: %v", counts)
			}
		})
	}
}

func TestAGateThatIsRebuiltInBetweenCountsEachActOnce(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]int32{"before Redis heard": losesAsks, "after Redis heard": losesReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			v := e.put(sale.Live, 10)
			f := e.breaking()
			f.mode.Store(mode)
			more, _ := e.adjust(v, 5)
			fewer, _ := e.adjust(v, -4)
			e.lose(v)
			e.step() // rebuilt from Postgres
			f.mode.Store(works)
			e.finish()
			e.wantState(more, operator.Done)
			e.wantState(fewer, operator.Done)
			e.want(v, figures{total: 11, available: 11, gateTotal: 11, stock: 11})
			e.lose(v)
			e.step()
			e.finish()
			e.want(v, figures{total: 11, available: 11, gateTotal: 11, stock: 11})
		})
	}
}

// lose deletes a sale's gate from Redis.
func (e *env) lose(v *sale.Sale) {
	e.t.Helper()
	for _, key := range e.conn.Cmd.Keys(e.t.Context(), e.keys.Prefix+"*item*").Val() {
		e.must(e.conn.Cmd.Del(e.t.Context(), key).Err())
	}
	if len(e.gate(v)) != 0 {
		e.t.Fatal("the gate is still there")
	}
}

func TestAnActWaitsForAGateThatIsNotThere(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	e.lose(v)
	more, _ := e.adjust(v, 5)
	fewer, _ := e.adjust(v, -4)
	e.wantState(more, operator.Finishing)
	e.wantState(fewer, operator.Taking)
	e.finish()
	e.wantState(more, operator.Finishing)
	e.wantState(fewer, operator.Taking)
	e.step()
	e.finish()
	e.want(v, figures{total: 11, available: 11, gateTotal: 11, stock: 11})
}

func TestUnitsGoBackToTheGateWhenTheSaleEndedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]int32{"before Redis heard": losesAsks, "after Redis heard": losesReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			v := e.put(sale.Live, 10)
			f := e.breaking()
			f.mode.Store(mode)
			fewer, _ := e.adjust(v, -4)
			if _, err := e.ops.End(t.Context(), operator.ActInput{By: carla, Sale: v.ID, Note: "over"}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.ops.Step(t.Context()); err != nil { // too recent: nothing happens
				t.Fatal(err)
			}
			e.clock.Advance(3 * time.Second)
			_, _ = e.ops.Step(t.Context()) // cannot reach the gate
			f.mode.Store(works)
			e.finish()
			e.wantState(fewer, operator.Refused)
			e.want(v, figures{total: 10, available: 10, gateTotal: 10, stock: 10})
		})
	}
}

// The process that built the gate crashed, and the sale ended before another rebuilt it.
func TestActsOnAGateThatWasNeverBuiltEndWithTheSale(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	e.must(e.db.Ent.Sale.UpdateOneID(v.ID).SetEpoch(v.Epoch + 1).Exec(t.Context()))
	if begun, err := reservation.NewGate(reservation.GateConfig{Client: e.conn.Script, Keys: e.keys, Timeout: testenv.Wait}).Begin(t.Context(), v.ID, v.Items[0].ID, v.Epoch+1); err != nil || !begun {
		t.Fatal(begun, err)
	}
	more, _ := e.adjust(v, 5)
	fewer, _ := e.adjust(v, -4)
	if _, err := e.ops.End(t.Context(), operator.ActInput{By: carla, Sale: v.ID, Note: "over"}); err != nil {
		t.Fatal(err)
	}
	e.finish()
	e.step()
	e.finish()
	e.wantState(more, operator.Done)
	e.wantState(fewer, operator.Refused)
	e.want(v, figures{total: 15, available: 15})
	e.clock.Advance(10 * time.Minute)
	e.step()
	if row := e.db.Ent.Sale.GetX(t.Context(), v.ID); row.SettledAt == nil {
		t.Error("the sale is never settled")
	}
}

func TestADriftedRecordNeverLetsGoOfHeldUnits(t *testing.T) {
	t.Parallel()
	e := setup(t)
	v := e.put(sale.Live, 10)
	asked := e.ask(v, -5)
	// Postgres has fewer available units than the gate: as after a lost gate key.
	e.must(e.db.Ent.SaleItem.UpdateOneID(v.Items[0].ID).SetAvailable(2).SetSold(8).Exec(t.Context()))
	act, refusal := e.confirm(asked)
	if fault.ReasonOf(refusal) != fault.Conflict || act.State != operator.Refused {
		t.Errorf("%+v %+v", act, refusal)
	}
	e.want(v, figures{total: 10, available: 2, sold: 8, gateTotal: 10, stock: 10})
	if n, err := e.db.Ent.Intervention.Query().Where(intervention.StateEQ(intervention.StateREFUSED)).Count(t.Context()); n != 1 || err != nil {
		t.Errorf("%d refused, error %v", n, err)
	}
}
