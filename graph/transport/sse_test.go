package transport_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/transport"
	"seckill/internal/testenv"
)

// events is an SSE stream as a client reads it.
type events struct {
	t      testing.TB
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

func (f *fixture) events(document string, edits ...edit) *events {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), testenv.Wait)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL+"/graphql", strings.NewReader(`{"query":"`+document+`"}`))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for _, e := range edits {
		e(r)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	e := &events{t: f.t, resp: resp, lines: bufio.NewReader(resp.Body), cancel: cancel}
	f.t.Cleanup(e.leave)
	return e
}

func (e *events) leave() {
	e.cancel()
	_ = e.resp.Body.Close()
}

// next returns the next event without keep-alives; "" at the end of the stream.
func (e *events) next() string {
	var got []string
	for {
		line, err := e.lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		switch {
		case err != nil:
			return strings.Join(got, "|")
		case line == "" && len(got) > 0:
			return strings.Join(got, "|")
		case line != "" && line[0] != ':':
			got = append(got, line)
		}
	}
}

func (e *events) expect(want string) {
	e.t.Helper()
	if got := e.next(); got != want {
		e.t.Fatalf("got %q, want %q", got, want)
	}
}

// bothProtocols runs a test over HTTP/1.1 and HTTP/2.
func bothProtocols(t *testing.T, o setupOptions, test func(t *testing.T, f *fixture)) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.http2 = http2
			test(t, setup(t, o))
		})
	}
}

func TestEventsYieldAndComplete(t *testing.T) {
	bothProtocols(t, setupOptions{}, func(t *testing.T, f *fixture) {
		e := f.events(`subscription{ticks(n:2)}`)
		if got := e.resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
			t.Error(got)
		}
		e.expect(`event: next|data: {"data":{"ticks":1}}`)
		e.expect(`event: next|data: {"data":{"ticks":2}}`)
		e.expect(`event: complete|data:`)
		e.expect("")
		e = f.events(`{hello}`)
		e.expect(`event: next|data: {"data":{"hello":"hello"},"extensions":{"cost":{"requestedQueryCost":0,"maximumAvailable":5000}}}`)
		e.expect(`event: complete|data:`)
		e = f.events(`subscription{refused}`)
		e.expect(`event: next|data: {"errors":[{"message":"Sign in.","path":["refused"],"locations":[{"line":1,"column":14}],"extensions":{"code":"UNAUTHENTICATED"}}]}`)
		e.expect(`event: complete|data:`)
		e = f.events(`subscription{nope}`)
		if got := e.next(); !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
			t.Error(got)
		}
		e.expect(`event: complete|data:`)
	})
}

// collapsing panics outside of the executor's recovery.
type collapsing struct{}

func (collapsing) ExtensionName() string                   { return "Collapsing" }
func (collapsing) Validate(graphql.ExecutableSchema) error { return nil }
func (collapsing) InterceptResponse(context.Context, graphql.ResponseHandler) *graphql.Response {
	panic("on purpose")
}

func TestAPanicEndsAStreamInItsOwnForm(t *testing.T) {
	bothProtocols(t, setupOptions{transport: transport.Options{Extensions: []graphql.HandlerExtension{collapsing{}}}}, func(_ *testing.T, f *fixture) {
		for _, document := range []string{`subscription{idle}`, `{hello}`} {
			e := f.events(document)
			e.expect(`event: next|data: {"errors":[{"message":"Something went wrong.","extensions":{"code":"INTERNAL"}}]}`)
			e.expect(`event: complete|data:`)
			e.expect("")
		}
	})
}

func TestBadEventRequestsAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	accept := header("Accept", "text/event-stream")
	f.post(`{`, accept).contains(t, 400, "not JSON")
	f.query(`subscription{idle}`, "", accept, header("Authorization", "Bearer forged")).contains(t, 401, "UNAUTHENTICATED")
	f.do(http.MethodGet, "/graphql?query=mutation{set(input:{key:\"k\",value:1}){ok}}", "", accept).contains(t, 405, "GET")
	f.do(http.MethodGet, "/graphql?query=subscription{ticks(n:1)}", "", accept).contains(t, 200, `{"ticks":1}`)
	if f.resolver.Sets.Load() != 0 {
		t.Error("a mutation ran by GET")
	}
}

func TestClientsThatLeaveEndTheirStreams(t *testing.T) {
	bothProtocols(t, setupOptions{}, func(t *testing.T, f *fixture) {
		for range 10 {
			e := f.events(`subscription{idle}`)
			e.expect(`event: next|data: {"data":{"idle":1}}`)
			e.leave()
		}
		f.eventually("streams end", func() bool { return f.resolver.Streams.Load() == 0 && f.sockets.Count() == 0 })
	})
}

// gqlgen's own transport writes keep-alives to responses whose handler has returned,
// which crashes the process. Here keep-alives fire continuously while streams open and
// close.
func TestKeepAliveNeverWritesAfterTheHandler(t *testing.T) {
	bothProtocols(t, setupOptions{transport: transport.Options{KeepAlive: 50 * time.Microsecond}}, func(_ *testing.T, f *fixture) {
		for i := range 150 {
			e := f.events(`subscription{ticks(n:3)}`)
			for range i % 5 {
				_ = e.next()
			}
			e.leave()
		}
		f.eventually("streams end", func() bool { return f.sockets.Count() == 0 })
	})
}

