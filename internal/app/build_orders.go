package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/stream"
	"seckill/internal/staff/inbox"
)

const (
	// trimEvery is how often acknowledged entries are removed from streams.
	trimEvery = 2 * time.Second
	// idleTrim is the longest pause while there is nothing to remove.
	idleTrim = 16 * time.Second
	// measureEvery is how often the depth of the streams is read.
	measureEvery = 5 * time.Second
)

// gates holds the catalogue and the gates in Redis.
type gates struct {
	sales    *sale.Store
	versions *sale.Versions
	catalog  *sale.Catalog
	reserve  redis.UniversalClient // of Gate.Reserve alone, so that no other command delays its batches
	gate     *reservation.Gate
	stock    *reservation.StockCache
	items    catalogItems
	clock    *clock.Shared // of Redis, Postgres and this host together: when sales end and orders and offers expire
}

func newGates(ctx context.Context, b base) (gates, error) {
	if err := reservation.LoadScripts(ctx, b.svc.redis.Script); err != nil {
		return gates{}, err
	}
	sales := sale.NewStore(b.svc.db.Ent)
	versions := sale.NewVersions(b.svc.redis.Cmd, b.keys.Prefix, b.log)
	catalog := sale.NewCatalog(sales, b.clock, b.log).Following(versions).Bounded(b.absences)
	reserve := b.svc.redis.NewClient()
	b.svc.onClose(reserve.Close)
	gate := reservation.NewGate(reservation.GateConfig{
		Client: b.svc.redis.Script, ReserveClient: reserve, ReadClient: b.svc.redis.Cmd,
		Keys: b.keys, Tracer: b.tracer, Timeout: b.scaled(reservation.DefaultTimeout), Registerer: b.registry, Log: b.log,
	})
	items := catalogItems{catalog}
	shared := sharedClock(b)
	stock := reservation.NewStockCache(reservation.StockCacheConfig{
		Client: b.svc.redis.Cmd, Keys: b.keys, Clock: b.clock, Shared: shared, Log: b.log, Items: items,
	})
	err := shared.Measure(ctx) // the stages below read the clock
	return gates{
		sales: sales, versions: versions, catalog: catalog, reserve: reserve, gate: gate, stock: stock, items: items,
		clock: shared,
	}, err
}

// sharedClock returns the clock that the processes of an installation share. SQLite has
// no clock of its own.
func sharedClock(b base) *clock.Shared {
	postgres := func(ctx context.Context) ([]time.Time, error) {
		var now time.Time
		err := b.svc.db.SQL.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now)
		return []time.Time{now}, err
	}
	if b.svc.db.Dialect != dialect.Postgres {
		postgres = nil
	}
	return clock.NewShared(b.clock, b.svc.redis.Times, postgres, b.log)
}

// catalogItems is the catalogue as packages below it see it: reservation.Items.
type catalogItems struct{ catalog *sale.Catalog }

// Loaded implements reservation.Items.
func (i catalogItems) Loaded(ctx context.Context) ([]reservation.ItemRef, error) {
	sales, err := i.catalog.Loaded(ctx)
	return refsOf(sales), err
}

// All implements reservation.Items.
func (i catalogItems) All(ctx context.Context) ([]reservation.ItemRef, error) {
	snap, err := i.catalog.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return refsOf(snap.Sales), nil
}

func refsOf(sales []*sale.Sale) (refs []reservation.ItemRef) {
	for _, v := range sales {
		for _, item := range v.Items {
			refs = append(refs, reservation.ItemRef{Sale: v.ID, Item: item.ID})
		}
	}
	return refs
}

// messages holds the streams and the hub that connects this process with the others.
type messages struct {
	hub         *notifier.Hub
	bus         *notifier.Bus
	publisher   stream.Publisher
	letters     *deadletter.Store
	deadLetters *stream.DeadLetters
	inspector   stream.Inspector
	inbox       *inbox.Reporter
}

func newMessages(b base) (messages, error) {
	hub := notifier.NewHub(notifier.Options{Registerer: b.registry, Log: b.log})
	broadcast, err := stream.NewBroadcast(stream.BroadcastConfig{
		Publish: b.svc.redis.NewClient(), Read: b.svc.redis.NewBlocking(), Key: b.keys.Status(), Log: b.log,
		Metrics: b.streamMetrics,
	})
	if err != nil {
		return messages{}, err
	}
	b.svc.onClose(broadcast.Close)
	publisher, err := stream.NewPublisher(b.svc.redis.NewClient(), b.log)
	if err != nil {
		return messages{}, fmt.Errorf("publisher: %w", err)
	}
	b.svc.onClose(publisher.Close)
	bus := notifier.NewBus(hub, broadcast, b.log)
	reporter := inbox.NewReporter(bus, b.clock, b.log)
	letters := deadletter.NewStore(deadletter.Config{DB: b.svc.db, Clock: b.clock, Inbox: reporter})
	return messages{
		hub: hub, bus: bus, publisher: publisher, letters: letters, deadLetters: newDeadLetters(b, letters), inbox: reporter,
		inspector: stream.Inspector{Client: b.svc.redis.Cmd, Clock: b.clock},
	}, nil
}

func newDeadLetters(b base, letters *deadletter.Store) *stream.DeadLetters {
	return stream.NewDeadLetters(stream.DeadLettersConfig{
		Client: b.svc.redis.Cmd, Record: letters, Key: b.keys.DeadLetters(), Log: b.log, Metrics: b.streamMetrics,
	})
}

