package transport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"seckill/graph/guard"
	"seckill/graph/transport"
	"seckill/graph/transport/internal/testschema"
)

// discard is a response writer without a network.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

const mutation = `{"query":"mutation Set($input: SetInput!) { set(input: $input) { ok } }","operationName":"Set","variables":{"input":{"key":"itm_01jd3v6g2pe0c8m2v1k4h5n6p7","value":1}}}`

// BenchmarkPost compares a mutation without side effects with a floor on net/http that
// decodes and encodes JSON.
func BenchmarkPost(b *testing.B) {
	schema := testschema.NewExecutableSchema(testschema.Config{Resolvers: &testschema.Resolver{}})
	g, err := guard.New(guard.Options{Schema: schema.Schema()})
	if err != nil {
		b.Fatal(err)
	}
	h := transport.NewHandler(transport.Options{Schema: schema, Guard: g, Sockets: transport.NewSockets(transport.SocketOptions{}), Authenticate: authenticate})
	b.Run("transport", func(b *testing.B) { run(b, h) })
	b.Run("floor", func(b *testing.B) {
		run(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var in struct {
				Query         string
				OperationName string
				Variables     map[string]any
			}
			body, _ := io.ReadAll(r.Body)
			if err := json.Unmarshal(body, &in); err != nil {
				b.Fatal(err)
			}
			out, _ := json.Marshal(map[string]any{"data": map[string]any{"set": map[string]any{"ok": true}}})
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(out)
		}))
	})
}

func run(b *testing.B, h http.Handler) {
	b.ReportAllocs()
	r := httptest.NewRequest(http.MethodPost, "/graphql", nil)
	r.Header.Set("Content-Type", "application/json")
	body := bytes.NewReader([]byte(mutation))
	r.Body = io.NopCloser(body)
	r.ContentLength = int64(len(mutation))
	w := &discard{h: http.Header{}}
	for b.Loop() {
		body.Reset([]byte(mutation))
		h.ServeHTTP(w, r)
	}
}

// BenchmarkPush compares events that a client receives with bare writes of the same bytes
// by the websocket library.
func BenchmarkPush(b *testing.B) {
	b.Run("transport", func(b *testing.B) {
		f := setup(b, setupOptions{})
		c := f.open("")
		c.subscribe("0123456789abcdef0123456789abcdef0123", fmt.Sprintf(`subscription{flood(bytes:%d)}`, pushBytes))
		drainFrames(b, c)
	})
	b.Run("floor", func(b *testing.B) {
		frame := []byte(`{"type":"next","id":"0123456789abcdef0123456789abcdef0123","payload":{"data":{"flood":"` + strings.Repeat("x", pushBytes) + `"}}}`)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			for conn.Write(r.Context(), websocket.MessageText, frame) == nil {
			}
		}))
		defer server.Close()
		conn, _, err := websocket.Dial(b.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = conn.CloseNow() }()
		drainFrames(b, &wsClient{t: b, conn: conn})
	})
}

const pushBytes = 300

func drainFrames(b *testing.B, c *wsClient) {
	b.Helper()
	for b.Loop() {
		_, r, err := c.conn.Reader(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
}
