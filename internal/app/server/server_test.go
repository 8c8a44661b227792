package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"seckill/internal/app/server"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var site = fstest.MapFS{
	"index.html":             {Data: []byte("<!doctype html><title>shop</title>")},
	"assets/app.js":          {Data: []byte("console.log(1);" + strings.Repeat("// filler\n", 100))},
	"assets/icon.svg":        {Data: []byte("<svg/>")},
	"robots.txt":             {Data: []byte("User-agent: *\n")},
	"client/seckill-drop.js": {Data: []byte("export {};\n")},

	"manifest.webmanifest": {Data: []byte(`{"name":"shop"}`)},
}

func echo(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, auth.ClientAddr(r.Context()).String())
}

func newPublic(t *testing.T, opts server.PublicOptions) http.Handler {
	t.Helper()
	if opts.GraphQL == nil {
		opts.GraphQL = http.HandlerFunc(echo)
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h, err := server.NewPublic(opts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func shop(t *testing.T) http.Handler {
	t.Helper()
	h, err := server.NewSite(site, "abc")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

type change func(*http.Request)

func set(key, value string) change { return func(r *http.Request) { r.Header.Set(key, value) } }

func call(t *testing.T, h http.Handler, method, url string, changes ...change) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, url, nil)
	for _, c := range changes {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestBalancersSeeADrain(t *testing.T) {
	t.Parallel()
	draining := false
	h := newPublic(t, server.PublicOptions{Site: shop(t), Draining: func() bool { return draining }})
	if w := call(t, h, http.MethodGet, "/healthz"); w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	draining = true
	if w := call(t, h, http.MethodHead, "/healthz"); w.Code != 503 {
		t.Errorf("while it drains: %d", w.Code)
	}
}

func TestSubdomainsUseHTTPSBySetting(t *testing.T) {
	t.Parallel()
	for below, want := range map[bool]string{false: "max-age=31536000", true: "max-age=31536000; includeSubDomains"} {
		h := newPublic(t, server.PublicOptions{HTTPS: true, HSTSSubdomains: below})
		if got := call(t, h, http.MethodGet, "/").Header().Get("Strict-Transport-Security"); got != want {
			t.Errorf("with %t it is %q, want %q", below, got, want)
		}
	}
}

func TestPagesOfOtherOriginsLoadTheComponent(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Site: shop(t), Origins: []string{"https://store.example"}})
	for origin, want := range map[string]string{"https://any.example": "*", "https://store.example": "https://store.example"} {
		w := call(t, h, http.MethodGet, "/client/seckill-drop.js", set("Origin", origin))
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != 200 || got != want {
			t.Errorf("%s: %d, %q, want %q", origin, w.Code, got, want)
		}
	}
	if w := call(t, h, http.MethodGet, "/assets/app.js", set("Origin", "https://any.example")); w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("a file of the shop is for any origin")
	}
}

func TestShopPagesFallBackToIndex(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Site: shop(t)})
	for path, want := range map[string]int{
		"/": 200, "/s/summer": 200, "/assets/app.js": 200, "/robots.txt": 200,
		"/assets/gone.js": 404, "/client/gone": 404, "/gone.png": 404, "/healthz": 200, "/nope": 404, "/s/summer/more": 404, "/metrics": 404, "/debug/pprof/": 404, "/playground": 404, "/webhooks/x": 404,
	} {
		if w := call(t, h, http.MethodGet, path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if w := call(t, h, http.MethodGet, "/nope"); !strings.Contains(w.Header().Get("Content-Type"), "text/html") || w.Body.Len() == 0 {
		t.Errorf("an unknown page is not rendered: %v", w.Header())
	}
	if w := call(t, h, http.MethodGet, "/nope", set("If-None-Match", call(t, h, http.MethodGet, "/").Header().Get("ETag"))); w.Code != 404 {
		t.Errorf("an unknown page in the cache: %d", w.Code)
	}
	if w := call(t, h, http.MethodPost, "/s/summer"); w.Code != 405 {
		t.Errorf("POST to a page: %d", w.Code)
	}
}

func TestFilesAreCachedByVersionAndRevalidatedByTag(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Site: shop(t)})
	for url, want := range map[string]string{
		"/assets/app.js?v=abc": "public, max-age=31536000, immutable",
		"/assets/app.js?v=old": "no-cache",
		"/assets/app.js":       "no-cache",
		"/":                    "no-cache",
	} {
		if got := call(t, h, http.MethodGet, url).Header().Get("Cache-Control"); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	// The name of the shop is in it, and its address never changes.
	if got := call(t, h, http.MethodGet, "/manifest.webmanifest").Header(); got.Get("Content-Type") != "application/manifest+json" || got.Get("Cache-Control") != "no-cache" || got.Get("ETag") == "" {
		t.Errorf("the manifest: %v", got)
	}
	w := call(t, h, http.MethodGet, "/assets/app.js")
	tag := w.Header().Get("ETag")
	if tag == "" || strings.HasPrefix(tag, "W/") {
		t.Fatalf("tag %q", tag)
	}
	if w := call(t, h, http.MethodGet, "/assets/app.js", set("If-None-Match", tag)); w.Code != 304 || w.Body.Len() != 0 {
		t.Errorf("known tag: %d", w.Code)
	}
	packed := call(t, h, http.MethodGet, "/assets/app.js", set("Accept-Encoding", "br, gzip"))
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= w.Body.Len() || packed.Header().Get("ETag") == tag {
		t.Errorf("packed: %v", packed.Header())
	}
	if w := call(t, h, http.MethodGet, "/assets/app.js", set("Accept-Encoding", "gzip;q=0")); w.Header().Get("Content-Encoding") != "" {
		t.Error("gzip was refused by the client")
	}
	if w := call(t, h, http.MethodHead, "/assets/app.js"); w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Error("HEAD has a body")
	}
}

