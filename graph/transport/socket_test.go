package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"seckill/graph/transport"
)

// wsClient speaks frames, right or wrong.
type wsClient struct {
	t    testing.TB
	conn *websocket.Conn
}

type dialOptions struct {
	protocols []string
	header    http.Header
}

func (f *fixture) dial(o dialOptions) *wsClient {
	f.t.Helper()
	if o.protocols == nil {
		o.protocols = []string{"graphql-transport-ws"}
	}
	conn, resp, err := websocket.Dial(f.t.Context(), "ws"+strings.TrimPrefix(f.server.URL, "http")+"/graphql", &websocket.DialOptions{
		Subprotocols: o.protocols, HTTPHeader: o.header,
	})
	if err != nil {
		f.t.Fatalf("dial: %v (%v)", err, resp)
	}
	conn.SetReadLimit(1 << 20)
	c := &wsClient{t: f.t, conn: conn}
	f.t.Cleanup(func() { _ = conn.CloseNow() })
	return c
}

// open dials and is acknowledged.
func (f *fixture) open(token string) *wsClient {
	f.t.Helper()
	c := f.dial(dialOptions{})
	c.init(token)
	c.expect(`{"type":"connection_ack"}`)
	return c
}

func (c *wsClient) init(token string) {
	c.t.Helper()
	if token == "" {
		c.send(`{"type":"connection_init"}`)
		return
	}
	c.send(`{"type":"connection_init","payload":{"authorization":"Bearer ` + token + `"}}`)
}

func (c *wsClient) send(frame string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		c.t.Fatalf("send %s: %v", frame, err)
	}
}

func (c *wsClient) subscribe(id, document string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":{"query":%q}}`, id, document))
}

func (c *wsClient) read() (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 15*time.Second)
	defer cancel()
	_, data, err := c.conn.Read(ctx)
	return string(data), err
}

func (c *wsClient) expect(frame string) {
	c.t.Helper()
	got, err := c.read()
	if err != nil || got != frame {
		c.t.Fatalf("got %q, %v\nwant %q", got, err, frame)
	}
}

func (c *wsClient) expectPart(part string) {
	c.t.Helper()
	got, err := c.read()
	if err != nil || !strings.Contains(got, part) {
		c.t.Fatalf("got %q, %v\nwant …%s…", got, err, part)
	}
}

// expectClose wants nothing but the close.
func (c *wsClient) expectClose(code int, reason string) {
	c.t.Helper()
	got, err := c.read()
	var ce websocket.CloseError
	if err == nil || int(websocket.CloseStatus(err)) != code {
		c.t.Fatalf("got %q, %v, want close %d", got, err, code)
	}
	if ok := asClose(err, &ce); reason != "" && (!ok || ce.Reason != reason) {
		c.t.Errorf("closed with %q, want %q", ce.Reason, reason)
	}
}

func next(id, data string) string {
	return fmt.Sprintf(`{"type":"next","id":%q,"payload":{"data":%s}}`, id, data)
}

func TestStreamYieldsAndCompletes(t *testing.T) {
	t.Parallel()
	c := setup(t, setupOptions{}).open("")
	c.subscribe("1", `subscription{ticks(n:2)}`)
	c.expect(next("1", `{"ticks":1}`))
	c.expect(next("1", `{"ticks":2}`))
	c.expect(`{"type":"complete","id":"1"}`)
	c.subscribe("1", `subscription{ticks(n:1)}`) // the id is free again
	c.expect(next("1", `{"ticks":1}`))
	c.expect(`{"type":"complete","id":"1"}`)
}

func TestQueriesRunOverSocketsAndMutationsDoNot(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	c := f.open("user:ann")
	c.subscribe("q", `{viewer}`)
	c.expectPart(`{"type":"next","id":"q","payload":{"data":{"viewer":"ann"}`)
	c.expect(`{"type":"complete","id":"q"}`)
	c.subscribe("m", `mutation{set(input:{key:"k",value:1}){ok}}`)
	c.expectPart(`{"type":"error","id":"m","payload":[{"message":"Send mutations by POST.","extensions":{"code":"BAD_USER_INPUT"}}]}`)
	c.subscribe("q", `{hello}`) // the socket goes on
	c.expectPart(`"hello"`)
	if f.resolver.Sets.Load() != 0 {
		t.Error("the mutation ran")
	}
}

