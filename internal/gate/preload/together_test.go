package preload_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// nextSale replaces the fixture's sale with a new one that is due at once.
func (f *fixture) nextSale(t *testing.T) {
	t.Helper()
	f.sale, f.item = id.New[id.Sale](), id.New[id.Item]()
	now := f.clock.Now()
	err := f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Sale.Create().SetID(f.sale).SetSlug(f.sale.String()).SetTitle("S").SetStatus(entsale.StatusSCHEDULED).
			SetStartsAt(now.Add(-time.Minute)).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now.Add(-time.Hour)).
			SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(now).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(f.item).SetSaleID(f.sale).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(4900).SetCurrency("CNY").SetTotal(10).SetAvailable(10).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A sale is loaded while the loops of other processes load it too, or find no gate yet
// and start a new build: when Load returns, the gate is built under the newest epoch,
// and it is still built when all are done.
func TestAGateStandsOnceItsLoadingReturns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	again := 0
	for range 30 {
		f.nextSale(t)
		done := make(chan struct{})
		var loops sync.WaitGroup
		for range 3 {
			loops.Go(func() {
				for p := f.preloader(); ; {
					if _, err := p.Step(t.Context()); err != nil {
						t.Error(err)
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		if err := f.preloader().Load(t.Context(), f.sale); err != nil {
			t.Error(err)
		}
		f.wantWhole(t)
		close(done)
		loops.Wait()
		f.wantWhole(t)
		if f.row(t).Epoch > 1 {
			again++
		}
		f.end(t)
	}
	t.Logf("30 sales loaded by four at once, %d of them more than once", again)
}

// The revision of a build that a newer one superseded is not recorded: the newer gate,
// whose revision is lower, would count as one that lost data.
func TestASupersededBuildLeavesTheNewerGate(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.meanwhile = func() {
		if err := f.preloader().Load(t.Context(), f.sale); err != nil {
			t.Error(err)
		}
	}
	if done, err := f.preloader().LoadBy(t.Context(), f.sale, sale.TheClock, ""); done || err != nil {
		t.Errorf("the superseded build: %t, %v", done, err)
	}
	if counts := f.step(t); counts["rebuilt"] != 0 || f.row(t).Epoch != 2 {
		t.Errorf("counts %v, epoch %d", counts, f.row(t).Epoch)
	}
	f.wantWhole(t)
}

// Several schedulers find the same drift: one of them rebuilds the gates.
func TestDriftOfOneEpochIsRebuiltOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if err := f.preloader().Load(t.Context(), f.sale); err != nil {
		t.Fatal(err)
	}
	epoch := f.row(t).Epoch
	var rebuilt atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			done, err := f.preloader().Rebuild(t.Context(), f.sale, epoch)
			if err != nil {
				t.Error(err)
			}
			if done {
				rebuilt.Add(1)
			}
		})
	}
	all.Wait()
	if again := f.row(t).Epoch; rebuilt.Load() != 1 || again != epoch+1 {
		t.Errorf("%d processes rebuilt the gates, epoch %d after %d", rebuilt.Load(), again, epoch)
	}
	f.wantWhole(t)
}

// A sale that is paused while its gate is rebuilt stays paused, whichever finishes
// first: the gate is not open until the next step of a loop.
func TestASaleThatIsHeldWhileItIsLoadedIsHeld(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 20 {
		f.nextSale(t)
		if err := f.preloader().Load(t.Context(), f.sale); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := f.preloader().Load(t.Context(), f.sale); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			f.set(t, entsale.StatusPAUSED)
			if err := f.preloader().SetState(t.Context(), f.sale); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		f.wantState(t, reservation.GatePaused)
	}
}

// A missing gate is left to the process that took its epoch a moment ago, and built by
// the next step if that process has crashed.
func TestAnEpochThatWasTakenIsNotTakenAgainAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item)) // as before the first step of a build
	if counts := f.step(t); counts["rebuilt"] != 0 {
		t.Errorf("taken from who was about to begin: %v", counts)
	}
	f.clock.Advance(5 * time.Second)
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Errorf("no build began, and none begins again: %v", counts)
	}
}

// wantWhole fails the test unless the gate is open with all units.
func (f *fixture) wantWhole(t *testing.T) {
	t.Helper()
	row, g := f.row(t), f.gate(t)
	epoch, _ := strconv.ParseInt(g["epoch"], 10, 64)
	if g["gate"] != reservation.GateOpen || epoch < row.Epoch || g["stock"] != "10" || g["reserved"] != "0" {
		t.Errorf("gate %v, and the sale has epoch %d", g, row.Epoch)
	}
}

// end ends the sale, so that the loops handle the next one alone.
func (f *fixture) end(t *testing.T) {
	t.Helper()
	err := f.db.Ent.Sale.UpdateOneID(f.sale).SetStatus(entsale.StatusENDED).SetSettledAt(f.clock.Now()).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}
