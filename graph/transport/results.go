package transport

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/push"
	"seckill/internal/platform/tracing"
)

// results are the responses of one operation of a socket or an event stream.
type results struct {
	shared    *sharedPayloads
	responses graphql.ResponseHandler
	ctx       context.Context
	source    push.Source // nil = only gqlgen knows the events
	audience  audience
	shares    bool
	tracer    *tracing.Tracer
	push      tracing.Span // of the last event, until it is written
}

// written ends the span of the push that was written or failed.
func (r *results) written(ok bool) bool {
	if !ok {
		r.push.Fail("the connection ended")
	}
	r.push.End(nil)
	r.push = tracing.Span{}
	return ok
}

// next waits for the next result: the bytes of a shared payload, or a response. A nil
// response ends the subscription.
func (r *results) next() (payload []byte, resp *graphql.Response) {
	if r.source == nil {
		return nil, r.responses(r.ctx)
	}
	event, ok := r.source.Next()
	_, r.push = r.tracer.Continue(r.ctx, "push", tracing.ParseRef(event.Trace))
	switch {
	case !ok:
		r.source.Close()
		return nil, r.responses(r.ctx)
	case !r.shares || event.Snapshot || event.Key == "":
		r.source.Emit()
		return nil, r.responses(r.ctx)
	}
	shared, leads := r.shared.join(payloadKey{r.audience, event.Key, event.Revision}, time.Now())
	if !leads {
		if payload := shared.wait(r.ctx); payload != nil {
			return payload, nil
		}
		shared = nil
	}
	if shared == nil {
		r.source.Emit()
		return nil, r.responses(r.ctx)
	}
	defer func() { shared.finish(payload) }()
	r.source.Emit()
	resp = r.responses(r.ctx)
	if resp != nil && resp.Data != nil && len(resp.Errors) == 0 {
		payload = appendReply(nil, reply{Response: resp})
	}
	return payload, resp
}

func (h *Handler) dispatch(ctx context.Context, op *graphql.OperationContext) *results {
	ctx, slot := push.WithSlot(ctx)
	r := &results{shared: &h.shared, tracer: h.opts.Tracer}
	r.responses, r.ctx = h.exec.DispatchOperation(ctx, op)
	if r.source = slot.Source(); r.source != nil {
		r.audience, r.shares = h.opts.Public.audienceOf(r.ctx, op)
	}
	return r
}

// close frees the resources of the subscription.
func (r *results) close() {
	if r.source != nil {
		r.source.Close()
	}
}