func TestNothingFollowsAnError(t *testing.T) {
	t.Parallel()
	c := setup(t, setupOptions{}).open("")
	for _, doc := range []string{`subscription{nope}`, `subscription{`, `subscription{refused}`} {
		c.subscribe("e", doc)
		c.expectPart(`{"type":"error","id":"e","payload":[{"message":`)
		c.send(`{"type":"ping"}`)
		c.expect(`{"type":"pong"}`)
	}
}

func TestClientsCompleteIsNotEchoedAndFreesTheID(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	c := f.open("")
	for range 5 {
		c.subscribe("x", `subscription{idle}`)
		c.expect(next("x", `{"idle":1}`))
		c.send(`{"type":"complete","id":"x"}`)
	}
	c.send(`{"type":"complete","id":"never"}`)
	c.send(`{"type":"ping","payload":{"secret":1}}`)
	c.expect(`{"type":"pong"}`)
	f.eventually("streams end", func() bool { return f.resolver.Streams.Load() == 0 })
}

func TestProtocolViolationsHaveTheirCloseCodes(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{InitTimeout: 100 * time.Millisecond}})
	long := strings.Repeat("i", 200)
	for name, c := range map[string]struct {
		acked  bool
		frames []string
		code   int
		reason string
	}{
		"no init in time":         {false, nil, 4408, "Connection initialisation timeout"},
		"subscribe before ack":    {false, []string{`{"id":"1","type":"subscribe","payload":{"query":"{hello}"}}`}, 4401, "Unauthorized"},
		"second init":             {true, []string{`{"type":"connection_init"}`}, 4429, "Too many initialisation requests"},
		"not JSON":                {true, []string{`{`}, 4400, ""},
		"not an object":           {true, []string{`[]`}, 4400, ""},
		"text behind":             {true, []string{`{"type":"ping"}x`}, 4400, ""},
		"unknown type":            {true, []string{`{"type":"start","id":"1"}`}, 4400, ""},
		"no type":                 {true, []string{`{"id":"1"}`}, 4400, ""},
		"type is a number":        {true, []string{`{"type":1}`}, 4400, ""},
		"subscribe without id":    {true, []string{`{"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"id is empty":             {true, []string{`{"id":"","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"id is a number":          {true, []string{`{"id":1,"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"id is too long":          {true, []string{`{"id":"` + long + `","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"no payload":              {true, []string{`{"id":"1","type":"subscribe"}`}, 4400, ""},
		"payload is a string":     {true, []string{`{"id":"1","type":"subscribe","payload":"{hello}"}`}, 4400, ""},
		"no query":                {true, []string{`{"id":"1","type":"subscribe","payload":{}}`}, 4400, ""},
		"query is a number":       {true, []string{`{"id":"1","type":"subscribe","payload":{"query":1}}`}, 4400, ""},
		"variables are a list":    {true, []string{`{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":[]}}`}, 4400, ""},
		"complete without id":     {true, []string{`{"type":"complete"}`}, 4400, ""},
		"init payload is a list":  {false, []string{`{"type":"connection_init","payload":[]}`}, 4400, ""},
		"token is a number":       {false, []string{`{"type":"connection_init","payload":{"authorization":5}}`}, 4400, ""},
		"token is refused":        {false, []string{`{"type":"connection_init","payload":{"authorization":"Bearer forged"}}`}, 4403, "Forbidden"},
		"token has lapsed":        {false, []string{`{"type":"connection_init","payload":{"authorization":"Bearer user:ann:-1s"}}`}, 4403, "Forbidden"},
		"ping payload is a list":  {true, []string{`{"type":"ping","payload":[]}`}, 4400, ""},
		"frame is too large":      {true, []string{`{"type":"ping","payload":{"x":"` + strings.Repeat("x", 17<<10) + `"}}`}, 1009, ""},
		"duplicate id, same name": {true, []string{`{"id":"d","type":"subscribe","payload":{"query":"subscription{idle}"}}`, `{"id":"d","type":"subscribe","payload":{"query":"subscription{idle}"}}`}, 4409, "Subscriber for d already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			client := f.dial(dialOptions{})
			client.t = t
			if c.acked {
				client.init("")
				client.expect(`{"type":"connection_ack"}`)
			}
			for _, frame := range c.frames {
				client.send(frame)
			}
			if name == "duplicate id, same name" {
				client.skipUntilClose(4409, c.reason)
				return
			}
			client.expectClose(c.code, c.reason)
		})
	}
}

func TestBinaryFrameIsRefused(t *testing.T) {
	t.Parallel()
	c := setup(t, setupOptions{}).open("")
	if err := c.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	c.expectClose(4400, "")
}

func TestUnknownSubprotocolIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	for _, protocols := range [][]string{{}, {"graphql-ws"}, {"nope", "other"}} {
		f.dial(dialOptions{protocols: protocols}).expectClose(4406, "Subprotocol not acceptable")
	}
	c := f.dial(dialOptions{protocols: []string{"graphql-ws", "graphql-transport-ws"}})
	if c.conn.Subprotocol() != "graphql-transport-ws" {
		t.Errorf("chose %q", c.conn.Subprotocol())
	}
}

func TestSocketsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{Origins: []string{"https://shop.example"}}})
	for origin, want := range map[string]int{
		"https://evil.example": 403, "https://shop.example": 101, "": 101, "null": 403, "https://" + strings.TrimPrefix(f.server.URL, "http://"): 101,
	} {
		h := http.Header{}
		if origin != "" {
			h.Set("Origin", origin)
		}
		conn, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(f.server.URL, "http")+"/graphql", &websocket.DialOptions{HTTPHeader: h})
		if err == nil {
			_ = conn.CloseNow()
		}
		if resp == nil || resp.StatusCode != want {
			t.Errorf("%q: %v %v", origin, resp, err)
		}
	}
}

