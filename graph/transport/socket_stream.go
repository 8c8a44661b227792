package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
)

// socketStream is one operation on a socket.
type socketStream struct {
	s      *socket
	id     string
	ctx    context.Context
	cancel context.CancelFunc
	before []byte // what precedes the payload of a result
	over   bool   // guarded by s.mu: nothing more may be sent under this id
	span   tracing.Span
}

func newSocketStream(s *socket, id string) *socketStream {
	st := &socketStream{s: s, id: id, before: append(appendJSON([]byte(`{"type":"next","id":`), id), `,"payload":`...)}
	ctx, span := s.h.opts.Tracer.Operation(s.caller.Context)
	st.span = span
	st.ctx, st.cancel = context.WithCancel(telemetry.WithOperation(ctx))
	return st
}

// run executes the operation and sends its results.
func (st *socketStream) run(params *graphql.RawParams) {
	defer st.cancel()
	defer st.count(time.Now())
	defer func() {
		if v := recover(); v != nil {
			st.refuse(st.s.h.opts.Recover(st.ctx, v))
		}
	}()
	op, refusal := st.s.h.prepare(st.ctx, params)
	if refusal != nil {
		st.finish("error", refusal.Errors)
		return
	}
	if op.Operation.Operation == ast.Mutation {
		st.refuse(fault.New(fault.BadInput, "Send mutations by POST."))
		return
	}
	limited, done := st.s.h.limited(st.ctx, op)
	defer done()
	results := st.s.h.dispatch(limited, op)
	defer results.close()
	for {
		payload, resp := results.next()
		switch {
		case st.ctx.Err() != nil:
			return
		case payload != nil:
			if !results.written(st.next(payload)) {
				return
			}
			continue
		case limited.Err() != nil:
			st.refuse(errTimeout())
			return
		case resp == nil:
			st.finish("complete", nil)
			return
		case resp.Data == nil && len(resp.Errors) > 0:
			st.finish("error", resp.Errors) // refused before it ran
			return
		}
		note(st.ctx, resp)
		if !results.written(st.reply(st.s.h.costed(op, resp))) {
			return
		}
	}
}

// reply sends one response.
func (st *socketStream) reply(r reply) bool {
	buf := buffers.Get().(*[]byte)
	defer keepBuffer(buf)
	*buf = appendReply((*buf)[:0], r)
	return st.next(*buf)
}

// next sends one result.
func (st *socketStream) next(payload []byte) bool {
	buf := buffers.Get().(*[]byte)
	defer keepBuffer(buf)
	*buf = append((*buf)[:0], header[:]...)
	*buf = append(*buf, st.before...)
	*buf = append(*buf, payload...)
	*buf = append(*buf, '}')
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return !st.over && st.s.write(*buf)
}

// count counts the operation, and logs it: the request of the socket is logged when the
// socket closes.
func (st *socketStream) count(began time.Time) {
	op, took := telemetry.OperationFrom(st.ctx), time.Since(began)
	op.User, op.Trace = st.s.caller.User, st.span.TraceID()
	endSpan(st.span, op)
	st.s.h.served.Observe(op, took)
	attrs := append(op.Attrs(), slog.Float64("ms", float64(took.Microseconds())/1000))
	st.s.h.opts.Log.LogAttrs(st.ctx, slog.LevelInfo, "operation", attrs...)
}

// finish sends the last message of the stream and frees its id.
func (st *socketStream) finish(kind string, errs gqlerror.List) {
	if len(errs) > 0 {
		telemetry.OperationFrom(st.ctx).Fail(codeOf(errs[0]))
	}
	buf := append(header[:], `{"type":"`+kind+`","id":`...)
	buf = appendJSON(buf, st.id)
	if errs != nil {
		buf = append(buf, `,"payload":`...)
		buf = appendJSON(buf, errs)
	}
	buf = append(buf, '}')
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.over {
		return
	}
	st.s.forget(st)
	st.s.write(buf)
}

// refuse ends the stream with a fault.
func (st *socketStream) refuse(err error) {
	st.cancel()
	st.finish("error", st.s.h.faultResponse(withHeaders(st.ctx, st.s.headers), err).Errors)
}
