package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/account"
	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/admission/queue"
	"seckill/internal/auth"
	"seckill/internal/checkout"
	"seckill/internal/clock"
	"seckill/internal/config"
	"seckill/internal/notifier"
	"seckill/internal/order"
	"seckill/internal/preload"
	"seckill/internal/ratelimit"
	"seckill/internal/reservation"
	"seckill/internal/sale"
	"seckill/internal/salestats"
	"seckill/internal/server"
	"seckill/internal/storefront"
	"seckill/internal/stream"
	"seckill/internal/telemetry"
)

// leeway is added to the life of access tokens when ended sessions are remembered.
const leeway = time.Minute

// wire builds a process on its services. Nothing runs and nothing listens yet. The
// services are closed with the process.
func wire(ctx context.Context, cfg *config.Config, roles Roles, svc *services, log *slog.Logger) (*App, error) {
	a := &App{
		cfg: cfg, log: log, clock: clock.System{}, roles: roles, svc: svc,
		keys: reservation.Keys{Prefix: cfg.RedisPrefix}, build: telemetry.ReadBuild(), registry: telemetry.NewRegistry(),
	}
	a.orderMetrics = order.NewMetrics(a.registry)
	a.streamMetrics = stream.NewMetrics(a.registry)

	a.reserving = svc.redis.NewClient()
	svc.close = append(svc.close, a.reserving.Close)
	a.gate = reservation.NewGate(reservation.GateConfig{
		Client: svc.redis.Script, ReserveClient: a.reserving, ReadClient: svc.redis.Cmd, Keys: a.keys, Registerer: a.registry, Log: log,
	})
	a.stock = reservation.NewStockCache(reservation.StockCacheConfig{
		Client: a.svc.redis.Cmd, Keys: a.keys, Clock: a.clock, Log: a.log, Loaded: a.loadedItems,
	})
	if err := a.stock.Sync(ctx); err != nil { // before anything is judged by it
		return nil, err
	}
	a.common = gateClock{a.stock}
	a.wireOrders()
	a.office = a.newOffice()
	a.wireLetters()
	a.wireSale()
	if err := a.wireNotifier(); err != nil {
		return nil, err
	}
	keys, err := signingKeys(cfg)
	if err != nil {
		return nil, err
	}
	if err := a.wireGate(keys); err != nil {
		return nil, err
	}
	if err := a.wireAccounts(keys); err != nil {
		return nil, err
	}
	a.wireWaitlist()
	a.wireBuying()
	if err := a.listen(ctx); err != nil {
		return nil, err
	}
	if err := a.wireCashier(keys); err != nil {
		return nil, err
	}
	if err := a.wireDesk(); err != nil {
		return nil, err
	}
	if err := reservation.LoadScripts(ctx, svc.redis.Script); err != nil {
		return nil, err
	}
	if roles.Worker {
		if a.worker, err = a.newWorker(); err != nil {
			return nil, err
		}
	}
	if roles != (Roles{}) {
		if a.edge, err = a.newEdge(ctx); err != nil {
			return nil, err
		}
	}
	if a.worker != nil {
		a.streamMetrics.ShowSilence(a.worker.router, a.clock)
	}
	return a, nil
}

// listen opens the public listener first of all, because payments name its address.
func (a *App) listen(ctx context.Context) error {
	if !a.roles.API {
		return nil
	}
	var lc net.ListenConfig
	var err error
	if a.listener, err = lc.Listen(ctx, "tcp", a.cfg.HTTPAddr); err != nil {
		return fmt.Errorf("public listener: %w", err)
	}
	a.svc.close = append(a.svc.close, func() error {
		_ = a.listener.Close() // closed by the server already, unless the start failed
		return nil
	})
	return nil
}

// wireSale joins the catalogue and the gates in Redis.
func (a *App) wireSale() {
	a.catalog = sale.NewCatalog(a.office.sales, a.clock, a.log).Following(a.office.versions)
	a.preloader = preload.New(preload.Config{
		DB: a.svc.db, Gate: a.gate,
		Pending: a.backlog.Requests, Versions: a.office.versions, Finish: a.office.figures.Keep, Note: a.office.feed.Act,
		Forget: a.catalog.Forget, Clock: a.common, Log: a.log,
	})
}

