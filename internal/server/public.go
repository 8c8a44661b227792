package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// maxBody bounds the body of a request that no handler bounds more tightly.
const maxBody = 64 << 10 // bytes; a webhook of a payment provider has a few kB

// PublicOptions configure the public handler. GraphQL and Log are needed.
type PublicOptions struct {
	// GraphQL answers /graphql.
	GraphQL http.Handler
	// Webhooks answers everything below /webhooks/; nil = nothing there.
	Webhooks http.Handler
	// Sandbox answers everything below /sandbox/: pages of the built-in bank; nil
	// = nothing there.
	Sandbox http.Handler
	// Media answers everything below /media/, with bodies of up to MediaBody bytes;
	// nil = nothing there.
	Media     http.Handler
	MediaBody int64
	// Exports answers everything below /exports/; nil = nothing there.
	Exports http.Handler
	// Site answers everything else, see NewSite; nil = a page that says where the
	// API is.
	Site http.Handler
	// Playground turns GraphiQL at /playground on, with these tabs.
	Playground bool
	Tabs       func() []Tab // asked at each visit; none when nil
	// Origins are the browser origins beside the server's own that may use the
	// API ("https://shop.example.com").
	Origins []string
	// Address is where browsers reach the installation; pages from there are the
	// server's own, also where a proxy changes Host on the way. "" = what Host says.
	Address string
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// HTTPS says that clients come encrypted even where neither our listener nor a
	// trusted proxy tells: the address of the installation begins with https.
	HTTPS bool
	// Registerer gets the metrics; nil = they are shown nowhere.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// NewPublic assembles the public handler.
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
	for below, handler := range map[string]http.Handler{"/webhooks": opts.Webhooks, "/sandbox": opts.Sandbox, "/exports": opts.Exports} {
		if handler != nil {
			mux.Handle(below+"/", handler)
			mux.HandleFunc(below, http.NotFound) // the mux would redirect
		}
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
	protection.AddInsecureBypassPattern("/webhooks/") // providers are no browsers, and sign what they send
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
	return &publicHandler{opts: opts, metrics: newMetrics(opts.Registerer), wrapped: opts.securityHeaders(cors(opts.Origins, routes))}, nil
}

// besides sends what lies below a path to a handler of its own.
func besides(rest http.Handler, below string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, below) {
			handler.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// tidy refuses paths that a mux would clean ("//", "/./", "/../"): it redirects
// them, and the answer would quote what was asked for.
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

// normalised returns origins as browsers write them.
func normalised(origins []string) []string {
	out := make([]string, len(origins))
	for i, o := range origins {
		out[i] = strings.ToLower(strings.TrimSuffix(o, "/"))
	}
	return out
}

// route is the name of a request in logs and metrics.
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
	case strings.HasPrefix(path, "/exports/"):
		return "/exports/"
	case path == "/playground" || strings.HasPrefix(path, "/playground/"):
		return "/playground"
	default:
		return "/"
	}
}
