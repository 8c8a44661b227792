package preload_test

import (
	"strconv"
	"testing"

	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// advance puts a gate ahead of Postgres, which has lost commits that the gate has seen.
func (f *fixture) advance(t *testing.T, field string, value any) {
	t.Helper()
	f.must(t, f.redis.Cmd.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), field, value).Err())
}

func TestAGateThatIsAheadOfItsSaleIsRebuiltAboveIt(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{"epoch": "91", "srev": "2"} {
		f := loaded(t)
		f.advance(t, field, 90)
		if counts := f.step(t); counts["rebuilt"] != 1 {
			t.Errorf("%s: step: %v, want the gate rebuilt", field, counts)
		}
		f.wantGate(t, want, "10", "0")
		if srev, err := strconv.ParseInt(f.gate(t)["srev"], 10, 64); err != nil || srev != f.row(t).Revision || field == "srev" && srev <= 90 {
			t.Errorf("%s: the gate has revision %d, and the sale %d", field, srev, f.row(t).Revision)
		}
		if counts := f.step(t); counts["rebuilt"] != 0 {
			t.Errorf("%s: the next step: %v", field, counts)
		}
	}
}

func TestPausingAndEndingActOnAGateThatIsAhead(t *testing.T) {
	t.Parallel()
	for status, want := range map[entsale.Status]string{
		entsale.StatusPAUSED: reservation.GatePaused, entsale.StatusENDED: reservation.GateEnded,
	} {
		f := loaded(t)
		f.advance(t, "srev", 90)
		f.must(t, f.db.Ent.Sale.UpdateOneID(f.sale).SetStatus(status).AddRevision(1).Exec(t.Context()))
		f.must(t, f.preloader().SetState(t.Context(), f.sale))
		if g := f.gate(t); g["gate"] != want {
			t.Errorf("%s: gate %v", status, g)
		}
	}
}

func TestAGateWithAnotherTotalOrStateDiffers(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]any{"stock": 3, "total": 12, "gate": reservation.GatePaused} {
		f := loaded(t)
		differs := func() bool {
			d, err := f.preloader().Differs(t.Context(), f.sale, f.item)
			f.must(t, err)
			return d
		}
		if differs() {
			t.Errorf("%s: it differs at first", field)
		}
		f.advance(t, field, value)
		if !differs() {
			t.Errorf("%s: it does not differ", field)
		}
	}
}
