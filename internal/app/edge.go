package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph"
	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/graph/scalar"
	"seckill/graph/transport"
	"seckill/internal/auth"
	"seckill/internal/config"
	"seckill/internal/fault"
	"seckill/internal/media"
	"seckill/internal/ratelimit"
	"seckill/internal/server"
	"seckill/internal/telemetry"
	"seckill/web"
)

// edge is what the outside touches.
type edge struct {
	server  *server.Server
	sockets *transport.Sockets
	ready   *server.Readiness
}

// newEdge wires resolvers → executor → transports → listeners, and opens the
// listeners. A process without the API role has the admin listener only.
func (a *App) newEdge(ctx context.Context) (*edge, error) {
	e := &edge{ready: server.NewReadiness(a.checks()...)}
	e.sockets = transport.NewSockets(transport.SocketOptions{
		MaxSockets: a.cfg.MaxSockets, MaxPerUser: a.cfg.UserSockets, Origins: a.origins(), Secure: a.secure,
		Watch: a.revocations.OnRevoked, Registerer: a.registry,
		Network: func(ctx context.Context) string { return string(ratelimit.Addr(server.ClientAddr(ctx))) },
	})
	opts := server.Options{
		AdminAddr: a.cfg.AdminAddr, Admin: server.NewAdmin(e.ready, telemetry.MetricsHandler(a.registry)), Ready: e.ready,
		DrainDelay: a.cfg.DrainDelay, DrainTimeout: a.cfg.DrainTimeout, Log: a.log,
	}
	if a.roles.API {
		public, err := a.public(e)
		if err != nil {
			return nil, err
		}
		opts.PublicListener, opts.Public, opts.Drain = a.listener, public, e.sockets.Drain
	}
	var err error
	e.server, err = server.Listen(ctx, opts)
	return e, err
}

// shop is packed once, for however many Apps a test opens.
var shop = sync.OnceValues(func() (http.Handler, error) { return server.NewSite(web.Dist(), web.Version()) })

// public is the handler of the public listener.
func (a *App) public(e *edge) (http.Handler, error) {
	handler, err := a.graphql(e)
	if err != nil {
		return nil, err
	}
	site, err := shop()
	if err != nil {
		return nil, err
	}
	a.tabs = playgroundTabs("SALE_ID", "ITEM_ID")
	return server.NewPublic(server.PublicOptions{
		GraphQL: auth.WithCookies(handler, a.secure), Site: server.WithFirstQuery(site, handler, web.FirstQuery),
		Playground: a.cfg.PlaygroundOn(), Tabs: func() []server.Tab { return a.tabs },
		Origins: a.cfg.AllowedOrigins, Address: a.cfg.PublicURL, TrustedProxies: a.cfg.TrustedProxies, HTTPS: a.https(),
		Webhooks: a.cashier.payments.Webhooks(), Sandbox: a.cashier.pages,
		Media: a.office.pictures, MediaBody: media.MaxBytes + 1, Exports: a.office.desk.Downloads(a.operatorOf),
		Registerer: a.registry, Log: a.log,
	})
}

// origins are those whose pages may open sockets, beside what Host says: a proxy
// may have changed it.
func (a *App) origins() []string {
	if a.cfg.PublicURL == "" {
		return a.cfg.AllowedOrigins
	}
	return append([]string{a.cfg.PublicURL}, a.cfg.AllowedOrigins...)
}

// https says whether browsers reach this installation encrypted, also through a
// proxy that is not among the trusted ones.
func (a *App) https() bool {
	scheme, _, _ := strings.Cut(a.cfg.PublicURL, "://")
	return strings.EqualFold(scheme, "https")
}

// secure says whether a client's connection is encrypted.
func (a *App) secure(r *http.Request) bool {
	return a.https() || server.Secure(r, a.cfg.TrustedProxies)
}

// graphql assembles the executor with everything that an operation passes.
func (a *App) graphql(e *edge) (http.Handler, error) {
	resolver := &graph.Resolver{
		Accounts: a.accounts, Captchas: a.captchas, Store: a.store, Checkout: a.checkout, Queue: a.queue, Orders: a.orders, Limits: a.limits,
		Waitlist: a.waitlist,
		Payments: a.cashier.payments,
		Addr:     server.ClientAddr,
		Server: graph.ServerInfo{
			Version: a.build.Version, Commit: a.build.Commit,
			Ready: func() bool { return !e.ready.Draining() },
		},
	}
	resolver.Letters = a.letters
	resolver.Operator, resolver.Figures, resolver.Feed, resolver.Reports = a.office.desk, a.office.figures, a.office.feed, a.office.reports
	schema := generated.NewExecutableSchema(generated.Config{
		Resolvers: resolver, Directives: resolver.Directives(),
	})
	documents, err := web.Documents()
	if err != nil {
		return nil, err
	}
	g, err := guard.New(guard.Options{
		Schema: schema.Schema(), Scalars: scalar.Good(), Trusted: guard.Manifest(documents),
		TrustedOnly:   a.cfg.Documents == config.DocumentsTrusted,
		Introspection: a.cfg.WhoIntrospects() == config.IntrospectionOn, MayIntrospect: a.mayIntrospect, Spend: a.spend(),
	})
	if err != nil {
		return nil, fmt.Errorf("document guard: %w", err)
	}
	if a.documents, err = a.trustDocuments(g); err != nil {
		return nil, err
	}
	resolver.Cost = g.Cost
	errs := graph.Errors{Log: a.log}
	return transport.NewHandler(transport.Options{
		Schema: schema, Guard: g, Sockets: e.sockets, Development: !a.cfg.Production(),
		Timeout: a.cfg.RequestTimeout, Authenticate: a.authenticate, ErrorPresenter: errs.Present, Recover: errs.Recover,
		Shared:     []string{"sales", "sale", "goods"},
		Extensions: []graphql.HandlerExtension{graph.NewConstraints(schema.Schema(), resolver)}, Log: a.log,
	}), nil
}

// authenticate tells who a bearer token stands for.
func (a *App) authenticate(ctx context.Context, token string) (transport.Caller, error) {
	p, err := a.tokens.Verify(ctx, token)
	if err != nil {
		return transport.Caller{}, err
	}
	c := transport.Caller{Context: auth.WithPrincipal(ctx, p), User: p.UserID, Session: p.SessionID, ExpiresAt: p.ExpiresAt}
	if p.Role != auth.Customer {
		c.Still = func(ctx context.Context) error { return a.stillHolds(ctx, token, p.Role) }
	}
	return c, nil
}

// stillHolds is an error once a token stands for another role than it did: what is
// open since then would go on under the former one.
func (a *App) stillHolds(ctx context.Context, token string, role auth.Role) error {
	p, err := a.tokens.Verify(ctx, token)
	if err == nil && p.Role != role {
		err = fault.New(fault.Forbidden, "Your role has changed.")
	}
	return err
}

// checks are what /readyz asks.
func (a *App) checks() []server.Check {
	return []server.Check{
		{Name: "postgres", Run: a.svc.db.SQL.PingContext},
		// by the way that orders take: waiting for others' connections is not being away
		{Name: "redis", Run: func(ctx context.Context) error { return a.reserving.Ping(ctx).Err() }},
		{Name: "catalogue", Run: func(ctx context.Context) error {
			_, err := a.catalog.Snapshot(ctx)
			return err
		}},
		{Name: "sessions", Run: func(context.Context) error {
			select {
			case <-a.revocations.Ready():
				return nil
			default:
				return errors.New("which sessions were ended is not known yet")
			}
		}},
	}
}
