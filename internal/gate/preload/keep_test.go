package preload_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	entsale "seckill/ent/sale"
	"seckill/ent/salelog"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/preload"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// addSale adds a scheduled sale of one item.
func (f *fixture) addSale(t *testing.T, starts, preheat time.Time, stock int) (saleID id.Sale, itemID id.Item) {
	t.Helper()
	saleID, itemID = id.New[id.Sale](), id.New[id.Item]()
	err := f.db.WithTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Sale.Create().SetID(saleID).SetSlug(saleID.String()).SetTitle("S").SetStatus(entsale.StatusSCHEDULED).
			SetStartsAt(starts).SetEndsAt(starts.Add(time.Hour)).SetPreheatAt(preheat).
			SetPaymentWindowSeconds(900).SetPurchaseLimit(1).SetCreatedAt(f.clock.Now()).Exec(ctx); err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(itemID).SetSaleID(saleID).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(4900).SetCurrency("CNY").SetTotal(stock).SetAvailable(stock).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return saleID, itemID
}

func (f *fixture) status(t *testing.T, saleID id.Sale) sale.Status {
	t.Helper()
	row, err := f.db.Ent.Sale.Get(t.Context(), saleID)
	if err != nil {
		t.Fatal(err)
	}
	return sale.Status(row.Status)
}

// set changes the sale like an operator whose process crashes before it updates Redis.
func (f *fixture) set(t *testing.T, status entsale.Status) {
	t.Helper()
	if err := f.db.Ent.Sale.UpdateOneID(f.sale).SetStatus(status).AddRevision(1).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) wantState(t *testing.T, want string) {
	t.Helper()
	if g := f.gate(t); g["gate"] != want {
		t.Errorf("gate %v, want it %s", g, want)
	}
}

func TestSalesAreLoadedAcrossSlotBorders(t *testing.T) {
	t.Parallel()
	f := setup(t)
	// The slots are the present slot of two hours and the next four.
	border := f.clock.Now().Truncate(2 * time.Hour).Add(10 * time.Hour)
	long := f.clock.Now().Add(-24 * time.Hour)
	inside, _ := f.addSale(t, border.Add(-time.Second), long, 5)
	outside, _ := f.addSale(t, border, long, 5)
	later, _ := f.addSale(t, border.Add(-time.Minute), border.Add(-10*time.Minute), 5) // must be loaded late
	empty, _ := f.addSale(t, border.Add(-time.Second), long, 0)
	want := func(when string, statuses map[id.Sale]sale.Status) {
		t.Helper()
		f.step(t)
		for saleID, status := range statuses {
			if got := f.status(t, saleID); got != status {
				t.Errorf("%s: %s, want %s", when, got, status)
			}
		}
	}
	want("in the first slot", map[id.Sale]sale.Status{
		inside: sale.Preheated, outside: sale.Scheduled, later: sale.Scheduled, empty: sale.Scheduled,
	})
	f.clock.Advance(f.clock.Now().Truncate(2 * time.Hour).Add(2*time.Hour - time.Second).Sub(f.clock.Now()))
	want("a second before the border", map[id.Sale]sale.Status{outside: sale.Scheduled})
	f.clock.Advance(time.Second)
	added, _ := f.addSale(t, border.Add(time.Minute), long, 5) // added later
	want("in the next slot", map[id.Sale]sale.Status{
		outside: sale.Preheated, added: sale.Preheated, later: sale.Scheduled, empty: sale.Scheduled,
	})
	f.clock.Advance(border.Add(-10 * time.Minute).Sub(f.clock.Now()))
	want("ten minutes before it opens", map[id.Sale]sale.Status{later: sale.Preheated, empty: sale.Preheated})
}

func TestEachActOfTheClockIsLoggedOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, after := range []time.Duration{0, 6 * time.Second, time.Minute, time.Hour} {
		f.clock.Advance(after)
		var wg sync.WaitGroup
		for range 4 { // processes
			wg.Go(func() {
				if _, err := f.preloader().Step(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	for act, want := range map[sale.Act]int{sale.ActPreheat: 1, sale.ActOpen: 1, sale.ActEnd: 1} {
		n, err := f.db.Ent.SaleLog.Query().Where(salelog.SaleID(f.sale), salelog.Act(string(act)), salelog.ActorIDIsNil()).Count(t.Context())
		if err != nil || n != want {
			t.Errorf("%d lines of %s, error %v", n, act, err)
		}
	}
	f.wantState(t, reservation.GateEnded)
}

func TestAGateFollowsItsSaleAlthoughTheOperatorsProcessDied(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(2 * time.Minute)
	f.step(t)
	f.step(t)
	for _, c := range []struct {
		status entsale.Status
		gate   string
	}{
		{entsale.StatusPAUSED, reservation.GatePaused}, {entsale.StatusLIVE, reservation.GateOpen},
		{entsale.StatusPAUSED, reservation.GatePaused}, {entsale.StatusENDED, reservation.GateEnded},
	} {
		f.set(t, c.status)
		f.step(t)
		f.wantState(t, c.gate)
	}
}

func TestAHeldSaleIsRebuiltHeld(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	f.set(t, entsale.StatusPAUSED)
	f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item))
	f.clock.Advance(5 * time.Second)
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Fatalf("step: %v", counts)
	}
	f.wantState(t, reservation.GatePaused)
}

func TestTheTimeOfTheFirstEmptyGateIsKept(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(2 * time.Minute)
	f.step(t)
	f.redis.Cmd.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "stock", 0, "reserved", 10)
	at := f.clock.Now()
	f.step(t)
	f.clock.Advance(time.Minute)
	f.step(t)
	row, err := f.db.Ent.SaleItem.Get(t.Context(), f.item)
	if err != nil || row.SoldOutAt == nil || !row.SoldOutAt.Equal(at) {
		t.Errorf("sold out at %v, want %s; error %v", row.SoldOutAt, at, err)
	}
}

