package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seckill/internal/testenv"
)

// wsClient is a WebSocket client that can also send invalid frames.
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

// open dials and waits for connection_ack.
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
	ctx, cancel := context.WithTimeout(c.t.Context(), testenv.Wait)
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

// expectClose fails on anything but a close frame with this code and reason.
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

// skipUntilClose discards messages until the close frame.
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

// eventually polls a condition that has no signal.
func (f *fixture) eventually(what string, cond func() bool) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(testenv.Wait)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			f.t.Fatalf("never: %s", what)
		}
	}
}
