package orderintake_test

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// BenchmarkOrder takes in orders of 256 concurrent buyers at the gate and writes them: the
// way of an order without HTTP and pushes. Metrics per order: CPU time of Redis and of
// this process, bytes of the append-only file. Compare designs in turns, with binaries
// that `go test -c` built: the load of the machine changes CPU time, too.
func BenchmarkOrder(b *testing.B) {
	server := testenv.RedisServer(b, "--appendfsync", "everysec")
	conn, db := server.Conn(), testdb.Postgres(b)
	keys := reservation.Keys{Prefix: "t:"}
	saleID, item := id.New[id.Sale](), id.New[id.Item]()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	now := time.Now()
	must(db.WithTx(b.Context(), func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Sale.Create().SetID(saleID).SetSlug(saleID.String()).SetTitle("Test").SetStatus(sale.StatusLIVE).
			SetStartsAt(now).SetEndsAt(now.Add(time.Hour)).SetPreheatAt(now).SetPaymentWindowSeconds(900).
			SetPurchaseLimit(1).SetEpoch(1).SetCreatedAt(now).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.SaleItem.Create().SetID(item).SetSaleID(saleID).SetGoodsID(id.New[id.Goods]()).SetPosition(0).
			SetPriceMinor(1999).SetCurrency("EUR").SetTotal(b.N).SetAvailable(b.N).Exec(ctx)
	}))
	gate := reservation.NewGate(reservation.GateConfig{Client: conn.Script, Keys: keys, Log: quiet})
	_, err := gate.Begin(b.Context(), saleID, item, 1)
	must(err)
	_, err = gate.Open(b.Context(), reservation.Contents{
		Sale: saleID, Item: item, State: reservation.GateOpen, Epoch: 1, Opens: now.Add(-time.Hour), Closes: now.Add(time.Hour),
		Limit: 1, Total: b.N, Stock: b.N, Revision: 1,
	})
	must(err)
	attempts := make([]reservation.Attempt, b.N)
	pipe := conn.Cmd.Pipeline()
	for i := range attempts {
		user := id.New[id.User]()
		attempts[i] = reservation.Attempt{
			Task: id.NewTaskOf(saleID, item, user), Sale: saleID, Item: item, User: user, Quantity: 1,
			IdempotencyKey: id.New[uuid.UUID]().String(), Terms: "1999|EUR|900", OnlyItem: true,
			Tries: reservation.Tries{Burst: 5, Window: 5 * time.Second},
		}
		grant(b.Context(), pipe, keys, &attempts[i])
		if pipe.Len() >= 1000 || i == b.N-1 {
			_, err := pipe.Exec(b.Context())
			must(err)
		}
	}
	writer := order.NewWriter(order.WriterConfig{
		DB: db, AfterCommit: order.NewAfterCommit(order.AfterCommitConfig{Cache: order.NewCache(conn, keys.Tasks, nil), Log: quiet}),
	})
	router, err := stream.NewRouter(stream.RouterConfig{
		NewSubscriber: func() (*stream.Subscriber, error) {
			return stream.NewSubscriber(stream.SubscriberConfig{Client: conn.NewBlocking(), Group: "orders", Consumer: "bench", Log: quiet})
		},
		Handlers: []stream.Handler{{
			Name: "orders", Topics: []string{keys.Orders(id.ShardOf(saleID))}, Handle: orderintake.NewHandler(writer, nil, nil).Handle, Split: order.Split,
		}},
		DeadLetters: stream.NewDeadLetters(stream.DeadLettersConfig{Client: conn.Cmd, Record: deadletter.NewStore(deadletter.Config{DB: db}), Log: quiet}), Log: quiet,
	})
	must(err)

	redisBefore, aofBefore, processBefore := redisFigure(b, conn.Cmd, "used_cpu_user")+redisFigure(b, conn.Cmd, "used_cpu_sys"),
		redisFigure(b, conn.Cmd, "aof_current_size"), processorTime(b)
	b.ResetTimer()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- router.Run(ctx) }()
	var buyers errgroup.Group
	buyers.SetLimit(256)
	for _, a := range attempts {
		buyers.Go(func() error {
			o, err := gate.Reserve(context.Background(), a)
			if err == nil && o.Code != reservation.Accepted {
				b.Errorf("refused: %+v", o)
			}
			return err
		})
	}
	must(buyers.Wait())
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepted/s")
	testenv.Eventually(b, testenv.Wait, func() bool {
		n, err := db.Ent.Order.Query().Where(entorder.ItemID(item)).Count(b.Context())
		return err == nil && n == b.N
	}, "all orders are written")
	b.StopTimer()
	must(writer.Close(context.Background()))
	n := float64(b.N)
	b.ReportMetric((processorTime(b)-processBefore)*1e6/n, "client-µs/order")
	b.ReportMetric((redisFigure(b, conn.Cmd, "used_cpu_user")+redisFigure(b, conn.Cmd, "used_cpu_sys")-redisBefore)*1e6/n, "redis-µs/order")
	b.ReportMetric((redisFigure(b, conn.Cmd, "aof_current_size")-aofBefore)/n, "aof-B/order")
	b.ReportMetric(n/b.Elapsed().Seconds(), "written/s")
	cancel()
	must(<-stopped)
}

// grant writes the permit of an attempt.
func grant(ctx context.Context, pipe redis.Pipeliner, keys reservation.Keys, a *reservation.Attempt) {
	a.Permit = reservation.Permit{Epoch: 1, Until: time.UnixMilli(time.Now().Add(time.Hour).UnixMilli())}
	pipe.ZAdd(ctx, keys.Permits(id.ShardOf(a.Sale), a.Item), redis.Z{Score: float64(a.Permit.Until.UnixMilli()), Member: a.User.String()})
}

// redisFigure reads a number from INFO.
func redisFigure(b *testing.B, client redis.UniversalClient, name string) float64 {
	b.Helper()
	for line := range strings.Lines(client.Info(b.Context(), "cpu", "persistence").Val()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			return v
		}
	}
	b.Fatalf("INFO has no %s", name)
	return 0
}

// processorTime is the CPU time of this process in seconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