func TestBadUpgradesAreNotQuoted(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	a := f.do(http.MethodGet, "/graphql", "", header("Upgrade", "s3cr3t"), header("Connection", "Upgrade"), header("Sec-WebSocket-Key", "s3cr3t"))
	if a.status != 426 || strings.Contains(a.body, "s3cr3t") {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = f.do(http.MethodGet, "/graphql", "", header("Upgrade", "websocket"), header("Connection", "Upgrade"), header("Sec-WebSocket-Key", "s3cr3t"), header("Sec-WebSocket-Version", "13"))
	if a.status != 400 || strings.Contains(a.body, "s3cr3t") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAnonymousAndHeaderTokensAreKnown(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	c := f.dial(dialOptions{header: http.Header{"Authorization": {"Bearer user:header"}}})
	c.init("")
	c.expect(`{"type":"connection_ack"}`)
	c.subscribe("1", `{viewer}`)
	c.expectPart(`{"viewer":"header"}`)
	c = f.dial(dialOptions{})
	c.send(`{"type":"connection_init","payload":{"Authorization":"Bearer user:upper"}}`) // GraphiQL's header editor
	c.expect(`{"type":"connection_ack"}`)
	c.subscribe("1", `{viewer}`)
	c.expectPart(`{"viewer":"upper"}`)
	c = f.open("")
	c.subscribe("1", `{viewer}`)
	c.expectPart(`{"viewer":null}`)
}

func TestTokenExpiryClosesWithoutComplete(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	for range 20 {
		c := f.open("user:" + uuid.NewString() + ":150ms")
		for i := range 5 {
			c.subscribe(fmt.Sprint(i), `subscription{idle}`)
			c.expectPart(`{"idle":1}`)
		}
		c.expectClose(4403, "Token expired")
	}
}

func TestSignOutClosesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSessions()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{Watch: s.watch}})
	mine, other := f.open("user:mine"), f.open("user:other")
	mine.subscribe("1", `subscription{idle}`)
	mine.expectPart(`{"idle":1}`)
	s.end("mine")
	mine.expectClose(4403, "Session ended")
	other.send(`{"type":"ping"}`)
	other.expect(`{"type":"pong"}`)
	late := f.dial(dialOptions{}) // the session has ended before the socket is acknowledged
	late.init("user:mine")
	late.skipUntilClose(4403, "Session ended")
	_ = other.conn.Close(1000, "")
	f.eventually("watches are taken back", func() bool { return s.count() == 0 })
}

