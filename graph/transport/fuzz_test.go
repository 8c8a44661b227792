package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/coder/websocket"

	"seckill/graph/guard"
	"seckill/graph/transport/internal/testschema"
	"seckill/internal/testenv"
)

// FuzzDecodeRequest compares the decoder with encoding/json: both accept the same texts
// and read the same values.
func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{"query":"{hello}"}`,
		`{"query":"query($n:Int){count(n:$n)}","operationName":null,"variables":{"n":-12,"f":1.5e3,"big":12345678901234567890},"extensions":{}}`,
		`{"query":"\u00e9\ud83c\udfc3\ud800 \"\\\/\b\f\n\r\t","x":[true,false,null,{"a":[]}]}`,
		`{"documentId":"sha256:abc"}`, `{"extensions":{"persistedQuery":{"sha256Hash":"abc"}}}`,
		`[]`, `"x"`, `5`, `{`, ``, `{"query":5}`, `{"variables":[]}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":"` + "\x01" + `"}`, ` {"query" : "x" } x`,
	} {
		f.Add(seed)
	}
	for _, text := range hostile(defaultMaxBody) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got *graphql.RawParams
		var err error
		if n := allocated(func() { got, err = decodeRequest(text) }); n > allocationBound(text) {
			t.Errorf("%d bytes allocate %d: %.200q", len(text), n, text)
		}
		var want map[string]any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		stdErr := dec.Decode(&want)
		if stdErr == nil {
			if _, more := dec.Token(); !errors.Is(more, io.EOF) {
				stdErr = errors.New("more")
			}
		}
		if err != nil {
			if strings.Contains(err.Error(), text) && len(text) > 20 {
				t.Errorf("the refusal quotes the body: %v", err)
			}
			return // stricter than encoding/json: types, depth, UTF-8
		}
		if stdErr != nil {
			t.Fatalf("took what encoding/json refuses: %q: %v", text, stdErr)
		}
		if q, _ := want["query"].(string); q != got.Query {
			t.Errorf("query %q, want %q", got.Query, q)
		}
		if v, _ := want["variables"].(map[string]any); !reflect.DeepEqual(normal(got.Variables), normal(v)) && len(v)+len(got.Variables) > 0 {
			t.Errorf("variables %v, want %v", got.Variables, v)
		}
	})
}

// FuzzJSON compares the scanner with encoding/json on any value.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`0`, `-0`, `1e5`, `[1,[2,{"a":"b"}]]`, `"\ud83c\udfc3"`, `"\ud800"`, `nul`, `[1,]`, `{"a":1,}`, `{"a":1,"a":2}`, `{1:2}`, "\"\x7f\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		s := &scanner{text: text}
		got, err := s.value(maxJSONDepth)
		if err == nil {
			err = s.end()
		}
		valid := json.Valid([]byte(text))
		if err == nil && !valid {
			t.Fatalf("took %q", text)
		}
		if err != nil {
			if valid && nesting(text) < maxJSONDepth {
				t.Fatalf("refused %q", text)
			}
			return
		}
		var want any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(normal(got), normal(want)) {
			t.Errorf("%q: got %#v, want %#v", text, got, want)
		}
	})
}

// normal replaces numbers with their JSON text.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = normal(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normal(e)
		}
		return out
	case int64:
		text, _ := json.Marshal(v)
		return json.Number(text)
	case json.Number:
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return json.Number(strconv.FormatInt(int64(f), 10))
		}
	}
	return v
}

func nesting(text string) int { return strings.Count(text, "[") + strings.Count(text, "{") }

