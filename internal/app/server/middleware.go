package server

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
)

// recorder records the response of a handler.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader records the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err // a decorator adds nothing to the error
}

// Hijack records the upgrade: the upgrading library may not write a status.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.status = http.StatusSwitchingProtocols
	return http.NewResponseController(r.ResponseWriter).Hijack() // as above
}

// Unwrap gives http.ResponseController access to deadlines and flushing.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// publicHandler sets the request id and the client address, recovers from panics, and
// writes one log line and one observation per request.
type publicHandler struct {
	opts    PublicOptions
	metrics *metrics
	wrapped http.Handler // the routes behind the other middleware
}

func (h *publicHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	id := telemetry.NewRequestID()
	if given := r.Header.Get("X-Request-Id"); given != "" {
		id = telemetry.AcceptRequestID(given)
	}
	traceID := telemetry.TraceID(r.Header.Get("Traceparent"))
	traced, span := h.trace(r)
	if span.On() {
		traceID = span.TraceID()
	}
	ctx := auth.WithClient(telemetry.WithRequest(traced, id, traceID),
		auth.Client{Addr: clientAddr(r, h.opts.TrustedProxies), Secure: h.opts.secure(r)})
	if span.On() {
		telemetry.OperationFrom(ctx).Trace = traceID
	}
	r = r.WithContext(ctx)
	rec := &recorder{ResponseWriter: w}
	w.Header()["X-Request-Id"] = []string{id}
	defer func() {
		v := recover()
		if v != nil && !fault.IsAbort(v) {
			fault.Caught(v, fault.InRequest)
			h.opts.Log.ErrorContext(ctx, "panic", slog.String("panic", fmt.Sprintf("%T", v)),
				slog.String("stack", string(debug.Stack())))
			if rec.status == 0 {
				http.Error(rec, "Something went wrong.", http.StatusInternalServerError)
			}
		}
		h.done(ctx, r, rec, outcome{time.Since(start), span})
		if fault.IsAbort(v) {
			panic(v)
		}
	}()
	h.wrapped.ServeHTTP(rec, r)
}

func (h *publicHandler) trace(r *http.Request) (context.Context, tracing.Span) {
	if h.opts.Tracer == nil {
		return r.Context(), tracing.Span{}
	}
	return h.opts.Tracer.Request(r.Context(), r.Header.Get("Traceparent"), fromTrusted(r, h.opts.TrustedProxies))
}

// outcome is what is noted about a served request.
type outcome struct {
	took time.Duration
	span tracing.Span
}

func (o outcome) end(ctx context.Context, r *http.Request, route string, status int) {
	if o.span.On() {
		o.span.Name(method(r.Method) + " " + route)
		o.span.Text("http.request.method", method(r.Method))
		o.span.Text("http.route", route)
		o.span.Count("http.response.status_code", status)
		telemetry.DescribeSpan(o.span, telemetry.OperationFrom(ctx))
		if status >= http.StatusInternalServerError {
			o.span.Fail(http.StatusText(status))
		}
	}
	o.span.End(nil)
}

// bounded refuses a request body longer than limit bytes. The request is a private copy
// and may be changed; http.MaxBytesHandler would copy it again.
func bounded(next http.Handler, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		next.ServeHTTP(w, r)
	})
}

// done logs a request, without headers, body, query string or the path of a page, which
// may contain user input.
func (h *publicHandler) done(ctx context.Context, r *http.Request, rec *recorder, o outcome) {
	route, took := h.opts.route(r), o.took
	h.metrics.observe(route, rec.status, took, o.span.TraceID())
	o.end(ctx, r, route, rec.status)
	if !h.opts.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 9), slog.String("method", method(r.Method)), slog.String("route", route),
		slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes), slog.Float64("ms", float64(took.Microseconds())/1000))
	h.opts.Log.LogAttrs(ctx, slog.LevelInfo, "request", append(attrs, telemetry.OperationFrom(ctx).Attrs()...)...)
}

// method keeps methods invented by a client out of the log.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return m
	}
	return "other"
}

// cors answers preflights and sets response headers for the allowed origins. Credentials
// are allowed, so that a page of the same site on another host can use the session
// cookie; the cookie is SameSite=Strict, so pages of other sites use bearer tokens.
func cors(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" || !slices.Contains(origins, strings.ToLower(origin)) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST")
			h.Add("Vary", "Access-Control-Request-Headers")
			h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Values("Access-Control-Request-Headers")))
			h.Set("Access-Control-Max-Age", "7200")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHeaders are the request headers that the API reads.
const ownHeaders = "Authorization, Content-Type, Accept-Language, X-Request-Id, X-Seckill-Session, Apollo-Require-Preflight"

// Bounds of the header names that a preflight asks for.
const (
	maxAskedHeaders = 64 // names
	maxHeaderName   = 64 // bytes of a name
)

// refusedHeaders are headers by which proxies say who sends a request. A page must not set
// them.
var refusedHeaders = []string{"forwarded", "x-real-ip", "true-client-ip", "cf-connecting-ip"}

