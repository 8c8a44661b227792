// Package telemetry owns log lines, request ids, metrics and the version of the build. It
// is the only package that imports Prometheus; the others use the small interfaces and
// structs declared here.
//
// It formats and exports; the domain packages count, and the server logs requests.
package telemetry

import (
	"context"
	"crypto/rand"
	"log/slog"
	"regexp"
)

type requestIDKey struct{}

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

// WithRequestID returns a context whose log lines carry the request id.
func WithRequestID(ctx context.Context, requestID string) context.Context {
	return &withRequestID{ctx, requestID}
}

// withRequestID is like context.WithValue, with one allocation instead of two: each
// request has one.
type withRequestID struct {
	context.Context
	id string
}

// Value returns the request id, or the parent's value.
func (c *withRequestID) Value(key any) any {
	if _, ok := key.(requestIDKey); ok {
		return c.id
	}
	return c.Context.Value(key)
}

// RequestID returns the request id of a context, "" if there is none.
func RequestID(ctx context.Context) string {
	requestID, _ := ctx.Value(requestIDKey{}).(string)
	return requestID
}

// requestAttr adds the request id of the context to each record.
type requestAttr struct{ slog.Handler }

func (h requestAttr) Handle(ctx context.Context, record slog.Record) error {
	if requestID := RequestID(ctx); requestID != "" {
		record.AddAttrs(slog.String("request_id", requestID))
	}
	return h.Handler.Handle(ctx, record) //nolint:wrapcheck // a decorator adds nothing to the error
}

func (h requestAttr) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestAttr{h.Handler.WithAttrs(attrs)}
}

func (h requestAttr) WithGroup(name string) slog.Handler {
	return requestAttr{h.Handler.WithGroup(name)}
}
