package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/graph/guard"
	"seckill/graph/transport"
	"seckill/graph/transport/internal/testschema"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fixture is a running server on the test schema.
type fixture struct {
	t        testing.TB
	resolver *testschema.Resolver
	sockets  *transport.Sockets
	server   *httptest.Server
	client   *http.Client
}

type setupOptions struct {
	production bool
	guard      guard.Options
	sockets    transport.SocketOptions
	transport  transport.Options
	http2      bool
	configure  func(*http.Server)
	client     func() auth.Client // of the requests; nil = the zero value
}

type userKey struct{}

// authenticate accepts tokens "user:<name>[:<lifetime>]".
func authenticate(ctx context.Context, token string) (transport.Caller, error) {
	parts := strings.Split(token, ":")
	if parts[0] != "user" {
		return transport.Caller{}, fault.New(fault.Unauthenticated, "Sign in again.")
	}
	c := transport.Caller{
		Context: context.WithValue(ctx, userKey{}, parts[1]),
		User:    id.User(uuid.NewSHA1(uuid.NameSpaceOID, []byte(parts[1]))),
		Session: sessionOf(parts[1]),
	}
	if len(parts) > 2 {
		d, err := time.ParseDuration(parts[2])
		if err != nil {
			return transport.Caller{}, err
		}
		c.ExpiresAt = time.Now().Add(d)
	}
	return c, nil
}

func setup(t testing.TB, o setupOptions) *fixture {
	t.Helper()
	f := &fixture{t: t, resolver: &testschema.Resolver{}}
	f.resolver.Viewer = func(ctx context.Context) string {
		name, _ := ctx.Value(userKey{}).(string)
		return name
	}
	schema := testschema.NewExecutableSchema(testschema.Config{Resolvers: f.resolver})
	o.guard.Schema = schema.Schema()
	o.guard.Introspection = !o.production
	g, err := guard.New(o.guard)
	if err != nil {
		t.Fatal(err)
	}
	if o.sockets.DrainWindow == 0 {
		o.sockets.DrainWindow = 20 * time.Millisecond
	}
	if o.sockets.InitTimeout == 0 {
		o.sockets.InitTimeout = testenv.Wait
	}
	if o.sockets.PingEvery == 0 {
		o.sockets.PingEvery = time.Hour
	}
	if o.transport.Timeout == 0 {
		o.transport.Timeout = testenv.Wait
	}
	f.sockets = transport.NewSockets(o.sockets)
	opts := o.transport
	opts.Schema, opts.Guard, opts.Sockets = schema, g, f.sockets
	opts.Development = !o.production
	if opts.Authenticate == nil {
		opts.Authenticate = authenticate
	}
	handler := transport.NewHandler(opts)
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.client != nil {
			r = r.WithContext(auth.WithClient(r.Context(), o.client()))
		}
		handler.ServeHTTP(w, r)
	}))
	if o.configure != nil {
		o.configure(f.server.Config)
	}
	if o.http2 {
		f.server.EnableHTTP2 = true
		f.server.StartTLS()
	} else {
		f.server.Start()
	}
	f.client = f.server.Client()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Wait)
		defer cancel()
		if err := f.sockets.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		f.client.CloseIdleConnections()
		f.server.Close()
	})
	return f
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   string
}

type edit func(*http.Request)

func header(key, value string) edit {
	return func(r *http.Request) { r.Header.Set(key, value) }
}

var wantGraphQL = header("Accept", "application/graphql-response+json")

func (f *fixture) do(method, url, body string, edits ...edit) answer {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.server.URL+url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, e := range edits {
		e(r)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (f *fixture) post(body string, edits ...edit) answer {
	f.t.Helper()
	return f.do(http.MethodPost, "/graphql", body, edits...)
}

// query posts a document with variables given as JSON.
func (f *fixture) query(document, variables string, edits ...edit) answer {
	f.t.Helper()
	if variables == "" {
		variables = "null"
	}
	return f.post(fmt.Sprintf(`{"query":%q,"variables":%s}`, document, variables), edits...)
}

func (a answer) expect(t testing.TB, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got %d %s\nwant %d %s", a.status, a.body, status, body)
	}
}

func (a answer) contains(t testing.TB, status int, part string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.body, part) {
		t.Errorf("got %d %s\nwant %d …%s…", a.status, a.body, status, part)
	}
}
