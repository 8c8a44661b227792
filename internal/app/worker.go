package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/orderintake"
	"seckill/internal/payment"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
	"seckill/internal/stream"
)

// ordersGroup is the consumer group of the order streams.
const ordersGroup = "orders"

// trimEvery is how often acknowledged entries are removed.
const trimEvery = 2 * time.Second

// worker is what turns messages into orders.
type worker struct {
	router *stream.Router
	writer *order.Writer
	loops  []periodic.Loop
}

// newWorker wires streams → handler → writer → status bus.
func (a *App) newWorker() (*worker, error) {
	topics := orderStreams(a.keys)
	writer := a.newWriter()
	handler := orderintake.NewHandler(writer)
	router, err := stream.NewRouter(stream.RouterConfig{
		NewSubscriber: func() (*stream.Subscriber, error) {
			return stream.NewSubscriber(stream.SubscriberConfig{
				Client: a.svc.redis.NewBlocking(), Group: ordersGroup, Consumer: consumerName(a.cfg.AdminAddr),
				Batch: a.cfg.OrderBatch, ClaimIdle: a.cfg.ClaimIdle, Log: a.log, Metrics: a.streamMetrics,
			})
		},
		Handlers:    []stream.Handler{{Name: "orders", Topics: topics, Handle: handler.Handle}},
		DeadLetters: a.deadLetters, IsTransient: postgres.Retryable, HandlerTimeout: orderintake.HandleTimeout,
		Log: a.log, Metrics: a.streamMetrics,
	})
	if err != nil {
		return nil, fmt.Errorf("order router: %w", err)
	}
	trimmer := stream.NewTrimmer(a.svc.redis.Cmd, topics, a.streamMetrics)
	gate := payment.NewRedisGate(a.gate, func(c order.Reservation, epoch, revision int64, remaining int) {
		a.orderMetrics.Released()
		a.stock.Update(c.Item, epoch, revision, remaining)
	})
	return &worker{router: router, writer: writer, loops: []periodic.Loop{
		order.TaskReturns(a.svc.db, gate.ReturnAll, a.log),
		a.letters.Loop(),
		{Name: "trim streams", Every: trimEvery, Step: trimmer.Step, Log: a.log},
		{Name: "measure streams", Every: measureEvery, Step: a.measureStreams(topics), Log: a.log},
	}}, nil
}

func orderStreams(keys reservation.Keys) []string {
	topics := make([]string, id.Shards)
	for shard := range topics {
		topics[shard] = keys.Orders(shard)
	}
	return topics
}

// consumerName is the same each time this process starts, so that it finds its
// own unfinished messages again, and differs between processes of one host.
func consumerName(adminAddr string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	if _, port, err := net.SplitHostPort(adminAddr); err == nil {
		host += "-" + port
	}
	return strings.ReplaceAll(host, " ", "")
}

// start runs the worker's parts in a group; stopping it finishes and
// acknowledges what is in flight.
func (w *worker) start(g *group) {
	g.start("order router", w.router.Run)
	for _, loop := range w.loops {
		g.start(loop.Name, loop.Run)
	}
}

// close waits for the last batch.
func (w *worker) close(ctx context.Context, log *slog.Logger) {
	if err := w.writer.Close(ctx); err != nil {
		log.WarnContext(ctx, "order writer did not finish in time", slog.Any("error", err))
	}
}