// FuzzMessage feeds frames to the socket's decoder.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"connection_init","payload":{"authorization":"Bearer x"}}`, `{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":{"a":1}}}`,
		`{"id":"1","type":"complete"}`, `{"type":"ping"}`, `{"type":"pong","payload":null}`, `{"type":1}`, `[]`, ``, `{"type":"subscribe","id":"","payload":[]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m message
		var err error
		if n := allocated(func() { m, err = decodeMessage(text) }); n > allocationBound(text) {
			t.Errorf("%d bytes allocate %d: %.200q", len(text), n, text)
		}
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("took %q", text)
		}
		if !validMessage(m) {
			return
		}
		if payload, ok := m.payload.(map[string]any); ok && m.kind == "subscribe" {
			p, err := requestOf(payload)
			if err == nil && p.Query == "" && len(p.Extensions) == 0 && payload["query"] != "" {
				t.Errorf("a request without a document: %q", text)
			}
		}
		if reason := printable(m.id); len(reason) > 36 {
			t.Errorf("close reason %q", reason)
		}
	})
}

// FuzzFrame compares the headers of frames with the lengths that a client decodes.
func FuzzFrame(f *testing.F) {
	for _, n := range []uint{0, 1, 125, 126, 127, 65535, 65536, 70000} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n uint) {
		n %= 200_000
		payload := bytes.Repeat([]byte{'x'}, int(n))
		got := frame(append(header[:], payload...))
		if got[0] != 0x81 || got[1]&0x80 != 0 {
			t.Fatalf("header % x", got[:2])
		}
		length, at := uint64(got[1]), 2
		switch length {
		case 126:
			length, at = uint64(got[2])<<8|uint64(got[3]), 4
		case 127:
			length, at = 0, 10
			for _, b := range got[2:10] {
				length = length<<8 | uint64(b)
			}
		}
		if length != uint64(n) || !bytes.Equal(got[at:], payload) {
			t.Errorf("%d bytes are reported as %d", n, length)
		}
	})
}

// FuzzSocket sends frames, one per line, over a real socket and checks the replies
// against the protocol: only its message types, only a pong before connection_ack, a
// proper close.
func FuzzSocket(f *testing.F) {
	const init, sub = `{"type":"connection_init"}`, `{"id":"1","type":"subscribe","payload":{"query":"subscription{ticks(n:2)}"}}`
	for _, seed := range []string{
		init, init + "\n" + sub, sub, init + "\n" + init, init + "\n" + sub + "\n" + sub, init + "\n" + sub + "\n" + `{"id":"1","type":"complete"}` + "\n" + sub,
		init + "\n{", init + "\n" + `{"type":"ping"}` + "\n" + `{"type":"pong"}`, `{"type":"connection_init","payload":{"authorization":"Bearer x"}}`,
		init + "\n" + `{"id":"2","type":"subscribe","payload":{"query":"{hello"}}`, init + "\n" + `{"id":"3","type":"subscribe","payload":{"query":"mutation{set(input:{key:\"k\",value:1}){ok}}"}}`,
	} {
		f.Add(seed)
	}
	schema := testschema.NewExecutableSchema(testschema.Config{Resolvers: &testschema.Resolver{}})
	g, err := guard.New(guard.Options{Schema: schema.Schema()})
	if err != nil {
		f.Fatal(err)
	}
	sockets := NewSockets(SocketOptions{InitTimeout: 200 * time.Millisecond, FrameRate: 1000})
	server := httptest.NewServer(NewHandler(Options{Schema: schema, Guard: g, Sockets: sockets}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, script string) {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Wait)
		defer cancel()
		conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http"), &websocket.DialOptions{Subprotocols: []string{subprotocol}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.CloseNow() }()
		for line := range strings.SplitSeq(script, "\n") {
			if conn.Write(ctx, websocket.MessageText, []byte(line)) != nil {
				break
			}
		}
		_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"the end"}`)) // closes with 4400 at the latest
		checkAnswers(t, ctx, conn)
	})
}

func checkAnswers(t *testing.T, ctx context.Context, conn *websocket.Conn) {
	acked := false
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if code := websocket.CloseStatus(err); code < 4400 || code > 4429 {
				t.Errorf("ended with %v", err)
			}
			return
		}
		m, err := decodeMessage(string(data))
		if err != nil {
			t.Fatalf("sent %q", data)
		}
		switch m.kind {
		case "connection_ack":
			if acked {
				t.Error("acknowledged twice")
			}
			acked = true
		case "pong":
		case "next", "error", "complete":
			if !acked || m.id == "" {
				t.Errorf("sent %q", data)
			}
		default:
			t.Errorf("sent %q", data)
		}
	}
}
