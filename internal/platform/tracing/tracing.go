// Package tracing makes the spans of OpenTelemetry and sends them over OTLP/HTTP.
//
// It owns sampling, export, and the form in which the trace of an order travels in
// messages. Without an address there is no Tracer: methods of a nil Tracer and of a zero
// Span do nothing and allocate nothing. It does not decide what is worth a span.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"seckill/internal/platform/collect"
)

// scope names the origin of the spans.
const scope = "seckill"

// Options configure New.
type Options struct {
	URL        string  // where spans are sent, http://collector:4318/v1/traces; "" = off
	Share      float64 // of the requests that are traced, from 0 to 1
	Version    string  // of the binary
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// Tracer begins the spans of a process. nil = tracing is off.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New returns a tracer, nil without an address. Close sends what is left.
func New(o Options) (*Tracer, error) {
	if o.URL == "" {
		return nil, nil // nil is a tracer that is off
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// the error of url.Parse contains the password
		return nil, errors.New("the address of the traces must be http://host:port/path")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces" // the path of the protocol
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(otlptrace.NewUnstarted(newClient(u.String(), o))),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Share),
			sdk.WithRemoteParentNotSampled(sdk.TraceIDRatioBased(o.Share)))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", scope),
			attribute.String("service.version", o.Version))),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope)}, nil
}

// Close sends the spans that were not sent yet, bounded by ctx.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// Request begins the span of an HTTP request. It continues the trace of the traceparent
// header; only a trusted client decides that a trace is kept.
func (t *Tracer) Request(ctx context.Context, traceparent string, trusted bool) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if caller := ParseRef(traceparent); caller.IsValid() {
		if !trusted {
			caller = caller.WithTraceFlags(0)
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, caller)
	}
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{span}
}

// Operation begins a span of its own trace: one operation of a socket.
func (t *Tracer) Operation(ctx context.Context) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, "operation", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithLinks(trace.LinkFromContext(ctx)))
	return ctx, Span{span}
}

// Continue begins a span in the trace of another goroutine or process; none for a zero
// ref.
func (t *Tracer) Continue(ctx context.Context, name string, ref Ref) (context.Context, Span) {
	if t == nil || !ref.IsSampled() {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, ref), name,
		trace.WithSpanKind(trace.SpanKindConsumer))
	return ctx, Span{span}
}

// Batch begins the span of work for several traces at once. It is in the trace of the
// first, and has a link to each; without refs there is none.
func (t *Tracer) Batch(ctx context.Context, name string, refs []Ref) (context.Context, Span) {
	if t == nil || len(refs) == 0 {
		return ctx, Span{}
	}
	links := collect.Map(refs, func(ref Ref) trace.Link { return trace.Link{SpanContext: ref} })
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, refs[0]), name,
		trace.WithLinks(links...), trace.WithSpanKind(trace.SpanKindConsumer))
	return ctx, Span{span}
}

// Start begins a span within that of ctx; none when ctx has none.
func Start(ctx context.Context, name string) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, Span{span}
}

// Span is a span; the zero value is none.
type Span struct{ span trace.Span }

// On reports whether the span is kept: attributes are worth their cost.
func (s Span) On() bool { return s.span != nil && s.span.IsRecording() }

// Name renames the span, when what it serves is known only later.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Text sets an attribute.
func (s Span) Text(key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Count sets an attribute.
func (s Span) Count(key string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Fail marks the span as failed. The text is seen in the traces: it contains no data of
// users.
func (s Span) Fail(text string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, text)
	}
}

// End ends the span; an error marks it as failed, without its text, which may contain
// data of users.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// TraceID returns the id of the trace, "" for a span that is not kept.
func (s Span) TraceID() string {
	if !s.On() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}
