package reservation_test

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fixture is one item with an open gate, on one Redis.
type fixture struct {
	t       testing.TB
	client  redis.UniversalClient
	keys    reservation.Keys
	sale    id.Sale
	item    id.Item
	gate    *reservation.Gate
	metrics *prometheus.Registry
}

// onBoth runs a test on a real Redis and on the in-process one of the demo.
func onBoth(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		_, prefix := testenv.Redis(t)
		run(t, newFixture(t, patient(t, testenv.RedisURL(t)), prefix))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		server := miniredis.RunT(t)
		run(t, newFixture(t, patient(t, testenv.RedisURLAt(server.Addr())), "t:"))
	})
}

// patient returns a client with a long read timeout.
func patient(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout, opts.MaxRetries = testenv.Wait, testenv.Wait, testenv.Wait, -1
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newFixture(t testing.TB, client redis.UniversalClient, prefix string) *fixture {
	t.Helper()
	f := &fixture{
		t: t, client: client, keys: reservation.Keys{Prefix: prefix},
		sale: id.New[id.Sale](), item: id.New[id.Item](), metrics: prometheus.NewRegistry(),
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	f.gate = reservation.NewGate(reservation.GateConfig{Client: client, Keys: f.keys, Registerer: f.metrics, Timeout: testenv.Wait, Log: log})
	return f
}

// open builds an open gate with the given stock; it opened an hour ago.
func (f *fixture) open(stock int, change ...func(*reservation.Contents)) {
	f.t.Helper()
	g := reservation.Contents{
		Sale: f.sale, Item: f.item, State: reservation.GateOpen, Epoch: 1,
		Opens: time.Now().Add(-time.Hour), Closes: time.Now().Add(time.Hour),
		Limit: 1, Total: stock, Stock: stock, Revision: 1,
	}
	for _, c := range change {
		c(&g)
	}
	begun, err := f.gate.Begin(f.t.Context(), g.Sale, g.Item, g.Epoch)
	if err != nil || !begun {
		f.t.Fatalf("begin: %v %v", begun, err)
	}
	opened, err := f.gate.Open(f.t.Context(), g)
	if err != nil || !opened {
		f.t.Fatalf("open: %v %v", opened, err)
	}
}

// attempt returns an attempt of a user with a valid path token.
func (f *fixture) attempt(user id.User) reservation.Attempt {
	f.t.Helper()
	f.path(user)
	return f.bare(user)
}

// permit is what the path tokens of these tests prove.
func permit(epoch int64) reservation.Permit {
	return reservation.Permit{Epoch: epoch, Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// path writes the permit of a user's path token as package admission/path does.
func (f *fixture) path(user id.User) {
	f.t.Helper()
	member := redis.Z{Score: float64(permit(1).Until.UnixMilli()), Member: user.String()}
	if err := f.client.ZAdd(f.t.Context(), f.keys.Permits(id.ShardOf(f.sale), f.item), member).Err(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) bare(user id.User) reservation.Attempt {
	task := id.NewTask(id.ShardOf(f.sale))
	return reservation.Attempt{
		Task: task, Sale: f.sale, Item: f.item, User: user, Quantity: 1,
		Permit: permit(1), IdempotencyKey: uuid.NewString(),
		Terms: "1999|EUR|900", OnlyItem: true,
	}
}

func (f *fixture) reserve(a reservation.Attempt) reservation.Outcome {
	f.t.Helper()
	o, err := f.gate.Reserve(context.Background(), a)
	if err != nil {
		f.t.Fatalf("reserve: %v", err)
	}
	return o
}

// figures are the counts of the item in Redis.
type figures struct{ stock, reserved, holders, orders int }

func (f *fixture) figures() figures {
	f.t.Helper()
	ctx, shard := context.Background(), id.ShardOf(f.sale)
	hash := f.client.HGetAll(ctx, f.keys.Item(shard, f.item)).Val()
	var out figures
	out.stock, _ = strconv.Atoi(hash["stock"])
	out.reserved, _ = strconv.Atoi(hash["reserved"])
	out.holders = int(f.client.HLen(ctx, f.keys.Reservations(shard, f.item)).Val())
	out.orders = len(f.orders())
	return out
}

// orders returns the orders in the stream of the shard.
func (f *fixture) orders() (orders []order.Request) {
	f.t.Helper()
	f.must(stream.Backlog(context.Background(), f.client, f.keys.Orders(id.ShardOf(f.sale)), func(msg *stream.Message) {
		requests, err := order.Decode(msg)
		f.must(err)
		if len(requests) != stream.Count(msg) {
			f.t.Errorf("a message of %d orders counts as %d", len(requests), stream.Count(msg))
		}
		orders = append(orders, requests...)
	}))
	return orders
}

func (f *fixture) want(w figures) {
	f.t.Helper()
	if got := f.figures(); got != w {
		f.t.Errorf("Redis holds %+v, want %+v", got, w)
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}
