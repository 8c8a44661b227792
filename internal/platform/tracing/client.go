package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	sendTimeout = 10 * time.Second
	warnEvery   = time.Minute // between two lines about spans that were lost
)

// client sends spans in OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
// The exporter otlptracehttp does the same, but links gRPC into the binary. What cannot be
// sent is dropped and counted: traces are not worth a queue.
type client struct {
	url        string
	http       *http.Client
	log        *slog.Logger
	sent, lost prometheus.Counter

	mu     sync.Mutex
	warned time.Time // guarded by mu
}

func newClient(url string, o Options) *client {
	spans := promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Namespace: "seckill", Subsystem: "tracing", Name: "spans_total",
		Help: "Spans of traces. Label outcome: sent, or lost because the receiver did not take them.",
	}, []string{"outcome"})
	return &client{
		url: url, http: &http.Client{Timeout: sendTimeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
			MaxIdleConns: 1}},
		log: o.Log, sent: spans.WithLabelValues("sent"), lost: spans.WithLabelValues("lost"),
	}
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It reports a failure to the log instead of the
// SDK, whose error handler is global.
func (c *client) UploadTraces(ctx context.Context, resources []*tracepb.ResourceSpans) error {
	n := 0
	for _, r := range resources {
		for _, s := range r.GetScopeSpans() {
			n += len(s.GetSpans())
		}
	}
	err := c.post(ctx, resources)
	if err == nil {
		c.sent.Add(float64(n))
		return nil
	}
	c.lost.Add(float64(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.warned) > warnEvery {
		c.warned = now
		c.log.WarnContext(ctx, "traces are not received", slog.Int("spans", n), slog.Any("error", err))
	}
	return nil
}

func (c *client) post(ctx context.Context, resources []*tracepb.ResourceSpans) error {
	// TracesData has the encoding of ExportTraceServiceRequest, without the code of its
	// gRPC service.
	raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: resources})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	var body bytes.Buffer
	packed := gzip.NewWriter(&body)
	_, _ = packed.Write(raw) // a buffer takes everything
	_ = packed.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, &body)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "gzip")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("send spans: %s", response.Status)
	}
	return nil
}
