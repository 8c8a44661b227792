package baseline_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"seckill/test/bench/baseline"
)

const body = `{"query":"mutation P($i:PlaceOrderInput!){placeOrder(input:$i){orderTask{id status} replayed userErrors{code}}}",` +
	`"variables":{"i":{"itemId":"itm_01jd3v6g2pe0c8m2v1k4h5n6p7","pathToken":"0123456789abcdef0123456789abcdef","quantity":1,"idempotencyKey":"%s"}}}`

// discard is a response writer without a network.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkNoop compares the product's edge with the floor, both without net/http.
func BenchmarkNoop(b *testing.B) {
	edge, err := baseline.Edge(baseline.Noop, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("edge", func(b *testing.B) { ask(b, edge) })
	b.Run("floor", func(b *testing.B) { ask(b, baseline.Floor()) })
}

func ask(b *testing.B, h http.Handler) {
	b.Helper()
	b.ReportAllocs()
	text := fmt.Appendf(nil, body, "0123456789abcdef0123456789abcdef")
	r := httptest.NewRequest(http.MethodPost, "/graphql", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer x")
	for b.Loop() {
		r.Body = io.NopCloser(bytes.NewReader(text))
		r.ContentLength = int64(len(text))
		h.ServeHTTP(&discard{h: http.Header{}}, r)
	}
}
