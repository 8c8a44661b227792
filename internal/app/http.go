package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph"
	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/graph/scalar"
	"seckill/graph/transport"
	"seckill/internal/app/server"
	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
	"seckill/internal/identity/oidc"
	"seckill/internal/identity/oidc/issuer"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/outbox/notice"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/config"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/media"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/priority"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/telemetry"
	"seckill/internal/staff/inbox"
	"seckill/web"
)

// serverParts are the stages that the listeners serve.
type serverParts struct {
	tabs      *server.Tabs
	listener  net.Listener // nil without the API role
	stats     stats
	orders    orders
	admission admission
	accounts  accounts
	waiting   waiting
	payments  payments
	shop      shop
	admin     admin
	webhooks  *webhook.Service
	notices   *notice.Service
	inbox     *inbox.Inbox
	providers *oidc.Service // nil = there are none
	receipts  *acceptance.Signer
	drill     http.Handler // nil = this is no demo
	ready     *server.Readiness
}

// drainDelay returns how long /readyz fails before the listeners close: two questions of a
// balancer that asks each second. In development there is none.
func drainDelay(cfg *config.Config) time.Duration {
	if cfg.Production() {
		return 2 * time.Second
	}
	return 0
}

// newServer connects resolvers, executor, transports and listeners, and opens the admin
// listener. A process without the API role has only the admin listener.
func newServer(ctx context.Context, b base, g gates, in serverParts) (_ *server.Server, trusted *periodic.Loop,
	err error) {
	ready := server.NewReadiness(b.clock, checks(b, g, in.accounts.revocations)...)
	in.ready = ready
	opts := server.Options{
		AdminAddr: b.cfg.AdminAddr, Open: b.svc.host.listen,
		Admin: server.NewAdmin(ready, telemetry.MetricsHandler(b.registry), in.drill), Ready: ready,
		DrainDelay: drainDelay(b.cfg), DrainTimeout: b.cfg.DrainTimeout, RequestTimeout: b.cfg.RequestTimeout, Log: b.log,
	}
	connections, most, err := limits(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	sockets := transport.NewSockets(transport.SocketOptions{
		MaxSockets: most, Origins: socketOrigins(b.cfg),
		InitTimeout: b.scaled(transport.DefaultInitTimeout),
		Watch:       in.accounts.revocations.OnRevoked, Registerer: b.registry,
	})
	if b.roles.API {
		var handler http.Handler
		if handler, trusted, err = newGraphQL(b, in, sockets, ready); err != nil {
			return nil, nil, err
		}
		public, err := newPublic(b, in, handler)
		if err != nil {
			return nil, nil, err
		}
		opts.PublicListener, opts.PublicConnections, opts.Public, opts.Streams = in.listener, connections, public, sockets
	}
	s, err := server.Listen(ctx, opts)
	return s, trusted, err
}

// limits returns how many public connections and sockets the process accepts.
func limits(ctx context.Context, b base) (connections, sockets int, err error) {
	files, err := config.OpenFiles()
	if err != nil {
		return 0, 0, err
	}
	connections, sockets = config.Connections(files)
	if b.roles.API && sockets < b.cfg.MaxSockets {
		level := slog.LevelInfo
		if b.cfg.Production() {
			level = slog.LevelWarn
		}
		b.log.Log(ctx, level, "the limit of open files allows fewer sockets than SECKILL_MAX_SOCKETS; raise it, or lower the setting",
			slog.Int("files", files), slog.Int("sockets", sockets), slog.Int("setting", b.cfg.MaxSockets))
	}
	return connections, min(sockets, b.cfg.MaxSockets), nil
}

// newPublic returns the handler of the public listener.
func newPublic(b base, in serverParts, handler http.Handler) (http.Handler, error) {
	brand, err := brandOf(b.cfg)
	if err != nil {
		return nil, err
	}
	pages := http.NotFoundHandler()
	if !b.svc.host.Shared {
		if pages, err = newSite(b.cfg, brand); err != nil {
			return nil, err
		}
	}
	var signIn http.Handler
	if in.providers != nil {
		signIn = in.providers
	}
	first := server.FirstQuery{Timeout: b.cfg.RequestTimeout / firstQueryShare, Pages: web.Pages{Origin: b.cfg.PublicURL}}
	return server.NewPublic(server.PublicOptions{
		SignIn: signIn, Unsubscribe: in.notices,
		GraphQL: auth.WithCookies(handler), Site: server.WithFirstQuery(pages, handler, first),
		Playground: b.cfg.PlaygroundOn(), Tabs: in.tabs,
		Origins: b.cfg.AllowedOrigins, Style: brand.StyleSource(), CaptchaOrigins: b.cfg.CaptchaSources(),
		PaymentOrigins: b.cfg.StripeSources(), Address: b.cfg.PublicURL, TrustedProxies: b.cfg.TrustedProxies,
		HTTPS: https(b.cfg), HSTSSubdomains: b.cfg.HSTSSubdomains == config.SwitchOn, Draining: in.ready.Draining,
		Keys: in.receipts.KeySet(), Acceptances: acceptance.NewLogs(b.svc.db, in.receipts, b.clock, b.log),
		Webhooks: in.payments.service.Webhooks(), Sandbox: in.payments.pages,
		Media: in.admin.pictures, MediaBody: media.MaxBytes + 1,
		Draws:   in.waiting.service.Records(),
		Exports: in.admin.operator.Downloads(in.admin.bearer.exporter),
		Tracer:  b.tracer, Registerer: b.registry, Log: b.log,
	})
}

// socketOrigins returns the origins whose pages may open WebSockets, in addition to the
// origin in the Host header, which a proxy may have rewritten.
func socketOrigins(cfg *config.Config) []string {
	if cfg.PublicURL == "" {
		return cfg.AllowedOrigins
	}
	return append([]string{cfg.PublicURL}, cfg.AllowedOrigins...)
}

// https reports whether browsers reach this installation over HTTPS, including through a
// proxy that is not a trusted one.
func https(cfg *config.Config) bool {
	scheme, _, _ := strings.Cut(cfg.PublicURL, "://")
	return strings.EqualFold(scheme, "https")
}

// newGraphQL connects the resolvers and the executor with its limits. The returned loop
// rereads the trusted documents; it is nil without the setting.
func newGraphQL(b base, in serverParts, sockets *transport.Sockets, ready *server.Readiness) (http.Handler,
	*periodic.Loop, error) {
	build := telemetry.ReadBuild()
	resolver := &graph.Resolver{
		Shop: in.shop.store, Checkout: in.shop.checkout, Members: in.shop.members, Codes: b.codes,
		Addresses: in.shop.book, Captchas: in.admission.captchas,
		Queue:  in.admission.queue,
		Limits: in.admission.limits, Absences: b.absences, RateLimits: rateLimits(b.cfg), Waitlist: in.waiting.service,
		Orders: in.orders.store, Letters: in.orders.letters, Positions: in.orders.positions,
		Metadata:    order.MetadataStore{DB: b.svc.db, Clock: b.clock},
		Corrections: order.Corrections{DB: b.svc.db, AfterCommit: in.orders.afterCommit, Facts: b.facts(), Clock: b.clock},
		Fulfilments: order.Fulfilments{DB: b.svc.db, AfterCommit: in.orders.afterCommit, Facts: b.facts(), Clock: b.clock},
		Payments:    in.payments.service, Acceptances: in.receipts, Seller: seller(b.cfg),
		Counts: in.stats.counts, Refusals: in.stats.refused, Figures: in.stats.figures, Feed: in.stats.feed,
		Reports:  in.admin.reports,
		Accounts: in.accounts.service, Security: in.accounts.security, Tokens: in.accounts.serviceTokens,
		Providers: in.providers, Notices: in.notices,
		Operator: in.admin.operator, Waiting: in.inbox, Webhooks: in.webhooks, SealedLog: audit.Seals{DB: b.svc.db},
		Server: graph.ServerInfo{
			Version: build.Version, Commit: build.Commit, Process: ready, ErrorReference: errorReference(b.cfg),
			Payments: b.cfg.PaymentsOn(), PublicURL: publicURL(b.cfg),
		},
	}
	schema := generated.NewExecutableSchema(generated.Config{
		Schema: graph.Schema(), Resolvers: resolver, Directives: resolver.Directives(),
	})
	if err := graph.CheckRateLimits(schema.Schema(), resolver.RateLimits); err != nil {
		return nil, nil, fmt.Errorf("SECKILL_RATE_LIMITS: %w", err)
	}
	var documents map[string]string
	if !b.svc.host.Shared {
		var err error
		if documents, err = web.Documents(); err != nil {
			return nil, nil, err
		}
	}
	g, err := guard.New(guard.Options{
		Schema: schema.Schema(), Scalars: scalar.Good(), Trusted: guard.Manifest(documents),
		TrustedOnly:   b.cfg.Documents == config.DocumentsTrusted,
		Introspection: b.cfg.WhoIntrospects() == config.IntrospectionOn, MayIntrospect: mayIntrospect(b.cfg), Spend: spend(b),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("document guard: %w", err)
	}
	trusted, err := trustDocuments(b, g)
	if err != nil {
		return nil, nil, err
	}
	errs := graph.Errors{Log: b.log, Reference: errorReference(b.cfg)}
	return transport.NewHandler(transport.Options{
		Schema: schema, Guard: g, Sockets: sockets, Development: !b.cfg.Production(),
		Timeout: b.cfg.RequestTimeout, Authenticate: in.admin.bearer.authenticate, ErrorPresenter: errs.Present,
		Recover:    errs.Recover,
		Names:      func(ctx context.Context) bool { return isStaff(ctx) || g.MayIntrospect(ctx) },
		Shared:     []string{"sales", "sale", "goods"},
		Public:     transport.Public{Fields: graph.PublicFields(), Audience: graph.Audience},
		Extensions: []graphql.HandlerExtension{graph.NewConstraints(schema.Schema(), resolver)}, Tracer: b.tracer,
		Registerer: b.registry, Log: b.log,
	}), trusted, nil
}

// publicURL returns the address of the shop; "" in production without one in the settings.
func publicURL(cfg *config.Config) string {
	if cfg.PublicURL == "" && cfg.Production() {
		return ""
	}
	return baseURL(cfg, nil)
}

// errorReference returns the address of the page of error codes.
func errorReference(cfg *config.Config) string {
	if cfg.ErrorReference != "" {
		return cfg.ErrorReference
	}
	return strings.TrimSuffix(cfg.PublicURL, "/") + "/errors"
}

// bearer verifies bearer tokens: of users, of other systems, and of users of other systems.
type bearer struct {
	tokens        *auth.Tokens
	serviceTokens *servicetoken.Service
	issuers       *issuer.Service
}

func (b bearer) verify(ctx context.Context, token string) (*auth.Principal, error) {
	if servicetoken.Is(token) {
		return b.serviceTokens.Verify(ctx, token)
	}
	if b.issuers.Knows(token) {
		return b.issuers.Verify(ctx, token)
	}
	return b.tokens.Verify(ctx, token)
}

func (b bearer) authenticate(ctx context.Context, token string) (transport.Caller, error) {
	p, err := b.verify(priority.Urgent(ctx), token) // staff are known afterwards only
	if err != nil {
		return transport.Caller{}, err
	}
	c := transport.Caller{Context: auth.WithPrincipal(ctx, p), User: p.UserID, Session: p.SessionID,
		ExpiresAt: p.ExpiresAt}
	if p.Role != auth.Customer {
		c.Context = priority.Urgent(c.Context)
		c.Recheck = func(ctx context.Context) error { return b.sameRole(priority.Urgent(ctx), token, p.Role) }
	}
	return c, nil
}

// sameRole returns an error once the user of a token has another role. Without it, open
// streams would continue with the former role.
func (b bearer) sameRole(ctx context.Context, token string, role auth.Role) error {
	p, err := b.verify(ctx, token)
	if err == nil && p.Role != role {
		err = fault.New(fault.Forbidden, "Your role has changed.")
	}
	return err
}

// exporter returns who downloads orders.
func (b bearer) exporter(r *http.Request) (sale.Actor, error) { return b.operator(r, auth.Exports) }

// operator returns the operator, or the service account with the scope, that sends a
// request outside GraphQL. It returns Unauthenticated without a valid token and Forbidden
// below the required role or without the scope.
func (b bearer) operator(r *http.Request, scope auth.Scope) (sale.Actor, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return sale.Actor{}, fault.New(fault.Unauthenticated, "Please sign in first.")
	}
	p, err := b.verify(r.Context(), token)
	if err != nil {
		return sale.Actor{}, err
	}
	if p.MayUse(scope) {
		return sale.Actor{ID: p.UserID, Role: auth.Operator}, nil
	}
	if !p.Role.AtLeast(auth.Operator) {
		return sale.Actor{}, fault.New(fault.Forbidden, "Your role may not do this.")
	}
	return sale.Actor{ID: p.UserID, Role: p.Role}, nil
}

func checks(b base, g gates, revocations *auth.Revocations) []server.Check {
	return []server.Check{
		{Name: "postgres", Run: b.svc.db.SQL.PingContext},
		// It uses the connections of the order path: a busy shared pool does not make
		// Redis unreachable.
		{Name: "redis", Run: func(ctx context.Context) error { return g.reserve.Ping(ctx).Err() }},
		{Name: "catalogue", Run: func(ctx context.Context) error {
			_, err := g.catalog.Snapshot(ctx)
			return err
		}},
		{Name: "sessions", Run: func(context.Context) error {
			select {
			case <-revocations.Ready():
				return nil
			default:
				return errors.New("the ended sessions are not read yet")
			}
		}},
	}
}

// Points that one process grants for operations, by @cost and @listSize. Many users can
// share one address, and browsing without sign-in uses only memory, so an address has
// more points than a signed-in user.
var (
	userBudget    = ratelimit.Policy{Name: "cost", Burst: 20_000, PerSecond: 2_000}
	addressBudget = ratelimit.Policy{Name: "cost", Burst: 100_000, PerSecond: 20_000}
)

// spend deducts the cost of an operation from the budget of its user or address, in
// memory. It returns nil when limits are off.
func spend(b base) func(ctx context.Context, cost int64) (guard.Budget, error) {
	if !b.cfg.LimitsOn() {
		return nil
	}
	budget := ratelimit.NewBudget(b.clock, 0)
	return func(ctx context.Context, cost int64) (guard.Budget, error) {
		policy := addressBudget
		var d ratelimit.Spent
		if p := auth.PrincipalFrom(ctx); p != nil {
			policy = userBudget
			d = budget.Spend(policy, ratelimit.User(p.UserID), int(cost))
		} else {
			d = budget.SpendAddr(policy, auth.ClientAddr(ctx), int(cost))
		}
		if !d.Allowed {
			return guard.Budget{}, &fault.Error{
				Code: fault.RateLimited, Message: "Your request budget is spent for now.", RetryAfter: d.RetryAfter,
			}
		}
		return guard.Budget{Burst: int64(d.Limit), Remaining: int64(d.Remaining), RestoreRate: policy.PerSecond}, nil
	}
}

// documentsEvery is the interval between two checks of the trusted-document manifests.
const documentsEvery = 5 * time.Second

// firstQueryShare is the request timeout over that of a page's first query: a page is sent
// without data after a third of a second by default.
const firstQueryShare = 15

// trustDocuments reads the manifests of SECKILL_TRUSTED_DOCUMENTS and returns the loop
// that rereads them after a change; nil without the setting. An invalid manifest is an
// error at the start. Later it is logged and the previous documents stay in use.
func trustDocuments(b base, g *guard.Guard) (*periodic.Loop, error) {
	if b.cfg.TrustedDocuments == "" {
		return nil, nil
	}
	file := &guard.ManifestFile{Path: b.cfg.TrustedDocuments}
	read := func() (int, error) {
		documents, err := file.Read()
		if err != nil {
			return 0, err
		}
		return len(documents), g.Trust(documents)
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	return &periodic.Loop{Name: "trusted documents", Every: documentsEvery, Log: b.log,
		Step: func(context.Context) (map[string]int, error) {
			if !file.Changed() {
				return nil, nil
			}
			n, err := read()
			return map[string]int{"documents": n}, err
		}}, nil
}

// mayIntrospect returns a function that reports whether the principal may query the
// schema when introspection is not open to all.
func mayIntrospect(cfg *config.Config) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return cfg.WhoIntrospects() == config.IntrospectionStaff && isStaff(ctx)
	}
}

// isStaff reports whether the caller is an operator or administrator.
func isStaff(ctx context.Context) bool {
	p := auth.PrincipalFrom(ctx)
	return p != nil && p.Role.AtLeast(auth.Operator)
}