func TestAnswersCarrySecurityHeaders(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Site: shop(t), Playground: true, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	for _, path := range []string{"/", "/playground", "/nope.js"} {
		w := call(t, h, http.MethodGet, path)
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := w.Header().Get(key); got != want {
				t.Errorf("%s: %s is %q", path, key, got)
			}
		}
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "script-src 'self';") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe-eval") {
			t.Errorf("%s: %s", path, csp)
		}
		if w.Header().Get("X-Request-Id") == "" || w.Header().Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	data := call(t, h, http.MethodGet, "/graphql").Header()
	if data.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" || data.Get("X-Content-Type-Options") != "nosniff" ||
		data.Get("X-Request-Id") == "" {
		t.Errorf("answers of the API: %v", data)
	}
	if w := call(t, h, http.MethodGet, "/", set("X-Forwarded-Proto", "https")); w.Header().Get("Strict-Transport-Security") == "" {
		t.Error("behind TLS there is no HSTS")
	}
	if w := call(t, newPublic(t, server.PublicOptions{HTTPS: true}), http.MethodGet, "/"); w.Header().Get("Strict-Transport-Security") == "" {
		t.Error("at an address with https there is no HSTS")
	}
	if w := call(t, h, http.MethodGet, "/", set("X-Request-Id", "from-proxy-1")); w.Header().Get("X-Request-Id") != "from-proxy-1" {
		t.Error("the request id of a proxy is lost")
	}
}

func TestOtherOriginsAreRefusedUnlessListed(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Origins: []string{"https://Shop.example/"}})
	foreign := []change{set("Origin", "https://evil.example"), set("Sec-Fetch-Site", "cross-site")}
	if w := call(t, h, http.MethodPost, "/graphql", foreign...); w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("foreign: %d %v", w.Code, w.Header())
	}
	listed := []change{set("Origin", "https://shop.example"), set("Sec-Fetch-Site", "cross-site")}
	if w := call(t, h, http.MethodPost, "/graphql", listed...); w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("listed: %d %v", w.Code, w.Header())
	}
	pre := append(listed, set("Access-Control-Request-Method", "POST"))
	w := call(t, h, http.MethodOptions, "/graphql", pre...)
	for _, header := range []string{"Authorization", "Content-Type", "X-Seckill-Session"} {
		if w.Code != 204 || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), header) {
			t.Errorf("preflight of %s: %d %v", header, w.Code, w.Header())
		}
	}
	// What clients and tracing libraries send, see the documentation of each.
	sent := []string{
		"apollographql-client-name", "apollographql-client-version", "apollo-require-preflight", "x-apollo-operation-name", "x-apollo-operation-id",
		"x-requested-with", "sentry-trace", "baggage", "traceparent", "tracestate", "b3", "x-b3-traceid", "x-datadog-trace-id", "x-datadog-parent-id",
		"x-datadog-origin", "x-datadog-sampling-priority", "newrelic", "x-amzn-trace-id", "x-graphql-client-name", "x-client-info", "cache-control", "accept-language",
	}
	w = call(t, h, http.MethodOptions, "/graphql", append(pre, set("Access-Control-Request-Headers", strings.Join(sent, ",")))...)
	granted := strings.Split(strings.ToLower(w.Header().Get("Access-Control-Allow-Headers")), ", ")
	for _, header := range sent {
		if !slices.Contains(granted, header) {
			t.Errorf("preflight of %s: %q", header, granted)
		}
	}
	bad := "x-forwarded-for, x-real-ip, a b, x\u00e9, , " + strings.Repeat("x", 100)
	w = call(t, h, http.MethodOptions, "/graphql", append(pre, set("Access-Control-Request-Headers", bad))...)
	if got := w.Header().Get("Access-Control-Allow-Headers"); strings.Contains(got, "for") || strings.Contains(got, "a b") || strings.Contains(got, "xxx") || strings.Contains(got, "real") {
		t.Errorf("preflight of %q: %q", bad, got)
	}
	if w := call(t, h, http.MethodOptions, "/graphql", append(foreign, set("Access-Control-Request-Method", "POST"))...); w.Header().Get("Access-Control-Allow-Methods") != "" {
		t.Error("a foreign preflight was granted")
	}
	if _, err := server.NewPublic(server.PublicOptions{GraphQL: http.HandlerFunc(echo), Origins: []string{"shop.example"}, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("an origin without a scheme was taken")
	}
}

