package system_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"seckill/internal/ops/apiclient"
)

// line is an open WebSocket that runs queries and mutations one after the other.
type line struct {
	t       testing.TB
	ctx     context.Context // the bound of one test
	conn    *apiclient.Socket
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
	conn, err := s.client(token).Dial(ctx)
	l := &line{t: s.t, ctx: ctx, conn: conn, refused: refusesToken(err)}
	if l.refused {
		return l
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return l
}

// refusesToken reports whether a socket ended because of its token.
func refusesToken(err error) bool {
	code := websocket.CloseStatus(err)
	return code == 4401 || code == 4403
}

func (l *line) write(f frame) {
	l.t.Helper()
	if err := wsjson.Write(l.ctx, l.conn.Conn, f); err != nil && !l.refused {
		l.t.Fatal(err)
	}
}

// read returns the next frame; none when the server refused the token.
func (l *line) read() (f frame) {
	l.t.Helper()
	f, err := l.conn.Next(l.ctx)
	if l.refused = refusesToken(err); l.refused {
		return frame{}
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return f
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
