package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/id"
	"seckill/internal/platform/tracing"
)

// Operation describes one GraphQL operation for its log line and its metrics. It is
// filled while the operation is served, by one goroutine at a time. The methods accept
// nil.
type Operation struct {
	Field string  // root field; "several" with different ones; "" when the document could not be used
	Name  string  // the client's name for it
	Code  string  // of the first error or user error; "" when there was none
	User  id.User // Nil = not signed in
	Trace string  // id of its trace; "" = it is not kept
}

type operationKey struct{}

// withOperation is a context with an operation.
type withOperation struct {
	context.Context
	op Operation
}

// Value returns the operation, or the parent's value.
func (c *withOperation) Value(key any) any {
	if _, ok := key.(operationKey); ok {
		return &c.op
	}
	return c.Context.Value(key)
}

// WithOperation returns a context with an empty operation: one of several on a connection.
func WithOperation(ctx context.Context) context.Context { return &withOperation{Context: ctx} }

// OperationFrom returns the operation that a context serves, or nil.
func OperationFrom(ctx context.Context) *Operation {
	op, _ := ctx.Value(operationKey{}).(*Operation)
	return op
}

// Fail records the code of an error; the first one stays.
func (o *Operation) Fail(code string) {
	if o != nil && o.Code == "" {
		o.Code = code
	}
}

// Attrs returns the attributes of a log line: none outside of GraphQL. The user is a hash
// of the id, which is the same in all lines.
func (o *Operation) Attrs() []slog.Attr {
	if o == nil || o.Field == "" && o.Code == "" {
		return nil
	}
	attrs := []slog.Attr{slog.String("operation", o.Field), slog.String("name", o.Name), slog.String("code", o.code())}
	if !o.User.IsZero() {
		sum := sha256.Sum256(o.User[:])
		attrs = append(attrs, slog.String("user", hex.EncodeToString(sum[:8])))
	}
	return attrs
}

func (o *Operation) code() string {
	if o.Code == "" {
		return "OK"
	}
	return o.Code
}

// DescribeSpan names a span for the operation that it served.
func DescribeSpan(span tracing.Span, o *Operation) {
	if o == nil || o.Field == "" && o.Code == "" {
		return
	}
	span.Name("graphql " + o.Field)
	span.Text("graphql.operation.name", o.Name)
	span.Text("seckill.code", o.code())
	if o.Code != "" {
		span.Fail(o.Code)
	}
}

// OperationMetrics measures GraphQL operations.
type OperationMetrics struct {
	seconds *prometheus.HistogramVec // by field and code
}

// NewOperationMetrics returns metrics that are exported by reg; nil = by none.
func NewOperationMetrics(reg prometheus.Registerer) *OperationMetrics {
	return &OperationMetrics{For(reg, "graphql").Histograms("operation_seconds",
		"Duration of GraphQL operations; of subscriptions, how long they were open. Label field: the root field, several, or none when the document "+
			"could not be used. Label code: of the first error, or OK.",
		Seconds(), "field", "code")}
}

// Observe counts an operation that was served.
func (m *OperationMetrics) Observe(o *Operation, took time.Duration) {
	if o == nil {
		return
	}
	field := o.Field
	if field == "" {
		field = "none"
	}
	Observe(m.seconds.WithLabelValues(field, o.code()), took.Seconds(), o.Trace)
}