// nginx, by default, sends its own name for the server in Host.
func TestPagesOfTheInstallationAreItsOwnBehindAnyProxy(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Address: "https://Shop.example/"})
	w := call(t, h, http.MethodPost, "/graphql", set("Origin", "https://shop.example"))
	if w.Code != 200 || w.Header().Get("Vary") != "" {
		t.Errorf("own: %d %v", w.Code, w.Header())
	}
	if w := call(t, h, http.MethodPost, "/graphql", set("Origin", "https://evil.example")); w.Code != 403 {
		t.Errorf("foreign: %d", w.Code)
	}
}

func TestClientAddressIsBelievedFromOwnProxiesOnly(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct{ peer, forwarded, want string }{
		{"203.0.113.5:1", "", "203.0.113.5"},
		{"203.0.113.5:1", "198.51.100.1", "203.0.113.5"},
		{"10.0.0.1:1", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "1.2.3.4, 198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "1.2.3.4, 198.51.100.1, 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1:1", "1.2.3.4, nonsense", "10.0.0.1"},
		{"[::ffff:10.0.0.1]:1", "2001:db8::1", "2001:db8::1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"10.0.0.1:1", "1.2.3.4, 198.51.100.1:4711", "198.51.100.1"},
		{"10.0.0.1:1", "198.51.100.1:4711, 10.0.0.2:80", "198.51.100.1"},
		{"10.0.0.1:1", "[2001:db8::1]:4711", "2001:db8::1"},
		{"10.0.0.1:1", "[2001:db8::1]", "2001:db8::1"},
		{"10.0.0.1:1", "1.2.3.4, [2001:db8::1", "10.0.0.1"},
		{"10.0.0.1:1", "1.2.3.4, 198.51.100.1:99999", "10.0.0.1"},
	} {
		h := newPublic(t, server.PublicOptions{TrustedProxies: proxies})
		w := call(t, h, http.MethodGet, "/graphql", set("X-Forwarded-For", c.forwarded), func(r *http.Request) { r.RemoteAddr = c.peer })
		if got := w.Body.String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestOneLinePerRequestWithoutWhatWasSent(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	const marker = "s3cr3t"
	h := newPublic(t, server.PublicOptions{Log: slog.New(slog.NewJSONHandler(&out, nil)), Site: shop(t)})
	call(t, h, http.MethodPost, "/graphql?token="+marker, set("Authorization", "Bearer "+marker), set("X-Request-Id", marker+"{}"), set("User-Agent", marker))
	call(t, h, marker, "/"+marker)
	if n := strings.Count(out.String(), "\n"); n != 2 || strings.Contains(out.String(), marker) || !strings.Contains(out.String(), `"route":"/graphql","status":200`) {
		t.Errorf("%d lines: %s", n, out.String())
	}
}

// A mux redirects paths that it cleans, and includes them in its response.
func TestNoAnswerQuotesThePath(t *testing.T) {
	t.Parallel()
	const marker = "s3cr3t"
	files := http.NewServeMux()
	files.HandleFunc("GET /media/{name}", http.NotFound)
	h := newPublic(t, server.PublicOptions{Site: shop(t), Playground: true, Webhooks: files, Sandbox: files, Exports: files, Media: files, MediaBody: 10})
	for _, p := range []string{
		"//" + marker, "/x//" + marker, "/./" + marker, "/x/../" + marker, "/" + marker + "/..", "/webhooks?" + marker, "/sandbox?" + marker, "/exports?" + marker,
		"/webhooks//" + marker, "/media//" + marker, "/media/../" + marker, "/media/" + marker, "/playground//" + marker, "/playground?" + marker, "/%2f" + marker,
		"/graphql/?" + marker, "/graphql//" + marker, "/" + marker + ".js", "/" + marker,
	} {
		w := call(t, h, http.MethodGet, p)
		if shown := fmt.Sprint(w.Header()) + w.Body.String(); strings.Contains(shown, marker) || w.Code != 200 && w.Code != 404 {
			t.Errorf("%s: %d %s", p, w.Code, shown)
		}
	}
	if w := call(t, h, http.MethodGet, "/s/summer/"); w.Code != 200 {
		t.Errorf("a slash at the end: %d", w.Code)
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	h := newPublic(t, server.PublicOptions{
		GraphQL: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("s3cr3t") }),
		Log:     slog.New(slog.NewJSONHandler(&out, nil)),
	})
	if w := call(t, h, http.MethodPost, "/graphql"); w.Code != 500 || strings.Contains(w.Body.String()+out.String(), "s3cr3t") || !strings.Contains(out.String(), "server_test.go") {
		t.Errorf("%d %s %s", w.Code, w.Body, &out)
	}
}

func TestPlaygroundIsSelfHosted(t *testing.T) {
	t.Parallel()
	h := newPublic(t, server.PublicOptions{Playground: true, Tabs: server.NewTabs([]server.Tab{{Title: "start", Query: "{serverInfo{version}}"}})})
	page := call(t, h, http.MethodGet, "/playground").Body.String()
	if strings.Contains(page, "http:") || strings.Contains(page, "https:") || strings.Contains(page, "<style") {
		t.Errorf("the page reaches out: %s", page)
	}
	for _, name := range []string{"playground.js", "session.js", "playground.css", "assets/graphiql.js", "assets/graphiql.css", "assets/react.js", "assets/react-dom.js"} {
		w := call(t, h, http.MethodGet, "/playground/"+name, set("Accept-Encoding", "gzip"))
		if w.Code != 200 || !strings.Contains(page, "/playground/"+name) || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d", name, w.Code)
		}
		if plain := call(t, h, http.MethodGet, "/playground/"+name); plain.Body.Len() < w.Body.Len() || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s cannot be had unpacked", name)
		}
	}
	if got := call(t, h, http.MethodGet, "/playground/tabs.json").Body.String(); got != `[{"title":"start","query":"{serverInfo{version}}"}]`+"\n" {
		t.Error(got)
	}
	if w := call(t, h, http.MethodGet, "/"); w.Code != 200 || !strings.Contains(w.Body.String(), "/playground") {
		t.Error("the placeholder page is missing")
	}
}

func TestReadinessShowsReasons(t *testing.T) {
	t.Parallel()
	ready := server.NewReadiness(clock.System{},
		server.Check{Name: "redis", Run: func(context.Context) error { return nil }},
		server.Check{Name: "postgres", Run: func(context.Context) error { return errors.New("no route") }},
	)
	admin := server.NewAdmin(ready, http.HandlerFunc(echo), nil)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "127.0.0.1:9090"
		admin.ServeHTTP(w, r)
	})
	w := call(t, h, http.MethodGet, "/readyz")
	want := `{"checks":[{"name":"redis","ok":true},{"name":"postgres","ok":false,"reason":"no route"}],"ready":false}` + "\n"
	if w.Code != 503 || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/healthz", "/metrics", "/debug/pprof/", "/debug/pprof/goroutine"} {
		if w := call(t, h, http.MethodGet, path); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// drainer closes its channel when it drains.
type drainer chan struct{}

func (d drainer) Drain(context.Context) error {
	close(d)
	return nil
}

func TestDrainFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	ready := server.NewReadiness(clock.System{})
	drained := make(chan struct{})
	s, err := server.Listen(t.Context(), server.Options{
		PublicAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0",
		Public: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			_, _ = io.WriteString(w, "done")
		}),
		Admin: server.NewAdmin(ready, nil, nil), Ready: ready,
		Streams: drainer(drained), DrainTimeout: testenv.Wait, RequestTimeout: 10 * testenv.Wait, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	body := make(chan string, 1)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	go func() {
		resp, err := client.Get("http://" + s.PublicAddr().String() + "/")
		if err != nil {
			body <- err.Error()
			return
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		body <- string(text)
	}()
	<-entered
	stop()
	<-drained
	resp, err := client.Get("http://" + s.AdminAddr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "draining") {
		t.Errorf("while draining: %d %s", resp.StatusCode, text)
	}
	close(release)
	if got := <-body; got != "done" {
		t.Errorf("the running request was cut off: %s", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}
