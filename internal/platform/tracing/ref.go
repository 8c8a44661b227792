package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"seckill/internal/platform/id"
)

// Field is the field of a message that carries the traces of its orders (see Orders).
const Field = "trace"

// Ref identifies a span, so that work elsewhere continues its trace. The zero value is
// none.
type Ref = trace.SpanContext

// RefOf returns the span of ctx if it is kept.
func RefOf(ctx context.Context) Ref {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return span.SpanContext()
	}
	return Ref{}
}

// TraceIDOf returns the id of a ref's trace, "" for none.
func TraceIDOf(ref Ref) string {
	if !ref.IsValid() {
		return ""
	}
	return ref.TraceID().String()
}

// FormatRef returns a ref as a traceparent header, "" for none.
func FormatRef(ref Ref) string {
	if !ref.IsValid() {
		return ""
	}
	return "00-" + ref.TraceID().String() + "-" + ref.SpanID().String() + "-" + ref.TraceFlags().String()
}

// ParseRef parses a traceparent header (https://www.w3.org/TR/trace-context); none if it
// is malformed.
func ParseRef(text string) Ref {
	if text == "" {
		return Ref{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": text}))
}

// Orders are the traced orders of a message or a batch, by task. nil = none are traced.
type Orders map[id.Task]Ref

// String returns the form in messages: task=traceparent, separated by commas.
func (o Orders) String() string {
	var b strings.Builder
	for task, ref := range o {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(task.String())
		b.WriteByte('=')
		b.WriteString(FormatRef(ref))
	}
	return b.String()
}

// ParseOrders parses the form in messages. What is malformed is left out: a trace is never
// a reason to refuse an order.
func ParseOrders(text string) Orders {
	if text == "" {
		return nil
	}
	orders := Orders{}
	for one := range strings.SplitSeq(text, ",") {
		name, parent, _ := strings.Cut(one, "=")
		task, err := id.ParseUUID[id.Task](name)
		if ref := ParseRef(parent); err == nil && ref.IsSampled() {
			orders[task] = ref
		}
	}
	return orders
}

// Refs returns the spans, in no order.
func (o Orders) Refs() []Ref {
	if len(o) == 0 {
		return nil
	}
	refs := make([]Ref, 0, len(o))
	for _, ref := range o {
		refs = append(refs, ref)
	}
	return refs
}

type ordersKey struct{}

// WithOrders returns a context for work on traced orders; ctx itself without any.
func WithOrders(ctx context.Context, orders Orders) context.Context {
	if len(orders) == 0 {
		return ctx
	}
	return context.WithValue(ctx, ordersKey{}, orders)
}

// OrdersFrom returns the traced orders that a context works on.
func OrdersFrom(ctx context.Context) Orders {
	orders, _ := ctx.Value(ordersKey{}).(Orders)
	return orders
}
