package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"entgo.io/ent/dialect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/app/server"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/attempt"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/salestats"
	"seckill/internal/buy/storefront"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/notifier"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
	"seckill/internal/staff/inbox"
)

// ordersGroup is the consumer group of the order streams.
const ordersGroup = "orders"

// build wires a process on its services and opens its listeners. Nothing runs yet. The
// services are closed with the process.
func build(ctx context.Context, cfg *config.Config, roles Roles, svc *services, log *slog.Logger) (*App, error) { //nolint:funlen // the dependencies are read in one place
	b := newBase(cfg, roles, svc, log)
	if err := b.trace(); err != nil {
		return nil, err
	}
	gates, err := newGates(ctx, b)
	if err != nil {
		return nil, err
	}
	messages, err := newMessages(b)
	if err != nil {
		return nil, err
	}
	stats := newStats(b, gates, messages)
	orders := newOrders(b, gates, messages, stats)
	keys, err := signingKeys(cfg)
	if err != nil {
		return nil, err
	}
	admission, err := newAdmission(b, gates, stats, keys)
	if err != nil {
		return nil, err
	}
	listener, err := listenPublic(ctx, b)
	if err != nil {
		return nil, err
	}
	mailing := newMailing(b, keys)
	accounts, err := newAccounts(b, admission, mailing, keys)
	if err != nil {
		return nil, err
	}
	noticed, err := newNotices(b, gates.clock, noticeParts{keys, mailing, listener})
	if err != nil {
		return nil, err
	}
	if mailing.sender, err = newSender(b, noticeParts{keys, mailing, listener}, noticed.Texts()); err != nil {
		return nil, err
	}
	waiting := newWaitlist(b, gates, orders)
	payments, err := newPayments(b, gates, messages, orders, paymentSetup{keys, listener, accounts.security, receipts(b, mailing, noticed)})
	if err != nil {
		return nil, err
	}
	scheduler := newScheduler(b, gates, stats, schedulerParts{messages, orders, payments, accounts.directory})
	worker, err := newWorker(b, gates, messages, orders)
	if err != nil {
		return nil, err
	}
	shop := newShop(b, gates, messages, stats, shopParts{orders, admission, waiting, accounts.directory})
	hooks := newWebhooks(b, gates.clock, messages, keys, accounts.security)
	admin, err := newAdmin(b, gates, stats, adminParts{waiting, messages, orders, payments, scheduler, accounts})
	if err != nil {
		return nil, err
	}
	providers, err := newProviders(b, accounts, keys, listener)
	if err != nil {
		return nil, err
	}
	receipts, err := acceptance.NewSigner(cfg.PublicURL, keys.Derive("receipts"))
	if err != nil {
		return nil, err
	}
	waits := newInbox(b, gates, messages, inboxParts{admin, payments, hooks})
	tabs := server.NewTabs(playgroundTabs("SALE_ID", "ITEM_ID"))
	seeds := seeding{db: svc.db, clock: gates.clock, gates: scheduler.preloader, tokens: accounts.tokens, paths: admission.paths}
	a := &App{
		cfg: cfg, log: log, roles: roles, svc: svc, tabs: tabs, writer: orders.writer, operator: admin.operator, payments: payments.service,
		seeding: seeds,
	}
	a.schedule(gates, messages, stats, runningParts{admission, accounts, waiting, payments, scheduler, worker, shop, admin, hooks, mailing, noticed, waits, measureStreams(b, messages)})
	return a, a.listen(ctx, b, gates, serverParts{tabs, listener, stats, orders, admission, accounts, waiting, payments, shop, admin, hooks, noticed, waits, providers, receipts, demoDrill(b, seeds)})
}

// listen opens the listeners. A process without roles has none.
func (a *App) listen(ctx context.Context, b base, g gates, in serverParts) error {
	if a.roles == (Roles{}) {
		return nil
	}
	s, trusted, err := newServer(ctx, b, g, in)
	if trusted != nil {
		a.accepting = append(a.accepting, part{trusted.Name, trusted.Run})
	}
	a.server = s
	return err
}

// base holds what every stage needs.
type base struct {
	cfg           *config.Config
	log           *slog.Logger
	roles         Roles
	svc           *services
	keys          reservation.Keys
	clock         clock.Clock // of this host; times compared across processes come from gates.clock
	registry      *prometheus.Registry
	orderMetrics  *order.Metrics
	streamMetrics *stream.Metrics
	outbox        *webhook.Outbox
	notices       *notice.Outbox     // nil = buyers get none
	admitted      *notice.Admissions // nil = nothing is sent to browsers
	tracer        *tracing.Tracer    // nil = off
	absences      *ratelimit.Absences
}

func newBase(cfg *config.Config, roles Roles, svc *services, log *slog.Logger) base {
	registry := telemetry.NewRegistry()
	return base{
		cfg: cfg, log: log, roles: roles, svc: svc, keys: reservation.Keys{Prefix: cfg.RedisPrefix}, clock: clock.System{},
		registry: registry, orderMetrics: order.NewMetrics(registry), streamMetrics: stream.NewMetrics(registry),
		outbox:  webhook.NewOutbox(clock.System{}, servicetoken.EventsAreRead(clock.System{}, webhook.KeepEvents)),
		notices: newNoticeOutbox(cfg), admitted: newAdmissions(cfg), absences: newAbsences(cfg),
	}
}