// sessions are sign-outs as the account rooms tell them.
type sessions struct {
	mu      sync.Mutex
	ended   map[uuid.UUID]bool
	watches map[uuid.UUID]map[int]func()
	next    int
}

func newSessions() *sessions {
	return &sessions{ended: map[uuid.UUID]bool{}, watches: map[uuid.UUID]map[int]func(){}}
}

func sessionOf(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)) }

func (s *sessions) watch(session uuid.UUID, ended func()) (unwatch func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[session] {
		ended()
		return func() {}
	}
	if s.watches[session] == nil {
		s.watches[session] = map[int]func(){}
	}
	s.next++
	n := s.next
	s.watches[session][n] = ended
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches[session], n)
	}
}

func (s *sessions) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := sessionOf(name)
	s.ended[session] = true
	for _, ended := range s.watches[session] {
		ended()
	}
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, w := range s.watches {
		n += len(w)
	}
	return n
}

func TestSocketsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	var open []*wsClient
	for range 3 {
		open = append(open, f.open("user:many"))
	}
	c := f.dial(dialOptions{})
	c.init("user:many")
	c.expectClose(4429, "Too many sockets")
	f.open("user:else")
	_ = open[0].conn.Close(1000, "")
	f.eventually("the socket is forgotten", func() bool { return f.sockets.Count() == 3 })
	f.open("user:many")
}

func TestStreamsOfOneSocketAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	c := f.open("")
	for i := range 20 {
		c.subscribe(fmt.Sprint(i), `subscription{idle}`)
		c.expectPart(`{"idle":1}`)
	}
	c.subscribe("more", `subscription{idle}`)
	c.expectPart(`{"type":"error","id":"more","payload":[{"message":"Too many streams on one socket.","extensions":{"code":"RATE_LIMITED"}}]}`)
	c.send(`{"type":"complete","id":"7"}`)
	c.subscribe("more", `subscription{idle}`)
	c.expectPart(`{"idle":1}`)
}

func TestFloodOfFramesCloses(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	c := f.open("")
	for range 100 {
		if c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"pong"}`)) != nil {
			break
		}
	}
	c.expectClose(4429, "Too many messages")
}

func TestDrainClosesAllWithServiceRestart(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{DrainWindow: 200 * time.Millisecond}})
	var clients []*wsClient
	for range 10 {
		c := f.open("")
		c.subscribe("1", `subscription{idle}`)
		c.expectPart(`{"idle":1}`)
		clients = append(clients, c)
	}
	drained := make(chan error, 1)
	go func() { drained <- f.sockets.Drain(t.Context()) }()
	for _, c := range clients {
		c.expectClose(1012, "Server restarting")
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	_, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(f.server.URL, "http")+"/graphql", nil)
	if err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a draining server takes sockets: %v", resp)
	}
}

func TestServiceThatIsAwayDoesNotForbid(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{transport: transport.Options{Authenticate: func(context.Context, string) (transport.Caller, error) {
		return transport.Caller{}, context.DeadlineExceeded
	}}})
	c := f.dial(dialOptions{})
	c.init("user:ann")
	c.expectClose(1012, "Try again")
}

// skipUntilClose reads past messages to the close.
func (c *wsClient) skipUntilClose(code int, reason string) {
	c.t.Helper()
	for {
		_, err := c.read()
		if err == nil {
			continue
		}
		var ce websocket.CloseError
		if !asClose(err, &ce) || int(ce.Code) != code || ce.Reason != reason {
			c.t.Errorf("closed with %v", err)
		}
		return
	}
}

func asClose(err error, into *websocket.CloseError) bool { return errors.As(err, into) }

// eventually polls what no signal tells.
func (f *fixture) eventually(what string, cond func() bool) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			f.t.Fatalf("never: %s", what)
		}
	}
}
