package tracing_test

import (
	"context"
	"maps"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/platform/id"
	"seckill/internal/platform/tracing"
)

// What the path of an order calls without tracing: it must cost nothing.
func TestTracingThatIsOffAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	var off *tracing.Tracer
	var none tracing.Orders
	failed := false
	allocations := testing.AllocsPerRun(100, func() {
		for _, begin := range []func(context.Context) (context.Context, tracing.Span){
			func(ctx context.Context) (context.Context, tracing.Span) { return off.Request(ctx, "", false) },
			func(ctx context.Context) (context.Context, tracing.Span) {
				return off.Batch(ctx, "reserve", none.Refs())
			},
			func(ctx context.Context) (context.Context, tracing.Span) {
				return off.Continue(ctx, "push", tracing.ParseRef(""))
			},
			func(ctx context.Context) (context.Context, tracing.Span) { return tracing.Start(ctx, "statement") },
		} {
			inner, span := begin(ctx)
			span.Text("key", "value")
			span.Count("key", 1)
			span.End(nil)
			failed = failed || inner != ctx || span.On() || span.TraceID() != ""
		}
		failed = failed || tracing.RefOf(ctx).IsValid() || none.String() != "" || tracing.ParseOrders("") != nil ||
			tracing.OrdersFrom(ctx) != nil || tracing.WithOrders(ctx, none) != ctx || tracing.FormatRef(tracing.Ref{}) != ""
	})
	if allocations != 0 || failed {
		t.Errorf("%v allocations, failed %v", allocations, failed)
	}
}

func TestTracesOfOrdersTravelInMessages(t *testing.T) {
	t.Parallel()
	ref := tracing.ParseRef("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if !ref.IsSampled() {
		t.Fatalf("parsed %+v", ref)
	}
	orders := tracing.Orders{id.Task(uuid.New()): ref, id.Task(uuid.New()): ref}
	if got := tracing.ParseOrders(orders.String()); !maps.EqualFunc(got, orders, func(a, b tracing.Ref) bool { return a.Equal(b) }) {
		t.Errorf("%v became %v", orders, got)
	}
	one := uuid.New().String()
	for _, text := range []string{"x", one, one + "=", one + "=00-1-2-01", "=" + tracing.FormatRef(ref), one + "=00-0123456789abcdef0123456789abcdef-0123456789abcdef-00"} {
		if got := tracing.ParseOrders(text); len(got) != 0 {
			t.Errorf("%q became %v", text, got)
		}
	}
}