// orders holds the order tables, their copies in Redis, and the intake.
type orders struct {
	status      *storefront.StatusPublisher
	afterCommit *order.AfterCommit
	cache       *order.Cache
	store       *order.Store
	writer      *order.Writer
	letters     *orderintake.DeadLetters
	backlog     *orderintake.Backlog
	positions   *orderintake.QueuePositions // of orders that wait for a worker
}

func newOrders(b base, g gates, m messages, s stats) orders {
	cache := order.NewCache(b.svc.redis, b.keys.Tasks, g.clock)
	store := order.NewStore(order.StoreConfig{
		DB: b.svc.db, Cache: cache, Clock: g.clock, Log: b.log,
		Submitted: orderintake.ReservedTasks{Gate: g.gate, Items: g.items},
		Vanished:  orderintake.Vanished{Items: g.items, Clock: g.clock},
	})
	status := storefront.NewStatusPublisher(m.bus, s.feed)
	afterCommit := order.NewAfterCommit(order.AfterCommitConfig{
		Cache: cache, Tasks: status.Tasks, Orders: status.Orders, Metrics: b.orderMetrics,
		Timeout: b.scaled(order.PublishTimeout), Log: b.log,
	})
	writer := order.NewWriter(order.WriterConfig{
		DB: b.svc.db, AfterCommit: afterCommit, Facts: b.facts(), Clock: g.clock, Tracer: b.tracer,
		Metrics: b.orderMetrics, Timeout: b.scaled(order.BatchTimeout), Persons: &b.persons,
	})
	letters := orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: b.svc.db, Store: m.letters, Letters: m.deadLetters, Orders: store, Writer: writer, Clock: g.clock, Log: b.log,
	})
	return orders{
		status: status, afterCommit: afterCommit, cache: cache, store: store, writer: writer, letters: letters,
		backlog: orderintake.NewBacklog(b.svc.redis, b.keys, letters),
		positions: orderintake.NewQueuePositions(orderintake.QueuePositionsConfig{Clock: b.clock,
			Queue: orderQueue(b, m.inspector)}),
	}
}

func orderQueue(b base, inspector stream.Inspector) orderintake.Queue {
	return orderintake.Queue{Inspector: inspector, Keys: b.keys, Group: order.Group}
}

// worker holds the router that turns messages into orders.
type worker struct {
	router *stream.Router // nil without the worker role
	loops  []periodic.Loop
}

func newWorker(b base, g gates, m messages, o orders) (worker, error) {
	if !b.roles.Worker {
		return worker{}, nil
	}
	topics := orderTopics(b)
	inFlight := orderintake.NewInFlight(orderintake.InFlightConfig{
		Gate: g.gate, Keys: b.keys, Log: b.log,
		Streams: stream.Appender{Client: b.svc.redis.Script},
	})
	handler := orderintake.NewHandler(o.writer, g.gate, inFlight)
	router, err := newRouter(b, m, stream.Handler{Name: "orders", Topics: topics, Handle: handler.Handle,
		Split: order.Split},
		consumer{group: order.Group, timeout: b.scaled(orderintake.HandleTimeout)})
	if err != nil {
		return worker{}, err
	}
	b.streamMetrics.ShowSilence(router, b.clock)
	gate := payment.NewRedisGate(g.gate, func(r order.Reservation, epoch, revision int64, remaining int) {
		b.orderMetrics.Released()
		g.stock.Update(r.Item, epoch, revision, remaining)
	})
	return worker{router: router, loops: []periodic.Loop{
		order.TaskReturns(b.svc.db, gate.ReturnAll, b.log),
		o.letters.Loop(),
		inFlight.Loop(),
		{Name: "trim streams", Every: trimEvery, Idle: idleTrim, Step: stream.NewTrimmer(b.svc.redis.Cmd, topics,
			b.streamMetrics).Step, Log: b.log},
	}}, nil
}

// consumer configures how a router reads a stream. Zero selects the default of package
// stream.
type consumer struct {
	group   string
	timeout time.Duration // of one call of the handler
}

func newRouter(b base, m messages, h stream.Handler, c consumer) (*stream.Router, error) {
	router, err := stream.NewRouter(stream.RouterConfig{
		NewSubscriber: func() (*stream.Subscriber, error) {
			return stream.NewSubscriber(stream.SubscriberConfig{
				Client: b.svc.redis.NewBlocking(), Group: c.group, Consumer: consumerName(b.cfg.AdminAddr),
				Drain: b.scaled(stream.DefaultDrain), Log: b.log, Metrics: b.streamMetrics,
			})
		},
		Handlers: []stream.Handler{h}, DeadLetters: m.deadLetters,
		HandlerTimeout: c.timeout, Log: b.log, Metrics: b.streamMetrics,
	})
	if err != nil {
		return nil, fmt.Errorf("router of %s: %w", h.Name, err)
	}
	return router, nil
}

// consumerName returns a name that is the same each time this process starts, so that it
// finds its own pending messages, and that differs between processes on one host.
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

// orderTopics returns the order streams of all shards.
func orderTopics(b base) []string {
	topics := make([]string, id.Shards)
	for shard := range topics {
		topics[shard] = b.keys.Orders(shard)
	}
	return topics
}

// measureStreams returns the loop that measures the order streams. Schedulers run it
// too: without any worker, they show that orders are delayed.
func measureStreams(b base, m messages) periodic.Loop {
	return periodic.Loop{Name: "measure streams", Every: measureEvery, Log: b.log,
		Step: func(ctx context.Context) (map[string]int, error) {
			return nil, m.inspector.Measure(ctx, b.streamMetrics, order.Group, orderTopics(b))
		}}
}