func TestAnEndedSaleLeavesRedisOnceAllIsSettled(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	unpaid := f.sell(t)
	waiting := order.Request{V: 1, Task: id.NewTask(id.ShardOf(f.sale)), User: id.New[id.User](), Sale: f.sale, Item: f.item, Quantity: 1}
	f.pending = []order.Request{waiting}
	f.clock.Advance(time.Hour)
	f.step(t)
	finished := &keeper{f, 0}
	step := func() map[string]int {
		t.Helper()
		counts, err := preload.New(preload.Config{
			DB: f.db, Gate: reservation.NewGate(reservation.GateConfig{Client: f.redis.Script, Keys: f.keys, Timeout: testenv.Wait}),
			Backlog: f, Figures: finished, NoteTimeout: testenv.Wait,
			Clock: f.clock, Log: slog.New(slog.DiscardHandler),
		}).Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	still := func(why string) {
		t.Helper()
		f.clock.Advance(time.Hour)
		if counts := step(); counts["settled"] != 0 || len(f.gate(t)) == 0 {
			t.Errorf("left Redis although %s: %v", why, counts)
		}
	}
	if counts := step(); counts["settled"] != 0 || finished.times != 0 {
		t.Error("left Redis at once")
	}
	still("an order is unpaid and a message waits")
	if err := f.db.Ent.Order.UpdateOneID(unpaid).SetStatus(entorder.StatusPAID).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := func() int {
		t.Helper()
		n, err := f.db.Ent.Order.Query().Where(entorder.PersonKeysNotNil()).Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := f.db.SQL.ExecContext(t.Context(), "UPDATE orders SET person_keys = 'cAAAAAAAAAAAAAAAA'"); err != nil {
		t.Fatal(err)
	}
	still("a message waits")
	if keys() == 0 {
		t.Error("the person keys are gone before the sale is settled")
	}
	if finished.times != 1 {
		t.Errorf("figures were kept %d times while the sale waits to be settled, want once", finished.times)
	}
	f.pending = nil
	if counts := step(); counts["settled"] != 1 || len(f.gate(t)) != 0 || finished.times != 2 {
		t.Errorf("not settled: %v, gate %v, figures kept %d times", counts, f.gate(t), finished.times)
	}
	if row := f.row(t); row.SettledAt == nil {
		t.Error("the row does not say that it is settled")
	}
	if n := keys(); n != 0 {
		t.Errorf("%d orders of a settled sale have person keys", n)
	}
	if counts := step(); len(counts) != 0 || finished.times != 2 {
		t.Errorf("settled again: %v", counts)
	}
}

// Late payments and stock to be released, which wait for a gate, find none and
// continue.
func TestALostGateOfASaleThatIsOverLeavesRedisWhateverElseIsUnsettled(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, f *fixture){
		"built in another life of the server": func(t *testing.T, f *fixture) {
			f.must(t, f.redis.Cmd.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "run", "0123456789abcdef").Err())
		},
		"never built": func(t *testing.T, f *fixture) {
			row, err := f.db.Ent.Sale.UpdateOneID(f.sale).AddEpoch(1).Save(t.Context())
			f.must(t, err)
			_, err = reservation.NewGate(reservation.GateConfig{Client: f.redis.Script, Keys: f.keys}).Begin(t.Context(), f.sale, f.item, row.Epoch)
			f.must(t, err)
		},
		"older than its sale": func(t *testing.T, f *fixture) {
			f.must(t, f.db.Ent.Sale.UpdateOneID(f.sale).AddEpoch(1).Exec(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.clock.Advance(6 * time.Second)
			f.step(t)
			undecided := f.sell(t)
			f.must(t, f.db.Ent.Order.UpdateOneID(undecided).SetStatus(entorder.StatusREFUNDING).Exec(t.Context()))
			f.clock.Advance(time.Hour)
			f.step(t)
			lose(t, f)
			f.pending = []order.Request{{V: 1, Task: id.NewTask(id.ShardOf(f.sale)), User: id.New[id.User](), Sale: f.sale, Item: f.item, Quantity: 1}}
			f.step(t)
			if len(f.gate(t)) == 0 {
				t.Error("its gate left before an order that it let in was written: its unit is free")
			}
			f.pending = nil
			f.step(t)
			if g := f.gate(t); len(g) != 0 {
				t.Errorf("its gate stays: %v", g)
			}
			if f.row(t).SettledAt != nil {
				t.Error("the sale is settled although a refund is undecided")
			}
		})
	}
}

func TestALostGateOfASaleThatIsOverWaitsForAMessageForTenMinutesAtMost(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	f.clock.Advance(time.Hour)
	f.step(t)
	f.must(t, f.redis.Cmd.HSet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "run", "0123456789abcdef").Err())
	f.pending = []order.Request{{V: 1, Task: id.NewTask(id.ShardOf(f.sale)), User: id.New[id.User](), Sale: f.sale, Item: f.item, Quantity: 1}}
	f.clock.Advance(10 * time.Minute)
	f.step(t)
	if g := f.gate(t); len(g) != 0 {
		t.Errorf("its gate stays: %v", g)
	}
}

func TestOneBrokenSaleDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.clock.Advance(6 * time.Second)
	f.step(t)
	second, _ := f.addSale(t, f.clock.Now().Add(time.Minute), f.clock.Now(), 5)
	f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item))
	f.redis.Cmd.Set(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "not a hash", 0)
	if _, err := f.preloader().Step(t.Context()); err == nil {
		t.Error("the broken sale was not reported")
	}
	if got := f.status(t, second); got != sale.Preheated {
		t.Errorf("the other sale is %s", got)
	}
}

// keeper stores empty figures and counts how often.
type keeper struct {
	*fixture
	times int
}

// Keep implements preload.Figures.
func (k *keeper) Keep(ctx context.Context, sale id.Sale) error {
	k.times++
	err := k.db.Ent.SaleFigures.Create().SetID(sale).SetFigures("{}").SetUpdatedAt(k.clock.Now()).Exec(ctx)
	if postgres.IsUnique(err) {
		return nil
	}
	return err
}
