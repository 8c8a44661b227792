// Package telemetry owns what the product says about itself: log lines, request
// ids, metrics and the version of the build. It is the only package that imports
// Prometheus; the others take the small interfaces and structs declared here.
//
// It decides how things are shown, never what happened: domains count, the edge
// logs.
package telemetry

import (
	"context"
	"crypto/rand"
	"log/slog"
	"regexp"
)

type requestIDKey struct{}

// wellFormed is what a request id from outside may look like: it ends up in log
// lines and response headers.
var wellFormed = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// NewRequestID returns a random id of 26 characters.
func NewRequestID() string { return rand.Text() }

// AcceptRequestID returns an id given by a proxy when it is well formed, else a
// new one.
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

// withRequestID is what context.WithValue makes, in one piece of memory instead of
// two: every request has one.
type withRequestID struct {
	context.Context
	id string
}

// Value returns the request id, or what the parent knows.
func (c *withRequestID) Value(key any) any {
	if _, ok := key.(requestIDKey); ok {
		return c.id
	}
	return c.Context.Value(key)
}

// RequestID returns the request id of a context, "" when it has none.
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
