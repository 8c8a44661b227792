package reservation_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// stockCache returns a StockCache that watches the fixture's item.
func (f *fixture) stockCache(c clock.Clock, others ...reservation.ItemRef) *reservation.StockCache {
	return reservation.NewStockCache(reservation.StockCacheConfig{
		Client: f.client, Keys: f.keys, Clock: c, Log: slog.New(slog.DiscardHandler),
		Items: append(items(others), reservation.ItemRef{Sale: f.sale, Item: f.item}),
	})
}

// items is a catalogue whose items are loaded.
type items []reservation.ItemRef

func (i items) Loaded(context.Context) ([]reservation.ItemRef, error) { return i, nil }
func (i items) All(context.Context) ([]reservation.ItemRef, error)    { return i, nil }

func refresh(t *testing.T, b *reservation.StockCache) {
	t.Helper()
	// One read must not take longer than a view is valid, which it may on a busy machine.
	testenv.Eventually(t, testenv.Wait, func() bool { return b.Refresh(t.Context()) == nil }, "the gates are read")
}

func TestSoldOutIsRefusedInMemoryAndUndoneWhenStockComesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(1)
		b := f.stockCache(clock.System{})
		refresh(t, b)
		if _, refused := b.Refuse(f.item, ""); refused {
			t.Fatal("an item with stock is refused")
		}
		sellAndReturn := func() {
			a := f.attempt(id.New[id.User]())
			o := f.reserve(a)
			b.Update(f.item, o.Epoch, o.Revision, o.Remaining)
			if got, refused := b.Refuse(f.item, ""); !refused || got.Code != reservation.SoldOut {
				t.Fatalf("after the last unit: %+v %v", got, refused)
			}
			if _, err := f.gate.Release(t.Context(),
				reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}); err != nil {
				t.Fatal(err)
			}
		}
		sellAndReturn()
		refresh(t, b)
		if got, refused := b.Refuse(f.item, ""); refused {
			t.Fatalf("refused after a read of the returned unit: %+v", got)
		}
		sellAndReturn()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = b.Run(ctx) }()
		testenv.Eventually(t, testenv.Wait, func() bool { _, refused := b.Refuse(f.item, ""); return !refused },
			"the mark is undone within a second")
		cancel()
		<-done
	})
}

func TestAViewExpiresWhenRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(1, func(g *reservation.Contents) { g.Stock = 0 })
	c := clock.NewFake(time.Now())
	b := f.stockCache(c)
	refresh(t, b)
	if _, refused := b.Refuse(f.item, ""); !refused {
		t.Fatal("sold out is not refused")
	}
	c.Advance(1100 * time.Millisecond)
	if _, refused := b.Refuse(f.item, ""); refused {
		t.Error("a mark older than a second still refuses")
	}
}

// In a Cluster, the server of one gate may be down while those of the others answer.
func TestAGateThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	broken := reservation.ItemRef{Sale: id.New[id.Sale](), Item: id.New[id.Item]()}
	if err := f.client.Set(t.Context(), f.keys.Item(id.ShardOf(broken.Sale), broken.Item), "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	f.open(1, func(g *reservation.Contents) { g.Stock = 0 })
	b := f.stockCache(clock.NewFake(time.Now()), broken)
	testenv.Eventually(t, testenv.Wait, func() bool {
		err := b.Refresh(t.Context())
		if err == nil {
			t.Fatal("no error of the gate that cannot be read")
		}
		_, refused := b.Refuse(f.item, "")
		return refused
	}, "the other gate is read")
}

func TestTheWindowIsRefusedInMemoryAwayFromItsBordersOnly(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	now := time.Now()
	cases := map[string]struct {
		opens, closes time.Duration
		want          reservation.Code // 0 = left to Redis
	}{
		"long before":        {time.Hour, 2 * time.Hour, reservation.NotStarted},
		"just before":        {100 * time.Millisecond, time.Hour, 0},
		"open":               {-time.Hour, time.Hour, 0},
		"just after the end": {-time.Hour, -100 * time.Millisecond, 0},
		"long after":         {-2 * time.Hour, -time.Hour, reservation.Ended},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, conn.Script, prefix)
			f.open(5, func(g *reservation.Contents) { g.Opens, g.Closes = now.Add(c.opens), now.Add(c.closes) })
			fake := clock.NewFake(now)
			b := f.stockCache(fake)
			refresh(t, b)
			// The offset to Redis TIME was measured against a stopped clock, so it
			// includes the time since then; the test advances its clock instead of
			// waiting.
			fake.Advance(now.Sub(b.ServerTime()))
			o, refused := b.Refuse(f.item, "")
			if refused != (c.want != 0) || o.Code != c.want {
				t.Errorf("refused %v with %d, want %d", refused, o.Code, c.want)
			}
		})
	}
}

func TestAnOlderReadingDoesNotUndoANewerReply(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(5)
	b := f.stockCache(clock.System{})
	refresh(t, b)
	v, _ := b.View(f.item)
	b.Update(f.item, v.Epoch, v.Revision+10, 0) // a script reply that is newer than the next read
	refresh(t, b)
	if got, _ := b.View(f.item); got.Stock != 0 {
		t.Errorf("stock %d: an older reading undid a newer reply", got.Stock)
	}
	b.Update(f.item, v.Epoch, v.Revision, 5)
	if got, _ := b.View(f.item); got.Stock != 0 {
		t.Errorf("stock %d: an old reply undid a newer one", got.Stock)
	}
}

func TestAnItemWithoutAGateIsLeftToTheScript(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	b := f.stockCache(clock.System{})
	refresh(t, b)
	if _, refused := b.Refuse(f.item, ""); refused {
		t.Error("refused although nothing is known")
	}
	if _, ok := b.View(f.item); ok {
		t.Error("a view of a gate that is not there")
	}
}

func TestAViewShowsSinceWhenItHasBeenSo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		ticks := clock.NewFake(time.Now())
		b := f.stockCache(ticks)
		look := func() reservation.View {
			ticks.Advance(time.Second)
			refresh(t, b)
			v, _ := b.View(f.item)
			return v
		}
		first, second := look(), look()
		if !second.Since.Equal(first.Since) || !second.ReadAt.After(first.ReadAt) {
			t.Errorf("nothing changed: since %s, then %s, read %s", first.Since, second.Since, second.ReadAt)
		}
		f.reserve(f.attempt(id.New[id.User]()))
		if third := look(); !third.Since.Equal(third.ReadAt) || third.Since.Equal(first.Since) {
			t.Errorf("a unit was taken: since %s, read %s", third.Since, third.ReadAt)
		}
	})
}
