package app

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/orderintake"
	"seckill/internal/gate/audit"
	"seckill/internal/gate/preload"
	"seckill/internal/gate/reconcile"
	"seckill/internal/gate/recordloss"
	"seckill/internal/identity/account"
	"seckill/internal/identity/oidc/issuer"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/webhook"
	"seckill/internal/pay/payment"
	"seckill/internal/pay/payment/sandbox"
	"seckill/internal/pay/payment/setup"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/media"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/stream"
	"seckill/internal/staff/inbox"
	"seckill/internal/staff/operator"
	"seckill/internal/staff/report"
)

const (
	// leeway is added to the lifetime of access tokens to set how long ended sessions are
	// remembered.
	leeway = time.Minute
	// paymentsGroup is the consumer group of the payment event stream.
	paymentsGroup = "payments"
	// trimEvery is how often acknowledged entries are removed from streams.
	trimEvery = 2 * time.Second
	// idleTrim is the longest pause while there is nothing to remove.
	idleTrim = 16 * time.Second
	// measureEvery is how often the depth of the streams is read.
	measureEvery = 5 * time.Second
)

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

// accounts holds users, sessions and tokens.
type accounts struct {
	store         *account.Store
	service       *account.Service
	tokens        *auth.Tokens
	revocations   *auth.Revocations
	security      *account.SecurityLog
	serviceTokens *servicetoken.Service
	directory     *account.Directory
	issuers       *issuer.Service // whose access tokens are accepted; nil = there are none
}

func newAccounts(b base, adm admission, m mailing, keys auth.Keys) (accounts, error) {
	store := account.NewStore(b.svc.db, b.clock, names(b.cfg))
	directory := account.NewDirectory(account.DirectoryConfig{
		Store: store, Client: b.svc.redis.Script, Prefix: b.keys.Prefix, Clock: b.clock, Log: b.log,
		StaffTOTP: b.cfg.StaffTOTP == config.StaffTOTPRequired,
	})
	tail := b.svc.redis.NewBlocking()
	b.svc.onClose(tail.Close)
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: b.svc.redis.Cmd, Tail: tail, Prefix: b.keys.Prefix, Keep: b.cfg.AccessTokenTTL + leeway,
		Clock: b.clock, Log: b.log, Store: store, Release: adm.queue.SignedOut,
	})
	revocations.OnUserChanged(directory.Forget)
	tokens, err := auth.NewTokens(auth.TokensConfig{
		Keys: keys, AccessLife: b.cfg.AccessTokenTTL, Clock: b.clock, Sessions: revocations, Roles: directory,
	})
	if err != nil {
		return accounts{}, err
	}
	security := account.NewSecurityLog(b.svc.db, b.clock, b.log)
	security.Timeout = b.scaled(account.EventTimeout)
	admin := account.NewAdmin(account.AdminConfig{
		Store: store, Directory: directory, Revocations: revocations, Security: security, Log: b.log, Mail: m.outbox, Texts: m.texts,
	})
	service, err := account.New(account.Config{
		DB: b.svc.db, Redis: b.svc.redis.Script, Prefix: b.keys.Prefix, Keys: keys, Tokens: tokens,
		Revocations: revocations, Directory: directory, Captchas: adm.captchas, Limits: adm.limits,
		Names: names(b.cfg), Clock: b.clock, Log: b.log, Idle: b.cfg.RefreshTokenTTL, Admin: admin, Mail: m.outbox, Texts: m.texts,
	})
	if err != nil {
		return accounts{}, err
	}
	serviceTokens := servicetoken.New(servicetoken.Config{
		DB: b.svc.db, Revocations: revocations, Security: security, Outbox: b.outbox,
		Timeout: b.scaled(servicetoken.WriteTimeout), Clock: b.clock, Log: b.log,
	})
	a := accounts{store, service, tokens, revocations, security, serviceTokens, directory, nil}
	a.issuers, err = newIssuers(b, a)
	return a, err
}

// payments holds the services that pay, expire and refund orders and release their units.
type payments struct {
	service *payment.Service
	router  *stream.Router
	pages   http.Handler // of the sandbox bank; nil when it is off
	loops   []periodic.Loop
}

