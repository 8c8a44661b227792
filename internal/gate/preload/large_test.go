package preload_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/testenv"
)

// large is a sale of n live orders whose gate is lost, on a database of largeURL.
func large(t *testing.T, n int) *fixture {
	t.Helper()
	url := largeURL(t)
	open := func(url string) *postgres.DB {
		db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	f := setupOn(t, open(url))
	f.clock.Advance(6 * time.Second)
	f.step(t)
	patient := open(fmt.Sprintf("%s&synchronous_commit=off&statement_timeout=%d", url, testenv.Wait.Milliseconds()))
	for _, statement := range []string{ // ids grow with time, as those of the product
		fmt.Sprintf(`INSERT INTO orders (id, number, sale_id, item_id, user_id, kind, status, quantity, unit_price_minor, currency,
			version, epoch, reserved_at, created_at, updated_at, return_due)
			SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'n' || i, '%s', '%s', gen_random_uuid(), 'SECKILL', CASE i %% 2 WHEN 0 THEN 'PAID' ELSE 'PENDING_PAYMENT' END,
			1, 4900, 'CNY', 1, 1, now(), now(), now(), false FROM generate_series(1, %d) i`, f.sale, f.item, n),
		fmt.Sprintf(`INSERT INTO stock_movements (id, order_id, item_id, kind, quantity, created_at)
			SELECT id, id, item_id, 'SELL', 1, now() FROM orders WHERE item_id = '%s'`, f.item),
		fmt.Sprintf("UPDATE sale_items SET total = %d, available = 5, held = %d WHERE id = '%s'", n+5, n, f.item),
		"ANALYZE orders", "ANALYZE stock_movements",
	} {
		if _, err := patient.SQL.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	f.must(t, f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), f.keys.Reservations(id.ShardOf(f.sale), f.item)).Err())
	f.clock.Advance(5 * time.Second)
	return f
}

// pages calls do before each write of reservations, counted from one.
type pages struct {
	redis.Hook
	count int
	do    func(page int)
}

func (p *pages) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *pages) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *pages) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && len(cmd.Args()) > 500 {
			p.count++
			p.do(p.count)
		}
		return next(ctx, cmd)
	}
}

func TestALargeSaleIsRebuiltWithinTheTimeoutsOfItsStatements(t *testing.T) {
	t.Parallel()
	f := large(t, liveOrders)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak, longest, last := uint64(0), time.Duration(0), time.Now()
	f.redis.Script.AddHook(&pages{do: func(page int) {
		longest, last = max(longest, time.Since(last)), time.Now()
		if page%10 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
	}})
	began := time.Now()
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Fatalf("step: %v", counts)
	}
	f.wantGate(t, "2", "5", strconv.Itoa(liveOrders))
	n, err := f.redis.Cmd.HLen(t.Context(), f.keys.Reservations(id.ShardOf(f.sale), f.item)).Result()
	if err != nil || n != liveOrders {
		t.Errorf("%d reservations, error %v, want %d", n, err, liveOrders)
	}
	t.Logf("%d live orders rebuilt in %s; the longest page took %s; heap %d MB at most, %d MB before", liveOrders,
		time.Since(began).Round(time.Millisecond), longest.Round(time.Millisecond), max(peak, before.HeapInuse)>>20, before.HeapInuse>>20)
}

func TestABuildThatContinuesIsNotTakenOver(t *testing.T) {
	t.Parallel()
	f := large(t, 12_000)
	other := f.preloader()
	f.redis.Script.AddHook(&pages{do: func(page int) {
		since, err := f.redis.Cmd.HGet(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "since").Int64()
		f.must(t, err)
		if age := time.Since(time.UnixMilli(since)); page > 1 && age > testenv.Wait {
			t.Errorf("page %d: the last step of the build was %s ago", page, age)
		}
		f.clock.Advance(time.UnixMilli(since).Add(5 * time.Second).Sub(f.clock.Now()))
		counts, err := other.Step(t.Context())
		if err != nil || len(counts) != 0 {
			t.Errorf("page %d: another process made %v, error %v", page, counts, err)
		}
		f.setGate(t, "since", f.clock.Now().Add(-time.Hour).UnixMilli()) // as if this page took an hour
	}})
	if counts := f.step(t); counts["rebuilt"] != 1 {
		t.Fatalf("step: %v", counts)
	}
	f.wantGate(t, "2", "5", "12000")
}

// Released units are for the waitlist from the moment at which the gate opens.
func TestARebuiltGateKeepsItsUnitsForTheWaitlist(t *testing.T) {
	t.Parallel()
	f := loaded(t)
	shard := id.ShardOf(f.sale)
	f.must(t, f.db.Ent.WaitlistEntry.Create().SetID(id.New[id.Waitlist]()).SetSaleID(f.sale).SetItemID(f.item).SetUserID(id.New[id.User]()).SetQuantity(1).
		SetCreatedAt(f.clock.Now()).SetUpdatedAt(f.clock.Now()).Exec(t.Context()))
	f.must(t, f.redis.Cmd.Del(t.Context(), f.keys.Item(shard, f.item)).Err())
	f.must(t, f.preloader().Load(t.Context(), f.sale))
	g := f.gate(t)
	now := f.redis.Cmd.Time(t.Context()).Val()
	if until, _ := strconv.ParseInt(g["line"], 10, 64); g["gate"] != reservation.GateOpen || until < now.UnixMilli()-int64(testenv.Wait/time.Millisecond) {
		t.Errorf("gate %v, want its units kept for the waitlist", g)
	}
}

// Two rebuilds between two steps of the loop that records revisions.
func TestRevisionsRiseOverTwoRebuildsAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.must(t, f.db.Ent.SaleItem.UpdateOneID(f.item).SetTotal(3000).SetAvailable(3000).Exec(t.Context()))
	f.clock.Advance(6 * time.Second)
	f.step(t)
	var shown []int
	for range 3 {
		shown = append(shown, int(f.redis.Cmd.HIncrBy(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item), "rev", 1500).Val()))
		f.must(t, f.redis.Cmd.Del(t.Context(), f.keys.Item(id.ShardOf(f.sale), f.item)).Err())
		f.must(t, f.preloader().Load(t.Context(), f.sale))
		shown = append(shown, f.revision(t))
	}
	if !slices.IsSorted(shown) || len(slices.Compact(slices.Clone(shown))) != len(shown) {
		t.Errorf("revisions %v, want each above the one before", shown)
	}
}
