package system_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// line is an open WebSocket that runs queries and mutations one after the other.
type line struct {
	t       testing.TB
	ctx     context.Context // the bound of one test
	conn    *websocket.Conn
	refused bool // the server closed it because of its token
	asked   int
}

// lineTimeout bounds the total time of one line.
const lineTimeout = 10 * time.Minute

// newLine opens a line with a token; "" = anonymous.
func (s *site) newLine(token string) *line {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lineTimeout)
	s.t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, strings.Replace(s.url, "http", "ws", 1)+"/graphql", //nolint:bodyclose // a socket has none
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	l := &line{t: s.t, ctx: ctx, conn: conn}
	init := map[string]string{}
	if token != "" {
		init["authorization"] = "Bearer " + token
	}
	payload, _ := json.Marshal(init) // strings
	l.write(frame{Type: "connection_init", Payload: payload})
	if f := l.read(); !l.refused && f.Type != "connection_ack" {
		s.t.Fatalf("first frame %+v", f)
	}
	return l
}

func (l *line) write(f frame) {
	l.t.Helper()
	if err := wsjson.Write(l.ctx, l.conn, f); err != nil && !l.refused {
		l.t.Fatal(err)
	}
}

// read returns the next frame; none when the server refused the token.
func (l *line) read() (f frame) {
	l.t.Helper()
	for {
		f = frame{}
		err := wsjson.Read(l.ctx, l.conn, &f)
		switch code := websocket.CloseStatus(err); {
		case code == 4401 || code == 4403:
			l.refused = true
			return frame{}
		case err != nil:
			l.t.Fatal(err)
		case f.Type == "ping":
			l.write(frame{Type: "pong"})
		case f.Type != "pong":
			return f
		}
	}
}

// ask sends a query or a mutation and returns its answer.
func (l *line) ask(document string) (out answer) {
	l.t.Helper()
	if l.refused {
		return unauthenticated()
	}
	l.asked++
	query, _ := json.Marshal(map[string]string{"query": document}) // strings
	l.write(frame{ID: strconv.Itoa(l.asked), Type: "subscribe", Payload: query})
	for f := l.read(); !l.refused; f = l.read() {
		if f.ID != strconv.Itoa(l.asked) {
			continue
		}
		switch f.Type {
		case "next":
			if err := json.Unmarshal(f.Payload, &out); err != nil {
				l.t.Fatal(err)
			}
		case "error":
			_ = json.Unmarshal([]byte(`{"errors":`+string(f.Payload)+`}`), &out)
			return out
		case "complete":
			return out
		}
	}
	return unauthenticated()
}