// paymentSetup holds what only the payments stage needs.
type paymentSetup struct {
	keys     auth.Keys
	listener net.Listener // nil without the API role
	security *account.SecurityLog
	receipts payment.Receipts
}

func newPayments(b base, g gates, m messages, o orders, in paymentSetup) (payments, error) {
	gate := payment.NewRedisGate(g.gate, func(r order.Reservation, epoch, revision int64, remaining int) {
		g.stock.Update(r.Item, epoch, revision, remaining)
	})
	topic := payment.Topic(b.keys.Prefix)
	cfg := payment.Config{
		DB: b.svc.db, Orders: o.store, Publisher: o.publisher, Facts: b.facts(), Outbox: b.outbox, Receipts: in.receipts, Gate: gate, Clock: g.clock, Shared: g.clock, Registerer: b.registry, Log: b.log,
		Events: payment.EventStream{Publisher: m.publisher, Topic: topic}, Security: in.security, Inbox: m.inbox, Timeout: b.scaled(payment.ProviderTimeout),
	}
	p := payments{}
	var err error
	if cfg.Providers, err = setup.Providers(b.cfg, baseURL(b.cfg, in.listener), g.clock); err != nil {
		return p, err
	}
	if b.cfg.SandboxOn() {
		bank, err := p.addSandbox(b, g, in)
		if err != nil {
			return p, err
		}
		cfg.Providers = append(cfg.Providers, bank)
	}
	p.service = payment.New(cfg)
	p.loops = append(p.loops, order.OrderReturns(b.svc.db, gate.ReturnAll, b.log))
	p.loops = append(p.loops, p.service.Loops()...)
	trimmer := stream.NewTrimmer(b.svc.redis.Cmd, []string{topic}, b.streamMetrics)
	p.loops = append(p.loops, periodic.Loop{Name: "trim payments", Every: trimEvery, Idle: idleTrim, Step: trimmer.Step, Log: b.log})
	p.router, err = newRouter(b, m, stream.Handler{Name: "payments", Topics: []string{topic}, Handle: p.service.Handle},
		consumer{group: paymentsGroup})
	return p, err
}

