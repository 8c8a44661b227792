package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

func TestAcceptanceTakesStockRecordsTheReservationAndQueuesTheMessageTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		a := f.attempt(id.New[id.User]())
		o := f.reserve(a)
		if o.Code != reservation.Accepted || o.Task != a.Task || o.Remaining != 4 || o.Epoch != 1 {
			t.Fatalf("outcome %+v", o)
		}
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
		shard := id.ShardOf(f.sale)
		want := order.Request{
			V: 1, Task: a.Task, User: a.User, Sale: a.Sale, Item: a.Item, Quantity: 1, UnitPriceMinor: 1999, Currency: "EUR",
			PaymentWindowSeconds: 900, IdempotencyKey: a.IdempotencyKey, Epoch: 1, SubmittedAtMs: o.At.UnixMilli(),
		}
		if got := f.orders(); got[0] != want {
			t.Errorf("order %+v, want %+v", got[0], want)
		}
		if n := f.client.Exists(t.Context(), f.keys.Tasks(shard, a.Task)).Val(); n != 0 {
			t.Error("the task has a record beside its reservation")
		}
	})
}

func TestEveryRefusalHasItsCodeAndTakesNothing(t *testing.T) {
	t.Parallel()
	hour := time.Hour
	cases := map[string]struct {
		gate   func(*reservation.Contents)
		change func(f *fixture, a *reservation.Attempt)
		want   reservation.Code
	}{
		"not started": {gate: func(g *reservation.Contents) { g.Opens = time.Now().Add(hour) }, want: reservation.NotStarted},
		"ended":       {gate: func(g *reservation.Contents) { g.Closes = time.Now().Add(-time.Second) }, want: reservation.Ended},
		"ended early": {gate: func(g *reservation.Contents) { g.State = reservation.GateEnded }, want: reservation.Ended},
		"paused":      {gate: func(g *reservation.Contents) { g.State = reservation.GatePaused }, want: reservation.Paused},
		"sold out":    {gate: func(g *reservation.Contents) { g.Stock = 0 }, want: reservation.SoldOut},
		"sold out, wrong path": {
			gate:   func(g *reservation.Contents) { g.Stock = 0 },
			change: func(_ *fixture, a *reservation.Attempt) { a.Permit = reservation.Permit{} }, want: reservation.SoldOut,
		},
		"too few left": {gate: func(g *reservation.Contents) { g.Limit = 9 }, change: func(_ *fixture, a *reservation.Attempt) { a.Quantity = 6 }, want: reservation.TooFewLeft},
		"over limit":   {change: func(_ *fixture, a *reservation.Attempt) { a.Quantity = 2 }, want: reservation.OverLimit},
		"wrong path":   {change: func(_ *fixture, a *reservation.Attempt) { a.Permit = reservation.Permit{} }, want: reservation.PathInvalid},
		"replaced path": {change: func(_ *fixture, a *reservation.Attempt) {
			a.Permit.Until = a.Permit.Until.Add(time.Millisecond)
		}, want: reservation.PathInvalid},
		"wrong path, no permit": {change: func(f *fixture, a *reservation.Attempt) {
			*a = f.bare(id.New[id.User]())
			a.Permit = reservation.Permit{}
		}, want: reservation.PathInvalid},
		"no path": {change: func(f *fixture, a *reservation.Attempt) { *a = f.bare(id.New[id.User]()) }, want: reservation.PathInvalid},
		"path of another user": {change: func(f *fixture, a *reservation.Attempt) {
			*a = f.bare(id.New[id.User]()) // the token is valid, but of another user
		}, want: reservation.PathInvalid},
		"path of an older epoch": {change: func(f *fixture, a *reservation.Attempt) { a.Permit.Epoch = 0 }, want: reservation.PathInvalid},
		"expired path": {change: func(f *fixture, a *reservation.Attempt) {
			a.Permit.Until = time.UnixMilli(time.Now().UnixMilli() - 1)
			f.client.ZAdd(context.Background(), f.keys.Permits(id.ShardOf(f.sale), f.item),
				redis.Z{Score: float64(a.Permit.Until.UnixMilli()), Member: a.User.String()})
		}, want: reservation.PathInvalid},
		"item without a gate": {change: func(_ *fixture, a *reservation.Attempt) { a.Item = id.New[id.Item]() }, want: reservation.NotLoaded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, f *fixture) {
				gates := []func(*reservation.Contents){}
				if c.gate != nil {
					gates = append(gates, c.gate)
				}
				f.open(5, gates...)
				before := f.figures()
				a := f.attempt(id.New[id.User]())
				if c.change != nil {
					c.change(f, &a)
				}
				if o := f.reserve(a); o.Code != c.want {
					t.Errorf("code %d, want %d", o.Code, c.want)
				}
				f.want(before)
			})
		})
	}
}

func TestAPathIsUsedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		a := f.attempt(id.New[id.User]())
		first := f.reserve(a)
		again := a
		again.Task, again.IdempotencyKey = id.NewTask(id.ShardOf(f.sale)), uuid.NewString()
		o := f.reserve(again)
		if o.Code != reservation.PathInvalid || o.Task != first.Task {
			t.Errorf("second use: %+v, want PathInvalid naming task %s", o, first.Task)
		}
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
	})
}

func TestABuyerWithAReservationAndANewPathTokenGetsTheExistingTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		a := f.attempt(id.New[id.User]())
		first := f.reserve(a)
		o := f.reserve(f.attempt(a.User))
		if o.Code != reservation.AlreadyHolding || o.Task != first.Task {
			t.Errorf("outcome %+v", o)
		}
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
	})
}

func TestTheSameIdempotencyKeyAnswersTheSameTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5, func(g *reservation.Contents) { g.Limit = 3 })
		a := f.attempt(id.New[id.User]())
		first := f.reserve(a)
		retry := a
		retry.Task = id.NewTask(id.ShardOf(f.sale))
		if o := f.reserve(retry); o.Code != reservation.Replayed || o.Task != first.Task {
			t.Errorf("retry: %+v", o)
		}
		retry.Quantity = 2
		if o := f.reserve(retry); o.Code != reservation.IdempotencyMismatch {
			t.Errorf("other input: %+v", o)
		}
		f.want(figures{stock: 4, reserved: 1, holders: 1, orders: 1})
	})
}

func TestManyBuyersNeverOversellNorUndersell(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		const buyers, stock = 2000, 200
		f.open(stock)
		attempts := make([]reservation.Attempt, buyers)
		for i := range attempts {
			attempts[i] = f.attempt(id.New[id.User]())
		}
		var accepted, soldOut atomic.Int64
		var wg sync.WaitGroup
		for _, a := range attempts {
			wg.Go(func() {
				switch o := f.reserve(a); o.Code {
				case reservation.Accepted:
					accepted.Add(1)
				case reservation.SoldOut:
					soldOut.Add(1)
				default:
					t.Errorf("code %d", o.Code)
				}
			})
		}
		wg.Wait()
		if accepted.Load() != stock || soldOut.Load() != buyers-stock {
			t.Errorf("%d accepted, %d sold out; want %d and %d", accepted.Load(), soldOut.Load(), stock, buyers-stock)
		}
		f.want(figures{stock: 0, reserved: stock, holders: stock, orders: stock})
	})
}

func TestTenThousandAttemptsOfOneUserReserveOneUnit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(50)
		a := f.attempt(id.New[id.User]())
		var accepted atomic.Int64
		var wg sync.WaitGroup
		gate := make(chan struct{}, 1000) // stays below the queue's limit
		for range 10_000 {
			gate <- struct{}{}
			wg.Go(func() {
				defer func() { <-gate }()
				press := a
				press.Task, press.IdempotencyKey = id.NewTask(id.ShardOf(f.sale)), uuid.NewString()
				if f.reserve(press).Code == reservation.Accepted {
					accepted.Add(1)
				}
			})
		}
		wg.Wait()
		if accepted.Load() != 1 {
			t.Errorf("%d accepted", accepted.Load())
		}
		f.want(figures{stock: 49, reserved: 1, holders: 1, orders: 1})
	})
}

func TestConcurrentAttemptsGoTogether(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(1000)
	attempts := make([]reservation.Attempt, 500)
	for i := range attempts {
		attempts[i] = f.attempt(id.New[id.User]())
	}
	var wg sync.WaitGroup
	for _, a := range attempts {
		wg.Go(func() { f.reserve(a) })
	}
	wg.Wait()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "seckill_reservation_batch_size" {
			continue
		}
		if batches := family.GetMetric()[0].GetHistogram(); batches.GetSampleSum() != 500 || batches.GetSampleCount() == 500 {
			t.Errorf("%v attempts in %d batches; want 500 in fewer", batches.GetSampleSum(), batches.GetSampleCount())
		}
		return
	}
	t.Error("no batch was counted")
}