// allowedHeaders returns the request headers that a page of an allowed origin may send: all
// that it asks for, because clients and tracing libraries add headers of their own, which
// the API ignores, and one unknown name would refuse the whole request. "*" does not do:
// browsers take it for a name where credentials are allowed.
func allowedHeaders(asked []string) string {
	names := strings.Split(ownHeaders, ", ")
	for name := range strings.SplitSeq(strings.Join(asked, ","), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		known := slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		if known || !isHeaderName(name) || slices.Contains(refusedHeaders, name) || strings.HasPrefix(name, "x-forwarded-") ||
			len(names) == maxAskedHeaders {
			continue
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// isHeaderName reports whether a text is a lower-case name of a header (RFC 9110, token).
func isHeaderName(name string) bool {
	return name != "" && len(name) <= maxHeaderName && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

// header values, shared: net/http does not modify them
var (
	nosniff       = []string{"nosniff"}
	noReferrer    = []string{"no-referrer"}
	denyFrames    = []string{"DENY"}
	sameOrigin    = []string{"same-origin"}
	hsts          = []string{"max-age=31536000"}
	hstsBelow     = []string{"max-age=31536000; includeSubDomains"}
	noPermissions = []string{"camera=(), microphone=(), geolocation=(), payment=(), usb=()"}
	// paymentPermissions lets the script of a provider open the wallets of the browser.
	paymentPermissions = []string{"camera=(), microphone=(), geolocation=(), payment=*, usb=()"}
)

// isPayment reports whether a path is that of a page on which a card is entered:
// /orders/{id}/pay of an order, /s/{slug}/card of an entry of a draw.
func isPayment(path string) bool {
	for folder, page := range map[string]string{"/orders/": "pay", "/s/": "card"} {
		if of, ok := strings.CutPrefix(path, folder); ok {
			id, last, _ := strings.Cut(of, "/")
			return id != "" && last == page
		}
	}
	return false
}

// pageCSP returns the content policy of pages. The widget of an outside captcha loads
// scripts, styles and frames and sends requests, all to the same origins. style is the source
// of the style sheet in the page; "" = none.
func pageCSP(style string, origins []string) []string {
	self, frames := "'self'", ""
	if len(origins) > 0 {
		others := " " + strings.Join(origins, " ")
		self, frames = self+others, "frame-src"+others+"; "
	}
	styles := self
	if style != "" {
		styles += " " + style
	}
	return []string{"default-src 'none'; script-src " + self + "; style-src " + styles +
		"; img-src 'self' data: https:; media-src 'self' data:; " +
		"font-src 'self'; connect-src " + self + "; " + frames +
		"worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"}
}

// apiCSP is for responses that are data: they are neither rendered nor framed.
var apiCSP = []string{"default-src 'none'; frame-ancestors 'none'"}

// securityHeaders adds the same headers to every page; the playground relaxes its own content
// policy. API responses are data: they have only the headers that prevent rendering,
// because on the hot path each header costs time (more than eight grow the map, about 2
// µs).
func (o PublicOptions) securityHeaders(next http.Handler) http.Handler {
	strict := hsts
	if o.HSTSSubdomains {
		strict = hstsBelow
	}
	csp, payCSP := pageCSP(o.Style, o.CaptchaOrigins), pageCSP(o.Style, slices.Concat(o.CaptchaOrigins, o.PaymentOrigins))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"] = nosniff
		if r.URL.Path == "/graphql" {
			h["Content-Security-Policy"] = apiCSP
		} else {
			h["Content-Security-Policy"], h["Permissions-Policy"] = csp, noPermissions
			if len(o.PaymentOrigins) > 0 && isPayment(r.URL.Path) {
				h["Content-Security-Policy"], h["Permissions-Policy"] = payCSP, paymentPermissions
			}
			h["Referrer-Policy"] = noReferrer
			h["X-Frame-Options"] = denyFrames
			h["Cross-Origin-Opener-Policy"] = sameOrigin
		}
		if auth.ClientFrom(r.Context()).Secure {
			h["Strict-Transport-Security"] = strict
		}
		next.ServeHTTP(w, r)
	})
}

// metrics counts the requests of the public listener.
type metrics struct {
	requests *prometheus.CounterVec   // by route and status
	seconds  *prometheus.HistogramVec // by route
}

func newMetrics(reg prometheus.Registerer) *metrics {
	of := telemetry.For(reg, "server")
	return &metrics{
		requests: of.Counters("requests_total",
			"HTTP requests. Label route: the pattern. Label status: the status code.", "route", "status"),
		seconds: of.Histograms("request_seconds",
			"Duration of HTTP requests. Label route: the pattern.", telemetry.Seconds(), "route"),
	}
}

// observe counts one response.
func (m *metrics) observe(route string, status int, took time.Duration, traceID string) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	telemetry.Observe(m.seconds.WithLabelValues(route), took.Seconds(), traceID)
}