// addSandbox returns the built-in bank, and adds its pages and its loop.
func (p *payments) addSandbox(b base, g gates, in paymentSetup) (payment.Provider, error) {
	live := in.keys.Derive("sandbox call-backs") // derived from the current signing key and the previous one
	signer, err := sandbox.NewSigner(live[:min(len(live), 2)]...)
	if err != nil {
		return nil, fmt.Errorf("sandbox bank: %w", err)
	}
	base := baseURL(b.cfg, in.listener)
	bank := sandbox.NewBank(b.svc.db, g.clock)
	courier := sandbox.NewCourier(bank, base+"/webhooks/payments/"+sandbox.Name, signer, b.log)
	courier.Timeout = b.scaled(sandbox.CallTimeout)
	b.svc.onClose(func() error { courier.Close(); return nil })
	p.pages = sandbox.NewPages(bank, base+"/sandbox", b.log).Handler()
	p.loops = append(p.loops, courier.Loop())
	return sandbox.NewProvider(bank, base+"/sandbox", signer, g.clock), nil
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

// scheduler holds the loops that preload sales and repair drift.
type scheduler struct {
	preloader *preload.Preloader
	reconcile periodic.Loop
	lostTasks periodic.Loop
	seals     periodic.Loop
	record    periodic.Loop // notices that Postgres has lost commits
}

// schedulerParts are the stages that only the scheduler needs.
type schedulerParts struct {
	messages messages
	orders   orders
	payments payments
	users    *account.Directory
}

func newScheduler(b base, g gates, s stats, in schedulerParts) scheduler {
	m, o, p := in.messages, in.orders, in.payments
	preloader := preload.New(preload.Config{
		DB: b.svc.db, Gate: g.gate, Backlog: o.backlog, Versions: g.versions, Outbox: b.outbox, Figures: s.figures, Feed: s.feed,
		Catalog: g.catalog, InFlightWait: orderintake.InFlightWait, Slot: b.cfg.LoadSlot, Slots: b.cfg.LoadSlots, NoteTimeout: b.scaled(preload.DefaultNoteTimeout), Clock: g.clock, Shared: g.clock, Log: b.log,
	})
	reconciler := reconcile.New(reconcile.Config{
		Catalog: g.catalog, Gates: preloader, Keys: b.keys,
		Auditor: audit.Auditor{DB: b.svc.db, Redis: b.svc.redis, Keys: b.keys},
		Streams: stream.Appender{Client: b.svc.redis.Script},
		Orders:  o.store, Payments: p.service, DeadLetters: m.letters, Clock: g.clock, Registerer: b.registry, Log: b.log,
	})
	lost := orderintake.NewLostTasks(orderintake.LostTasksConfig{
		Orders: o.store, Writer: o.writer, Backlog: o.backlog, Clock: g.clock, Log: b.log,
		Gates: orderintake.RedisGates{Gate: g.gate, Stock: g.stock, Items: g.items},
	})
	sealer := &audit.Sealer{DB: b.svc.db, Clock: g.clock, Log: b.log}
	record := recordloss.NewWatch(recordloss.Config{
		DB: b.svc.db, Redis: b.svc.redis, Keys: b.keys, Cache: o.cache, Orders: o.store, Writer: o.writer, Publisher: o.publisher,
		Streams: stream.Appender{Client: b.svc.redis.Script}, Gate: g.gate, Gates: preloader, Sales: g.sales, Versions: g.versions, Catalog: g.catalog,
		Users: in.users, Clock: g.clock, Registerer: b.registry, Log: b.log,
	})
	return scheduler{preloader, reconciler.Loop(), lost.Loop(), sealer.Loop(), record.Loop()}
}

// admin holds the use cases of operators.
type admin struct {
	operator *operator.Service
	reports  report.Source
	pictures http.Handler // nil = uploads are disabled
	bearer   bearer
}

// adminParts are the stages that only the admin stage needs.
type adminParts struct {
	waiting   waiting
	messages  messages
	orders    orders
	payments  payments
	scheduler scheduler
	accounts  accounts
}

func newAdmin(b base, g gates, s stats, in adminParts) (admin, error) {
	out := admin{
		operator: operator.New(operator.Config{
			DB: b.svc.db, Sales: g.sales, Versions: g.versions, Catalog: g.catalog,
			Gate: g.gate, Orders: in.orders.store, Gates: in.scheduler.preloader,
			Stock: g.stock, Payments: in.payments.service, Waitlist: in.waiting.service, Facts: b.facts(), Outbox: b.outbox, Feed: s.feed, Inbox: in.messages.inbox, Security: in.accounts.security,
			Tokens: in.accounts.serviceTokens, PaymentWindow: b.cfg.PaymentWindow, Names: names(b.cfg),
			TwoPersonUnits: b.cfg.TwoPersonUnits, TwoPersonExtension: b.cfg.TwoPersonExtension, Clock: b.clock, Log: b.log,
		}),
		reports: report.Source{DB: b.svc.db, Sales: g.sales, Stats: s.figures, Clock: b.clock},
		bearer:  bearer{in.accounts.tokens, in.accounts.serviceTokens, in.accounts.issuers},
	}
	if b.cfg.Media.Reveal() == "" {
		return out, nil
	}
	store, closeStore, err := media.Open(b.cfg.Media.Reveal())
	if err != nil {
		return out, fmt.Errorf("SECKILL_MEDIA: %w: choose a folder that this process may write, or s3://key:secret@host/bucket", err)
	}
	b.svc.onClose(closeStore)
	out.pictures = media.New(store).Handler(func(r *http.Request) error {
		_, err := out.bearer.operator(r, auth.CatalogueWrite)
		return err
	}, b.log)
	return out, nil
}

// inboxParts are the stages that only the inbox needs.
type inboxParts struct {
	admin    admin
	payments payments
	webhooks *webhook.Service
}

func newInbox(b base, g gates, m messages, in inboxParts) *inbox.Inbox {
	return inbox.New(inbox.Config{
		Hub: m.hub, Sales: g.sales, Catalog: g.catalog, Stock: g.stock, Operator: in.admin.operator,
		Payments: in.payments.service, Providers: in.payments.service.Names(), Letters: m.letters, Webhooks: in.webhooks,
		Clock: b.clock, Log: b.log,
	})
}