func TestALostReplyTakesStockOnce(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	proxy := testenv.NewProxy(t, server.Addr())
	conn, err := redisconn.Open(t.Context(), testenv.RedisURLAt(proxy.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	f := newFixture(t, conn.Script, "t:")
	f.open(10)
	if err := reservation.LoadScripts(t.Context(), conn.Script); err != nil {
		t.Fatal(err)
	}
	a := f.attempt(id.New[id.User]())
	proxy.LoseReplyTo("evalsha")
	o := f.reserve(a)
	if o.Code != reservation.Accepted || o.Task != a.Task {
		t.Errorf("outcome %+v, want the acceptance that got lost", o)
	}
	f.want(figures{stock: 9, reserved: 1, holders: 1, orders: 1})
}

func TestAGateThatCannotBeReachedIsUnavailable(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	f := newFixture(t, server.Conn().Script, "t:")
	f.open(10)
	a := f.attempt(id.New[id.User]())
	server.Kill()
	_, err := f.gate.Reserve(context.Background(), a)
	if code := fault.CodeOf(err); err == nil || (code != fault.Unavailable && !errors.Is(err, reservation.ErrUnknown)) {
		t.Errorf("error %v", err)
	}
}

func TestReleaseGivesBackOncePerTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(3)
		a := f.attempt(id.New[id.User]())
		f.reserve(a)
		hold := reservation.Ref{Sale: f.sale, Item: f.item, User: a.User, Task: a.Task}
		var done atomic.Int64
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				r, err := f.gate.Release(context.Background(), hold)
				if err != nil {
					t.Error(err)
				}
				if r.Done {
					done.Add(1)
				}
			})
		}
		wg.Wait()
		if done.Load() != 1 {
			t.Errorf("released %d times", done.Load())
		}
		f.want(figures{stock: 3, reserved: 0, holders: 0, orders: 1})
		if o := f.reserve(f.attempt(a.User)); o.Code != reservation.Accepted {
			t.Errorf("after the release the user may try again, got %d", o.Code)
		}
		if r, err := f.gate.Release(context.Background(), hold); err != nil || r.Done {
			t.Errorf("the old task must not release the new hold: %+v %v", r, err)
		}
	})
}

func TestAnEpochIsBuiltOnceAndClosesTheGateMeanwhile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.open(5)
		if again, err := f.gate.Begin(t.Context(), f.sale, f.item, 1); err != nil || again {
			t.Errorf("the same epoch begins again: %v %v", again, err)
		}
		if begun, err := f.gate.Begin(t.Context(), f.sale, f.item, 2); err != nil || !begun {
			t.Fatalf("begin: %v %v", begun, err)
		}
		a := f.attempt(id.New[id.User]())
		if o := f.reserve(a); o.Code != reservation.Paused {
			t.Errorf("while it is built: code %d", o.Code)
		}
		holder := reservation.Reservation{User: id.New[id.User](), Task: id.NewTask(id.ShardOf(f.sale)), Quantity: 2, At: time.Now(), IdempotencyKey: "k"}
		gate := reservation.Contents{
			Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 2, Limit: 2, Total: 5, Stock: 3, Revision: 9,
			Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour), Reservations: []reservation.Reservation{holder},
		}
		if opened, err := f.gate.Open(t.Context(), gate); err != nil || !opened {
			t.Fatalf("open: %v %v", opened, err)
		}
		f.want(figures{stock: 3, reserved: 2, holders: 1, orders: 0})
		held, err := f.gate.Reservations(t.Context(), f.sale, []id.Item{f.item}, holder.User)
		if err != nil || held[f.item].Task != holder.Task || held[f.item].Quantity != 2 {
			t.Errorf("holding %+v %v", held, err)
		}
		if o := f.reserve(a); o.Code != reservation.PathInvalid {
			t.Errorf("a path of the epoch before: code %d", o.Code)
		}
	})
}

func TestAFullQueueShedsLoadAndTakesNothing(t *testing.T) {
	t.Parallel()
	conn, prefix := testenv.Redis(t)
	f := newFixture(t, conn.Script, prefix)
	f.open(1)
	proxy := testenv.NewProxy(t, testenv.RedisAddr(t))
	proxy.Silence()
	silent := reservation.NewGate(reservation.GateConfig{Client: patient(t, "redis://"+proxy.Addr()), Keys: f.keys})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var overloaded atomic.Int64
	for range 10_000 {
		wg.Go(func() {
			_, err := silent.Reserve(ctx, f.bare(id.New[id.User]()))
			if fault.CodeOf(err) == fault.Overloaded {
				overloaded.Add(1)
			}
		})
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return overloaded.Load() > 0 }, "callers above the queue get OVERLOADED")
	cancel()
	wg.Wait()
	f.want(figures{stock: 1})
}

func TestScriptsNameEveryKeyOfOneShard(t *testing.T) {
	t.Parallel()
	keys := reservation.Keys{Prefix: "sk:"}
	sale, item, user := id.New[id.Sale](), id.New[id.Item](), id.New[id.User]()
	shard := id.ShardOf(sale)
	tag := fmt.Sprintf("{s%02d}", shard)
	for _, key := range []string{
		keys.Item(shard, item), keys.Reservations(shard, item), keys.FormerReservations(shard, item), keys.Path(shard, item, user), keys.Permits(shard, item),
		keys.Captcha(shard, sale, user), keys.Answers(shard, sale), keys.IdempotencyKeys(shard, sale), keys.Tasks(shard, id.NewTask(shard)), keys.Orders(shard),
	} {
		if strings.Count(key, "{") != 1 || !strings.Contains(key, tag) {
			t.Errorf("key %s does not carry the tag %s once", key, tag)
		}
	}
}