// loadedItems lists the items whose gate should be in Redis.
func (a *App) loadedItems(ctx context.Context) ([]reservation.ItemRef, error) {
	loaded, err := a.loadedSales(ctx)
	if err != nil {
		return nil, err
	}
	var refs []reservation.ItemRef
	for _, v := range loaded {
		for _, item := range v.Items {
			refs = append(refs, reservation.ItemRef{Sale: v.ID, Item: item.ID})
		}
	}
	return refs, nil
}

// wireOrders joins the record of orders and its copies in Redis.
func (a *App) wireOrders() {
	a.cache = order.NewCache(a.svc.redis, a.keys.Tasks, a.common)
	a.orders = order.NewStore(order.StoreConfig{
		DB: a.svc.db, Cache: a.cache, Clock: a.common, Log: a.log,
	})
	a.deadLetters = stream.NewDeadLetters(stream.DeadLettersConfig{
		Client: a.svc.redis.Cmd, Key: a.keys.DeadLetters(), Log: a.log, Metrics: a.streamMetrics,
	})
}

// announce tells every process how tasks ended.
func (a *App) announce(ctx context.Context, tasks []order.Task) error {
	entries := make([]notifier.StatusEntry, 0, 2*len(tasks))
	for i := range tasks {
		t := &tasks[i]
		value, err := t.MarshalJSON() // json.Marshal would read it once more
		if err != nil {
			return fmt.Errorf("announce task %s: %w", t.ID, err)
		}
		entries = append(entries,
			notifier.StatusEntry{Key: storefront.TaskKey(t.ID), Revision: t.Revision, Terminal: t.Ended(), Value: value},
			buyerEntry(t.User))
	}
	return a.bus.Publish(ctx, entries)
}

// wireAccounts joins who is asking: people, sessions, tokens.
func (a *App) wireAccounts(keys auth.Keys) error {
	people := account.NewStore(a.svc.db, a.clock)
	directory := account.NewDirectory(account.DirectoryConfig{
		Store: people, Client: a.svc.redis.Script, Prefix: a.keys.Prefix, Clock: a.clock, Log: a.log,
	})
	a.revocations = auth.NewRevocations(auth.RevocationsConfig{
		Client: a.svc.redis.Cmd, Tail: a.blocking(), Prefix: a.keys.Prefix, Keep: a.cfg.AccessTokenTTL + leeway,
		Clock: a.clock, Log: a.log, Ended: people.Ended,
	})
	a.revocations.OnUserChanged(directory.Forget)
	a.people = people
	var err error
	a.tokens, err = auth.NewTokens(auth.TokensConfig{
		Keys: keys, AccessLife: a.cfg.AccessTokenTTL, Clock: a.clock,
		Revoked: a.revocations.Revoked, Role: directory.Role,
	})
	if err != nil {
		return err
	}
	a.security = account.NewSecurityLog(a.svc.db, a.clock, a.log, server.ClientAddr)
	admin := account.NewAdmin(account.AdminConfig{
		Store: people, Directory: directory, Revocations: a.revocations, Security: a.security, Log: a.log, SignedOut: a.queue.SignedOut,
	})
	a.accounts, err = account.New(account.Config{
		DB: a.svc.db, Redis: a.svc.redis.Script, Prefix: a.keys.Prefix, Keys: keys, Tokens: a.tokens,
		Revocations: a.revocations, Directory: directory, Captchas: a.captchas, Limits: a.limits,
		Clock: a.clock, Log: a.log, Idle: a.cfg.RefreshTokenTTL, Admin: admin,
	})
	return err
}

// blocking returns a client for blocking reads that is closed with the process.
func (a *App) blocking() redis.UniversalClient {
	client := a.svc.redis.NewBlocking()
	a.svc.close = append(a.svc.close, client.Close)
	return client
}

