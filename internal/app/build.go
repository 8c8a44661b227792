package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/app/server"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/access"
	"seckill/internal/buy/member"
	"seckill/internal/buy/order"
	"seckill/internal/buy/orderfacts"
	"seckill/internal/buy/refusal"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/salestats"
	"seckill/internal/identity/person"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/origin"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
)

// build wires a process on its services and opens its listeners. Nothing runs yet. The
// services are closed with the process.
func build(ctx context.Context, cfg *config.Config, roles Roles, svc *services, log *slog.Logger) (*App, error) { //nolint:funlen // the dependencies are read in one place

	b := newBase(cfg, roles, svc, log)
	if err := b.trace(); err != nil {
		return nil, err
	}
	keys, err := signingKeys(cfg)
	if err != nil {
		return nil, err
	}
	b.persons = person.NewHasher(keys.Derive("person keys"))
	b.codes = access.NewCodes(keys.Derive("access codes"))
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
	admission, err := newAdmission(b, gates, stats, keys)
	if err != nil {
		return nil, err
	}
	listener, err := listenPublic(ctx, b)
	if err != nil {
		return nil, err
	}
	mailing := newMailing(b, keys)
	accounts, err := newAccounts(b, gates, accountParts{admission: admission, mailing: mailing, keys: keys})
	if err != nil {
		return nil, err
	}
	noticed, err := newNotices(b, gates.clock, noticeParts{keys: keys, mailing: mailing, listener: listener})
	if err != nil {
		return nil, err
	}
	if mailing.sender, err = newSender(b, noticeParts{keys: keys, mailing: mailing, listener: listener},
		noticed.Texts()); err != nil {
		return nil, err
	}
	signer, err := acceptance.NewSigner(cfg.PublicURL, keys.Derive("receipts"))
	if err != nil {
		return nil, err
	}
	waiting, err := newWaitlist(b, gates, orders, waitlistParts{captchas: admission.captchas, signer: signer})
	if err != nil {
		return nil, err
	}
	payments, err := newPayments(b, gates, messages, orders,
		paymentSetup{keys: keys, listener: listener, draws: waiting.service, security: accounts.security,
			receipts: receipts(b, mailing, noticed)})
	if err != nil {
		return nil, err
	}
	scheduler := newScheduler(b, gates, stats, schedulerParts{messages: messages, orders: orders, payments: payments,
		users: accounts.directory})
	worker, err := newWorker(b, gates, messages, orders)
	if err != nil {
		return nil, err
	}
	members := member.New(member.Config{
		DB: svc.db, Users: accounts.directory, Names: names(cfg), Clock: b.clock,
		Secrets: keys.Derive("members"), Security: accounts.security, Revocations: accounts.revocations,
	})
	shop := newShop(b, gates, messages, stats, shopParts{orders: orders, admission: admission, waiting: waiting,
		directory: accounts.directory, persons: b.persons, members: members})
	hooks := newWebhooks(b, gates.clock, messages, keys, accounts.security)
	admin, err := newAdmin(b, gates, stats, adminParts{waiting: waiting, messages: messages, orders: orders,
		payments: payments, scheduler: scheduler, accounts: accounts})
	if err != nil {
		return nil, err
	}
	providers, err := newProviders(b, accounts, keys, listener)
	if err != nil {
		return nil, err
	}
	waits := newInbox(b, gates, messages, inboxParts{admin: admin, payments: payments, webhooks: hooks, waiting: waiting})
	tabs := server.NewTabs(playgroundTabs("SALE_ID", "ITEM_ID"))
	seeds := seeding{db: svc.db, clock: gates.clock, gates: scheduler.preloader, tokens: accounts.tokens,
		paths: admission.paths}
	a := &App{
		cfg: cfg, log: log, roles: roles, svc: svc, tabs: tabs, writer: orders.writer, operator: admin.operator,
		payments: payments.service, users: accounts.service.Admin(),
		seeding: seeds,
	}
	a.schedule(gates, messages, stats, runningParts{
		admission: admission, accounts: accounts, waiting: waiting, payments: payments, scheduler: scheduler, worker: worker,
		shop: shop, admin: admin, webhooks: hooks, mailing: mailing, notices: noticed, inbox: waits,
		measure: measureStreams(b, messages),
	})
	return a, a.listen(ctx, b, gates, serverParts{
		tabs: tabs, listener: listener, stats: stats, orders: orders, admission: admission, accounts: accounts,
		waiting:  waiting,
		payments: payments, shop: shop, admin: admin, webhooks: hooks, notices: noticed, inbox: waits, providers: providers,
		receipts: signer, drill: demoDrill(b, seeds),
	})
}

