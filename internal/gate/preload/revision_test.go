package preload_test

import (
	"strconv"
	"testing"
	"time"

	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func (f *fixture) revision(t *testing.T) int {
	t.Helper()
	rev, err := strconv.Atoi(f.gate(t)["rev"])
	f.must(t, err)
	return rev
}

func TestTheStockRevisionNeverFalls(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, f *fixture){
		"rebuilt": func(t *testing.T, f *fixture) { f.setGate(t, "rev", 2201) },
		"lost": func(t *testing.T, f *fixture) {
			f.must(t, f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item)).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := loaded(t)
			f.setGate(t, "rev", 2200)
			f.step(t)
			lose(t, f)
			f.must(t, f.preloader().Load(t.Context(), f.sale))
			if rev := f.revision(t); rev <= 2201 {
				t.Errorf("revision %d after the rebuild", rev)
			}
		})
	}
}

func TestTheStockRevisionDoesNotFallWhenASaleIsSettled(t *testing.T) {
	t.Parallel()
	f := loaded(t)
	f.setGate(t, "rev", 2200)
	f.step(t)
	f.clock.Advance(2 * time.Hour)
	for range 3 {
		f.step(t)
		f.clock.Advance(11 * time.Minute)
	}
	row, err := f.db.Ent.SaleItem.Get(t.Context(), f.item)
	f.must(t, err)
	if len(f.gate(t)) != 0 || row.Revision <= 2200 {
		t.Errorf("gate %v, revision %d of the row", f.gate(t), row.Revision)
	}
}

// A copy of older data under the same run id and replication id.
func TestAGateWithOlderDataThanBeforeIsRebuilt(t *testing.T) {
	t.Parallel()
	f := loaded(t)
	before := f.revision(t)
	f.setGate(t, "rev", before+7)
	if counts := f.step(t); len(counts) != 0 {
		t.Fatalf("step: %v", counts)
	}
	f.setGate(t, "rev", before+6)
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Errorf("step: %v, want the gate rebuilt", counts)
	}
	f.wantGate(t, "2", "10", "0")
	testenv.RecordFault(t, testenv.FaultRow{Fault: "Redis with older data under the same ids"})
}

// The process that took the next epoch crashed before it began to build.
func TestPausingAndEndingActOnAGateOfAnOlderEpoch(t *testing.T) {
	t.Parallel()
	for status, want := range map[entsale.Status]string{
		entsale.StatusPAUSED: reservation.GatePaused, entsale.StatusENDED: reservation.GateEnded,
	} {
		f := loaded(t)
		f.must(t, f.db.Ent.Sale.UpdateOneID(f.sale).AddEpoch(1).SetStatus(status).AddRevision(2).Exec(t.Context()))
		f.must(t, f.preloader().SetState(t.Context(), f.sale))
		if g := f.gate(t); g["gate"] != want || g["epoch"] != "1" {
			t.Errorf("%s: gate %v", status, g)
		}
	}
}
