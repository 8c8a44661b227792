package telemetry

import (
	"context"
	"crypto/rand"
	"log/slog"
	"regexp"
)

type (
	requestIDKey struct{}
	traceIDKey   struct{}
)

// wellFormed is the accepted format of an external request id: it is written to log lines
// and response headers.
var wellFormed = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// NewRequestID returns a random id of 26 characters.
func NewRequestID() string { return rand.Text() }

// AcceptRequestID returns the id given by a proxy if it is well formed, else a new one.
func AcceptRequestID(given string) string {
	if wellFormed.MatchString(given) {
		return given
	}
	return NewRequestID()
}

// WithRequest returns a context whose log lines carry the request id and the trace id, ""
// = none, and which holds an Operation.
func WithRequest(ctx context.Context, requestID, traceID string) context.Context {
	return &withRequest{Context: ctx, id: requestID, trace: traceID}
}

// withRequest is a single allocation for what each request has.
type withRequest struct {
	context.Context
	id, trace string
	op        Operation
}

// Value returns the request id, the trace id, the operation, or the parent's value.
func (c *withRequest) Value(key any) any {
	switch key.(type) {
	case requestIDKey:
		return c.id
	case traceIDKey:
		return c.trace
	case operationKey:
		return &c.op
	}
	return c.Context.Value(key)
}

// requestID returns the request id of a context, "" if there is none.
func requestID(ctx context.Context) string {
	requestID, _ := ctx.Value(requestIDKey{}).(string)
	return requestID
}

// traceparent is the header of W3C Trace Context, version 00
// (https://www.w3.org/TR/trace-context/#traceparent-header).
var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// TraceID returns the trace id of a traceparent header, "" if there is none.
func TraceID(header string) string {
	if header == "" {
		return ""
	}
	found := traceparent.FindStringSubmatch(header)
	if found == nil || found[1] == "00000000000000000000000000000000" {
		return ""
	}
	return found[1]
}

// requestAttr adds the ids of the request and its trace to each record.
type requestAttr struct{ slog.Handler }

func (h requestAttr) Handle(ctx context.Context, record slog.Record) error {
	if requestID := requestID(ctx); requestID != "" {
		record.AddAttrs(slog.String("request_id", requestID))
	}
	if trace, _ := ctx.Value(traceIDKey{}).(string); trace != "" {
		record.AddAttrs(slog.String("trace_id", trace))
	}
	return h.Handler.Handle(ctx, record) // a decorator adds nothing to the error
}

func (h requestAttr) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestAttr{h.Handler.WithAttrs(attrs)}
}

func (h requestAttr) WithGroup(name string) slog.Handler {
	return requestAttr{h.Handler.WithGroup(name)}
}