// listen opens the listeners. A process without roles has none.
func (a *App) listen(ctx context.Context, b base, g gates, in serverParts) error {
	if a.roles == (Roles{}) {
		return nil
	}
	s, trusted, err := newServer(ctx, b, g, in)
	if trusted != nil {
		a.accepting = append(a.accepting, part{name: trusted.Name, run: trusted.Run})
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
	persons       person.Hasher
	codes         access.Codes
}

func newBase(cfg *config.Config, roles Roles, svc *services, log *slog.Logger) base {
	registry, own := telemetry.NewRegistry(), svc.host.clock()
	return base{
		cfg: cfg, log: log, roles: roles, svc: svc, keys: reservation.Keys{Prefix: cfg.RedisPrefix}, clock: own,
		registry: registry, orderMetrics: order.NewMetrics(registry), streamMetrics: stream.NewMetrics(registry),
		outbox:  webhook.NewOutbox(own, servicetoken.EventsAreRead(own, webhook.KeepEvents)),
		notices: newNoticeOutbox(cfg), admitted: newAdmissions(cfg), absences: newAbsences(cfg, own),
	}
}

// newAbsences returns the limit of look-ups of ids that nothing has; nil when limits are
// off. Staff and the server itself are not limited.
func newAbsences(cfg *config.Config, c clock.Clock) *ratelimit.Absences {
	if !cfg.LimitsOn() {
		return nil
	}
	return ratelimit.NewAbsences(c, func(ctx context.Context) ratelimit.Caller {
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

// facts returns what writes events and notices of orders.
func (b base) facts() order.Facts { return orderfacts.Outbox{Webhooks: b.outbox, Notices: b.notices} }

// scaled grows a timeout inside a request in proportion to the timeout of requests, if
// that is above its default.
func (b base) scaled(d time.Duration) time.Duration {
	grown := b.cfg.RequestTimeout.Seconds() / config.DefaultRequestTimeout.Seconds()
	return max(d, time.Duration(float64(d)*grown))
}

// stats holds the counters of a sale and the services that read them.
type stats struct {
	feed    *salestats.Feed
	counts  *salestats.Recorder
	figures *salestats.Reader
	refused *refusal.Log
}

func newStats(b base, g gates, m messages) stats {
	refused := refusal.NewLog(refusal.Config{DB: b.svc.db, Clock: g.clock, Registerer: b.registry, Log: b.log})
	return stats{
		refused: refused,
		feed: salestats.NewFeed(salestats.FeedConfig{Client: b.svc.redis.Cmd, Keys: b.keys,
			Timeout: b.scaled(salestats.FeedTimeout), Log: b.log}),
		counts: salestats.NewRecorder(salestats.Config{
			Client: b.svc.redis.Script, Keys: b.keys, Remaining: salestats.Gates{Catalog: g.catalog, Stock: g.stock},
			Clock:      b.clock,
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

// listenPublic opens the public listener. It returns nil without the API role. It runs
// before the payments stage, which needs the listener's address.
func listenPublic(ctx context.Context, b base) (net.Listener, error) {
	if !b.roles.API {
		return nil, nil // no role, no listener
	}
	l, err := b.svc.host.listen(ctx, "tcp", b.cfg.HTTPAddr)
	if err != nil {
		return nil, fmt.Errorf("public listener: %w", err)
	}
	b.svc.onClose(func() error {
		_ = l.Close() // the server has closed it already, unless the start failed
		return nil
	})
	return l, nil
}

// storefronts returns the origins of the pages that may show the shop to buyers: the one at
// base, and those in the settings.
func (b base) storefronts(base string) origin.Set {
	return origin.NewSet(append([]string{base, b.cfg.Storefront}, b.cfg.AllowedOrigins...)...)
}

// baseURL returns the URL under which browsers and payment providers reach this
// installation, without a trailing slash.
func baseURL(cfg *config.Config, l net.Listener) string {
	if cfg.PublicURL != "" {
		return strings.TrimSuffix(cfg.PublicURL, "/")
	}
	if l != nil {
		return "http://" + browsable(l.Addr())
	}
	host, port, err := net.SplitHostPort(cfg.HTTPAddr)
	if err != nil || host == "" {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