func TestQuietStreamsStayOpenPastTheServersTimeouts(t *testing.T) {
	t.Parallel()
	const timeouts = 8 * time.Second // long enough for the start of the stream
	f := setup(t, setupOptions{transport: transport.Options{KeepAlive: 20 * time.Millisecond}, configure: func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = timeouts, timeouts
	}})
	e := f.events(`subscription{feed(topic:\"t\")}`)
	f.eventually("subscribed", func() bool { return f.resolver.Listeners("t") == 1 })
	for began := time.Now(); time.Since(began) < timeouts+500*time.Millisecond; { // keep-alives
		if line, err := e.lines.ReadString('\n'); err != nil || line[0] != ':' {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = e.lines.ReadString('\n')
	}
	f.resolver.Publish("t", "late")
	e.expect(`event: next|data: {"data":{"feed":"late"}}`)
}

func TestStreamsEndWithoutCompleteWhenTheServerEndsThem(t *testing.T) {
	s := newSessions()
	bothProtocols(t, setupOptions{sockets: transport.SocketOptions{Watch: s.watch}}, func(t *testing.T, f *fixture) {
		expired := f.events(`subscription{idle}`, header("Authorization", "Bearer user:short:150ms"))
		for i, want := range []string{`event: next|data: {"data":{"idle":1}}`, ""} {
			got := expired.next()
			if i == 0 && got == "" {
				break // on a slow machine
			}
			if got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		name := strings.ReplaceAll(t.Name(), "/", "-") // one session per protocol
		out := f.events(`subscription{idle}`, header("Authorization", "Bearer user:"+name))
		out.expect(`event: next|data: {"data":{"idle":1}}`)
		s.end(name)
		out.expect("")
		drained := f.events(`subscription{idle}`)
		drained.expect(`event: next|data: {"data":{"idle":1}}`)
		if err := f.sockets.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		drained.expect("")
		f.query(`subscription{idle}`, "", header("Accept", "text/event-stream")).contains(t, 503, "UNAVAILABLE")
	})
}

// Signing out ends the streams of the session. The response to the sign-out is one of
// them and must still be sent.
func TestSigningOutByEventsIsAnswered(t *testing.T) {
	s := newSessions()
	bothProtocols(t, setupOptions{sockets: transport.SocketOptions{Watch: s.watch}}, func(t *testing.T, f *fixture) {
		name := strings.ReplaceAll(t.Name(), "/", "-") // one session per protocol
		f.resolver.Viewer = func(ctx context.Context) string {
			s.end(name)
			select {
			case <-ctx.Done():
				t.Error("the answer is cut off")
			case <-time.After(100 * time.Millisecond): // no event may arrive
			}
			return name
		}
		e := f.events(`{viewer}`, header("Authorization", "Bearer user:"+name))
		if got := e.next(); !strings.Contains(got, `{"viewer":"`+name+`"}`) {
			t.Errorf("got %q", got)
		}
		e.expect(`event: complete|data:`)
	})
}

func TestStreamsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{MaxStreams: 2}})
	ann := header("Authorization", "Bearer user:ann")
	for range 2 {
		f.events(`subscription{idle}`, ann).expect(`event: next|data: {"data":{"idle":1}}`)
	}
	f.query(`subscription{idle}`, "", header("Accept", "text/event-stream"), ann).contains(t, 429, "RATE_LIMITED")
}

// A client that stops reading occupies its goroutines for at most two write deadlines.
func TestStuckEventReaderIsGone(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := `{"query":"subscription{flood(bytes:8000)}"}`
	_, _ = io.WriteString(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: 43\r\n\r\n"+body)
	if len(body) != 43 {
		t.Fatal(len(body))
	}
	f.eventually("the stream runs", func() bool { return f.resolver.Begun.Load() == 1 })
	f.eventually("the stream is gone", func() bool { return f.resolver.Streams.Load() == 0 && f.sockets.Count() == 0 })
}

// Over HTTP/2 a stream blocks when its window is full; the connection and its other
// streams continue.
func TestStuckEventReaderIsGoneOverHTTP2(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{http2: true})
	f.events(`subscription{flood(bytes:8000)}`) // the response is not read
	f.eventually("the stream runs", func() bool { return f.resolver.Begun.Load() == 1 })
	other := f.events(`subscription{idle}`)
	other.expect(`event: next|data: {"data":{"idle":1}}`)
	f.eventually("the stuck stream is gone", func() bool { return f.resolver.Streams.Load() == 1 && f.sockets.Count() == 1 })
	if a := f.query(`{hello}`, ""); a.header.Get("Content-Type") == "" {
		t.Errorf("the connection is hurt: %d %s", a.status, a.body)
	}
	other.leave()
	f.eventually("the other ends", func() bool { return f.sockets.Count() == 0 })
}
