package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seckill/graph/transport"
	"seckill/internal/platform/auth"
	"seckill/internal/testenv"
)

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
	c.subscribe("q", `{hello}`) // the socket stays open
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
	f := setup(t, setupOptions{sockets: transport.SocketOptions{InitTimeout: testenv.Wait}})
	long := strings.Repeat("i", 200)
	for name, c := range map[string]struct {
		acked  bool
		frames []string
		code   int
		reason string
	}{
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
		"token has expired":       {false, []string{`{"type":"connection_init","payload":{"authorization":"Bearer user:ann:-1s"}}`}, 4403, "Forbidden"},
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

func TestASocketWithoutInitIsClosed(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{sockets: transport.SocketOptions{InitTimeout: 100 * time.Millisecond}})
	f.dial(dialOptions{}).expectClose(4408, "Connection initialisation timeout")
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
	for _, encrypted := range []bool{false, true} {
		f := setup(t, setupOptions{
			sockets: transport.SocketOptions{Origins: []string{"https://shop.example"}},
			client:  func() auth.Client { return auth.Client{Secure: encrypted} },
		})
		host := strings.TrimPrefix(f.server.URL, "http://")
		downgraded := 101
		if encrypted {
			downgraded = 403
		}
		for origin, want := range map[string]int{
			"https://evil.example": 403, "https://shop.example": 101, "http://shop.example": 403, "": 101, "null": 403,
			"https://" + host: 101, "http://" + host: downgraded,
		} {
			h := http.Header{}
			if origin != "" {
				h.Set("Origin", origin)
			}
			conn, resp, err := websocket.Dial(t.Context(), "ws://"+host+"/graphql", &websocket.DialOptions{HTTPHeader: h})
			if err == nil {
				_ = conn.CloseNow()
			}
			if resp == nil || resp.StatusCode != want {
				t.Errorf("%q, encrypted %v: %v %v", origin, encrypted, resp, err)
			}
		}
	}
}

func TestBadUpgradesAreNotQuoted(t *testing.T) {
	t.Parallel()
	f := setup(t, setupOptions{})
	a := f.do(http.MethodGet, "/graphql", "", header("Upgrade", "s3cr3t"), header("Connection", "Upgrade"), header("Sec-WebSocket-Key", "s3cr3t"))
	if a.status != 400 || strings.Contains(a.body, "s3cr3t") {
		t.Errorf("%d %s", a.status, a.body)
	}
	f.query(`{hello}`, "", header("Upgrade", "h2c"), header("Connection", "Upgrade, HTTP2-Settings")).contains(t, 200, "hello")
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
