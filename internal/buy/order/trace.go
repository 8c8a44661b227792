package order

import (
	"context"
	"maps"

	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/tracing"
)

// Trace begins a span for each order of a message that is traced, and returns the context
// for Write, which continues their traces. The caller calls end with the outcome.
func (w *Writer) Trace(msg *stream.Message, requests []Request) (ctx context.Context, end func(error)) {
	field := msg.Metadata.Get(tracing.Field)
	if field == "" || w.tracer == nil {
		return msg.Context(), func(error) {}
	}
	traced := tracing.ParseOrders(field)
	var spans []tracing.Span
	for _, r := range requests {
		ref, ok := traced[r.Task]
		if !ok {
			continue
		}
		ctx, span := w.tracer.Continue(msg.Context(), "handle order", ref)
		span.Text("seckill.order_task", r.Task.String())
		span.Count("seckill.deliveries", stream.Deliveries(msg))
		traced[r.Task] = tracing.RefOf(ctx)
		spans = append(spans, span)
	}
	return tracing.WithOrders(msg.Context(), traced), func(err error) {
		for _, span := range spans {
			span.End(err)
		}
	}
}

// traceBatch begins the span of a batch, with a link to each of its traced orders.
func (w *Writer) traceBatch(ctx context.Context, submissions []submission, size int) (context.Context, tracing.Span) {
	var traced tracing.Orders
	for _, c := range submissions {
		if traced == nil && len(c.traced) > 0 {
			traced = tracing.Orders{}
		}
		maps.Copy(traced, c.traced)
	}
	ctx, span := w.tracer.Batch(ctx, "write orders", traced.Refs())
	span.Count("seckill.orders", size)
	return tracing.WithOrders(ctx, traced), span
}

// anyOf returns one of the errors, nil without any.
func anyOf(faults map[id.Task]error) error {
	for _, err := range faults {
		return err
	}
	return nil
}