// newAbsences returns the limit of look-ups of ids that nothing has; nil when limits are
// off. Staff and the server itself are not limited.
func newAbsences(cfg *config.Config) *ratelimit.Absences {
	if !cfg.LimitsOn() {
		return nil
	}
	return ratelimit.NewAbsences(clock.System{}, func(ctx context.Context) ratelimit.Caller {
		p := auth.PrincipalFrom(ctx)
		switch addr := auth.ClientAddr(ctx); {
		case p != nil && p.Role.AtLeast(auth.Operator):
		case p != nil:
			return ratelimit.Caller{User: ratelimit.User(p.UserID)}
		case addr.IsValid():
			return ratelimit.Caller{Ranges: ratelimit.Ranges(addr)}
		}
		return ratelimit.Caller{}
	})
}

// scaled grows a timeout inside a request in proportion to the timeout of requests, if
// that is above its default.
func (b base) scaled(d time.Duration) time.Duration {
	grown := b.cfg.RequestTimeout.Seconds() / config.DefaultRequestTimeout.Seconds()
	return max(d, time.Duration(float64(d)*grown))
}

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
		Publish: b.svc.redis.NewClient(), Read: b.svc.redis.NewBlocking(), Key: b.keys.Status(), Log: b.log, Metrics: b.streamMetrics,
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

// stats holds the counters of a sale and the services that read them.
type stats struct {
	feed    *salestats.Feed
	counts  *salestats.Recorder
	figures *salestats.Reader
	refused *attempt.Log
}

func newStats(b base, g gates, m messages) stats {
	refused := attempt.NewLog(attempt.Config{DB: b.svc.db, Clock: g.clock, Registerer: b.registry, Log: b.log})
	return stats{
		refused: refused,
		feed:    salestats.NewFeed(salestats.FeedConfig{Client: b.svc.redis.Cmd, Keys: b.keys, Timeout: b.scaled(salestats.FeedTimeout), Log: b.log}),
		counts: salestats.NewRecorder(salestats.Config{
			Client: b.svc.redis.Script, Keys: b.keys, Remaining: salestats.Gates{Catalog: g.catalog, Stock: g.stock}, Clock: b.clock,
			Refusals:   salestats.NewRefusals(refused, g.stock),
			Timeout:    b.scaled(salestats.FlushTimeout),
			Registerer: b.registry, Log: b.log,
		}),
		figures: newFigures(b, m.inspector),
	}
}

func newFigures(b base, inspector stream.Inspector) *salestats.Reader {
	return salestats.NewReader(salestats.ReaderConfig{
		DB: b.svc.db, Client: b.svc.redis.Cmd, Keys: b.keys, Clock: b.clock,
		Queue: orderQueue(b, inspector), Timeout: b.scaled(salestats.ReadTimeout),
	})
}

func orderQueue(b base, inspector stream.Inspector) orderintake.Queue {
	return orderintake.Queue{Inspector: inspector, Keys: b.keys, Group: ordersGroup}
}

// orders holds the order tables, their copies in Redis, and the intake.
type orders struct {
	status    *storefront.Publisher
	publisher *order.Publisher
	cache     *order.Cache
	store     *order.Store
	writer    *order.Writer
	letters   *orderintake.DeadLetters
	backlog   *orderintake.Backlog
	positions *orderintake.QueuePositions // of orders that wait for a worker
}

func newOrders(b base, g gates, m messages, s stats) orders {
	cache := order.NewCache(b.svc.redis, b.keys.Tasks, g.clock)
	store := order.NewStore(order.StoreConfig{
		DB: b.svc.db, Cache: cache, Clock: g.clock, Log: b.log,
		Submitted: orderintake.Submitted{Gate: g.gate, Items: g.items},
		Vanished:  orderintake.Vanished{Items: g.items, Clock: g.clock},
	})
	status := storefront.NewPublisher(m.bus, s.feed)
	publisher := order.NewPublisher(order.PublisherConfig{
		Cache: cache, Tasks: status.Tasks, Orders: status.Orders, Metrics: b.orderMetrics, Timeout: b.scaled(order.PublishTimeout), Log: b.log,
	})
	writer := order.NewWriter(order.WriterConfig{
		DB: b.svc.db, Publisher: publisher, Outbox: b.outbox, Notices: b.notices, Clock: g.clock, Tracer: b.tracer,
		Metrics: b.orderMetrics, Timeout: b.scaled(order.BatchTimeout),
	})
	letters := orderintake.NewDeadLetters(orderintake.DeadLettersConfig{
		DB: b.svc.db, Store: m.letters, Letters: m.deadLetters, Orders: store, Writer: writer, Clock: g.clock, Log: b.log,
	})
	return orders{
		status: status, publisher: publisher, cache: cache, store: store, writer: writer, letters: letters,
		backlog:   orderintake.NewBacklog(b.svc.redis, b.keys, letters),
		positions: orderintake.NewQueuePositions(orderintake.QueuePositionsConfig{Clock: b.clock, Queue: orderQueue(b, m.inspector)}),
	}
}

// listenPublic opens the public listener. It returns nil without the API role. It runs
// before the payments stage, which needs the listener's address.
func listenPublic(ctx context.Context, b base) (net.Listener, error) {
	if !b.roles.API {
		return nil, nil //nolint:nilnil // no role, no listener
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", b.cfg.HTTPAddr)
	if err != nil {
		return nil, fmt.Errorf("public listener: %w", err)
	}
	b.svc.onClose(func() error {
		_ = l.Close() // the server has closed it already, unless the start failed
		return nil
	})
	return l, nil
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
	return periodic.Loop{Name: "measure streams", Every: measureEvery, Log: b.log, Step: func(ctx context.Context) (map[string]int, error) {
		return nil, m.inspector.Measure(ctx, b.streamMetrics, ordersGroup, orderTopics(b))
	}}
}
