package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/docs"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/tracing"
)

// maxBody limits request bodies, unless a handler has a lower limit.
const maxBody = 64 << 10 // bytes; a webhook of a payment provider has a few kB

// KeysPath is the path of the keys of signed receipts.
const KeysPath = "/.well-known/jwks.json"

// PublicOptions configure the public handler. GraphQL and Log are required.
type PublicOptions struct {
	// GraphQL serves /graphql.
	GraphQL http.Handler
	// Webhooks serves all paths below /webhooks/; nil = 404.
	Webhooks http.Handler
	// Sandbox serves all paths below /sandbox/: pages of the built-in bank; nil = 404.
	Sandbox http.Handler
	// SignIn serves all paths below /auth/: sign-in with other providers; nil = 404.
	SignIn http.Handler
	// Unsubscribe serves all paths below /unsubscribe/: links that end e-mails; nil = 404.
	Unsubscribe http.Handler
	// Media serves all paths below /media/, with bodies of up to MediaBody bytes; nil =
	// 404.
	Media     http.Handler
	MediaBody int64
	// Keys is the JSON Web Key Set of signed receipts, at KeysPath; nil = 404.
	Keys []byte
	// Acceptances serves all paths below /acceptances/: logs of what was accepted; nil = 404.
	Acceptances http.Handler
	// Exports serves all paths below /exports/; nil = 404.
	Exports http.Handler
	// Draws serves the records of draws, all paths below /draws/; nil = 404.
	Draws http.Handler
	// Site serves all other paths, see NewSite; nil = a page with the address of the API.
	Site http.Handler
	// Playground enables GraphiQL at /playground, with Tabs.
	Playground bool
	Tabs       *Tabs // nil = no tabs
	// Origins are other browser origins that may use the API
	// ("https://shop.example.com").
	Origins []string
	// Style is the source by which pages may have a style sheet in themselves,
	// 'sha256-…'; "" = none.
	Style string
	// CaptchaOrigins are the origins from which pages may load and frame the widget of an
	// outside captcha; none = pages load nothing from elsewhere.
	CaptchaOrigins []string
	// PaymentOrigins are the origins from which the page that takes a payment may load, and
	// which it may frame and call; none when payments are made elsewhere.
	PaymentOrigins []string
	// Address is the public URL of the installation; pages from there are of the server's
	// own origin, even if a proxy changes Host. "" = use Host.
	Address string
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// HTTPS declares that client connections are encrypted even if neither this listener
	// nor a trusted proxy reports it: the address of the installation begins with https.
	HTTPS bool
	// HSTSSubdomains extends Strict-Transport-Security to the subdomains of the installation.
	HSTSSubdomains bool
	// Draining reports whether the server is stopping, for balancers; nil = never.
	Draining func() bool
	// Tracer traces requests; nil = none.
	Tracer *tracing.Tracer
	// Registerer registers the metrics; nil = they are not exported.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// NewPublic returns the public handler.
func NewPublic(opts PublicOptions) (http.Handler, error) {
	opts.Origins = normalised(opts.Origins)
	site := opts.Site
	if site == nil {
		var err error
		if site, err = placeholder(); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/graphql", opts.GraphQL)
	mux.Handle("/", site)
	mux.HandleFunc("GET /healthz", health(opts.Draining))
	mux.Handle("/errors", errorPage(docs.Errors))
	for below, handler := range map[string]http.Handler{"/webhooks": opts.Webhooks, "/sandbox": opts.Sandbox,
		"/exports": opts.Exports, "/draws": opts.Draws, "/auth": opts.SignIn, "/unsubscribe": opts.Unsubscribe,
		"/acceptances": opts.Acceptances} {
		if handler != nil {
			mux.Handle(below+"/", handler)
			mux.HandleFunc(below, http.NotFound) // the mux would redirect
		}
	}
	if opts.Keys != nil {
		mux.HandleFunc("GET "+KeysPath, keySet(opts.Keys))
	}
	if opts.Playground {
		p, err := newPlayground(opts.Tabs)
		if err != nil {
			return nil, err
		}
		mux.Handle("/playground", p)
		mux.Handle("/playground/", p)
	}
	protection := http.NewCrossOriginProtection()
	// providers are not browsers, and sign their requests
	protection.AddInsecureBypassPattern("/webhooks/")
	// the link itself is the permission, and mail programs post it
	protection.AddInsecureBypassPattern("/unsubscribe/")
	// from the page of a provider; the state belongs to the browser
	protection.AddInsecureBypassPattern("POST /auth/oidc/{name}/callback")
	trusted := opts.Origins
	if opts.Address != "" {
		trusted = append(normalised([]string{opts.Address}), trusted...)
	}
	for _, o := range trusted {
		if err := protection.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("allowed origin: %w", err)
		}
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "This origin is not allowed.", http.StatusForbidden)
	}))
	routes := bounded(protection.Handler(tidy(mux)), maxBody)
	if opts.Media != nil {
		routes = besides(routes, "/media/", bounded(protection.Handler(tidy(opts.Media)), opts.MediaBody))
	}
	return &publicHandler{opts: opts, metrics: newMetrics(opts.Registerer),
		wrapped: opts.securityHeaders(cors(opts.Origins, refuseBeyond(routes)))}, nil
}

// health answers balancers: 200 while this process accepts requests, 503 while it drains. It asks no
// other service, because a balancer would take out all processes at once.
func health(draining func() bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if draining != nil && draining() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("draining\n"))
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}

// keySet serves a JSON Web Key Set (RFC 7517), to pages of other origins as well.
func keySet(keys []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(keys)
	}
}

// besides routes paths below a prefix to a separate handler.
func besides(rest http.Handler, below string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, below) {
			handler.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// tidy refuses paths that a mux would clean ("//", "/./", "/../"): it would redirect
// them, and the response would contain the requested path.
func tidy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if p != "/graphql" && p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// normalised returns origins in the form that browsers send.
func normalised(origins []string) []string {
	return collect.Map(origins, func(o string) string { return strings.ToLower(strings.TrimSuffix(o, "/")) })
}

// route returns the name of a request's route in logs and metrics.
func (o PublicOptions) route(r *http.Request) string {
	switch path := r.URL.Path; {
	case path == "/graphql":
		return "/graphql"
	case strings.HasPrefix(path, "/webhooks/"):
		return "/webhooks/"
	case strings.HasPrefix(path, "/sandbox/"):
		return "/sandbox/"
	case strings.HasPrefix(path, "/media/"):
		return "/media/"
	case strings.HasPrefix(path, "/auth/"):
		return "/auth/"
	case strings.HasPrefix(path, "/acceptances/"):
		return "/acceptances/"
	case strings.HasPrefix(path, "/exports/"):
		return "/exports/"
	case path == "/playground" || strings.HasPrefix(path, "/playground/"):
		return "/playground"
	default:
		return "/"
	}
}