func signingKeys(cfg *config.Config) (auth.Keys, error) {
	current, previous, err := cfg.SigningKeys()
	if err != nil {
		return auth.Keys{}, fmt.Errorf("jwt key: %w", err)
	}
	older := make([]auth.Key, len(previous))
	for i, k := range previous {
		older[i] = auth.Key(k)
	}
	return auth.NewKeys(auth.Key(current), older...)
}

// wireGate joins what stands before the stock: limits, captchas, paths.
func (a *App) wireGate(keys auth.Keys) (err error) {
	a.limits = ratelimit.New(ratelimit.Config{
		Client: a.svc.redis.Script, Prefix: a.keys.Prefix, Clock: a.clock, Off: !a.cfg.LimitsOn(), Registerer: a.registry,
	})
	a.captchas, err = captcha.New(captcha.Config{
		Client: a.svc.redis.Script, Keys: a.keys, Secret: keys.Derive("captcha")[0],
		Life: a.cfg.CaptchaTTL, PowMax: a.cfg.PowMax, PoolSize: a.cfg.CaptchaPool, Clock: a.clock, Rules: checkout.CaptchaRules(a.catalog), SameForAll: !a.cfg.LimitsOn(),
		Posed: func(sale uuid.UUID) { a.office.counts.Stepped(sale, salestats.StepCaptcha, 1) },
	})
	if err != nil {
		return fmt.Errorf("captchas: %w", err)
	}
	a.paths = path.New(path.Config{
		Client: a.svc.redis.Script, Keys: a.keys, Captchas: a.captchas, Life: a.cfg.PathTTL, Ratio: a.cfg.PermitRatio,
	})
	a.queue = queue.New(queue.Config{
		Client: a.svc.redis.Script, Keys: a.keys, Captchas: a.captchas, Life: a.cfg.PathTTL,
		Rules: checkout.QueueRules(a.catalog, int(a.cfg.PermitRatio*1000+0.5)), Gone: a.office.sales.Gone,
		Admitted: func(sale uuid.UUID, n int) { a.office.counts.Stepped(sale, salestats.StepPath, n) },
	})
	return nil
}

// wireBuying joins what buyers see and do.
func (a *App) wireBuying() {
	a.store = storefront.New(storefront.Config{
		Catalog: a.catalog, Stock: a.stock, Gate: a.gate,
		Orders: a.orders, Waitlist: a.waitlist, Outlooks: a.outlooks, Hub: a.hub,
	})
	tries := checkout.NewTries(a.clock)
	if !a.cfg.LimitsOn() {
		tries = checkout.NoLimit()
	}
	a.checkout = checkout.New(checkout.Config{
		Catalog: a.catalog, Stock: a.stock, Gate: a.gate, Orders: a.orders, Paths: a.paths, Queue: a.queue,
		Waitlist: a.waitlist, Tries: tries, Placed: a.office.counts.Placed,
		Stepped: a.office.counts.Stepped,
	})
}

// wireNotifier joins the hub of this process with those of all others, and the
// streams that messages are published to.
func (a *App) wireNotifier() error {
	a.hub = notifier.NewHub(notifier.Options{Registerer: a.registry, LoadFailed: func(key string, err error) {
		a.log.Warn("a followed state cannot be read", slog.String("key", key), slog.Any("error", err))
	}})
	broadcast, err := stream.NewBroadcast(stream.BroadcastConfig{
		Publish: a.svc.redis.NewClient(), Read: a.svc.redis.NewBlocking(), Key: a.keys.Status(),
		Log: a.log, Metrics: a.streamMetrics,
	})
	if err != nil {
		return err
	}
	a.svc.close = append(a.svc.close, broadcast.Close)
	a.bus = notifier.NewBus(a.hub, broadcast, a.log)
	if a.publisher, err = stream.NewPublisher(a.svc.redis.NewClient(), a.log); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	a.svc.close = append(a.svc.close, a.publisher.Close)
	return nil
}
