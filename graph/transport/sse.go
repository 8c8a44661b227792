package transport

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
)

// writeWait is the timeout of one write; then the client is disconnected.
const writeWait = 5 * time.Second

// serveEvents answers one operation as a stream of server-sent events, in graphql-sse's
// mode of distinct connections: "next" for each result, "complete" at the end. A stream
// that the server ends (expiry, sign-out, drain) closes without "complete", so that the
// client reconnects.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request,
	read func(*http.Request) (*graphql.RawParams, error)) {
	params, err := read(r)
	if err != nil {
		h.unreadable(w, r, err)
		return
	}
	ctx := r.Context()
	caller, err := h.authenticate(ctx, r.Header.Get("Authorization"))
	if err != nil {
		h.writeFault(withHeaders(ctx, r.Header), w, graphqlResponse, err)
		return
	}
	params.Headers = r.Header
	op, refusal := h.prepare(caller.Context, params)
	if refusal == nil {
		if bad := h.notByGet(w, r.Method, op); bad != nil {
			h.refuse(w, r, bad)
			return
		}
	}
	streamCtx, cancel := context.WithCancelCause(caller.Context)
	defer cancel(nil)
	left, err := h.opts.Sockets.joinStream(caller, cancel)
	if err != nil {
		h.writeFault(withHeaders(ctx, r.Header), w, graphqlResponse, err)
		return
	}
	defer left()
	e := newEvents(w, h.opts.KeepAlive, func() { cancel(nil) })
	defer e.close()
	defer func() {
		if v := recover(); v != nil {
			h.collapse(ctx, e, v)
		}
	}()
	if refusal != nil {
		note(ctx, refusal)
		e.next(reply{Response: refusal})
		e.complete()
		return
	}
	// A query or mutation is bounded by its timeout and answered even if it signs out its
	// own caller.
	running := caller.Context
	if op.Operation.Operation == ast.Subscription {
		e.begin() // the others may set headers while they run: a cookie
		running = streamCtx
	}
	h.pump(running, e, op)
}

// collapse ends a stream whose operation panicked, with an event.
func (h *Handler) collapse(ctx context.Context, e *events, v any) {
	if fault.IsAbort(v) {
		panic(v)
	}
	resp := h.faultResponse(ctx, h.opts.Recover(ctx, v))
	note(ctx, resp)
	e.next(reply{Response: resp})
	e.complete()
}

// pump runs the operation and writes its results.
func (h *Handler) pump(ctx context.Context, e *events, op *graphql.OperationContext) {
	limited, done := h.limited(ctx, op)
	defer done()
	results := h.dispatch(limited, op)
	defer results.close()
	for {
		payload, resp := results.next()
		switch {
		case ctx.Err() != nil:
			e.begin()
			return
		case payload != nil:
			if !results.written(e.event(payload)) {
				return
			}
			continue
		case limited.Err() != nil:
			resp := h.faultResponse(withHeaders(ctx, op.Headers), errTimeout())
			note(ctx, resp)
			e.next(reply{Response: resp})
			e.complete()
			return
		case resp == nil:
			e.complete()
			return
		}
		note(ctx, resp)
		if !results.written(e.next(h.costed(op, resp))) {
			return
		}
	}
}

// costed adds the cost to the single response of a query or mutation; events of a
// subscription have none.
func (h *Handler) costed(op *graphql.OperationContext, resp *graphql.Response) reply {
	if op.Operation.Operation == ast.Subscription {
		return reply{Response: resp}
	}
	cost := guard.CostOf(op)
	return reply{resp, &cost}
}

// events writes server-sent events. The keep-alive runs on a timer's goroutine: it takes
// the same lock as all writes and sees done once the handler has returned, so that
// nothing is written to a finished response.
type events struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	pause time.Duration
	gone  func() // called when a write failed

	mu    sync.Mutex
	timer *time.Timer // guarded by mu: the next keep-alive; nil before the stream begins
	done  bool        // guarded by mu: the handler has returned or a write failed
}

func newEvents(w http.ResponseWriter, pause time.Duration, gone func()) *events {
	return &events{w: w, rc: http.NewResponseController(w), pause: pause, gone: gone}
}

// begin sends the headers and a first comment.
func (e *events) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start()
}

// start begins the stream unless it has begun. mu is held.
func (e *events) start() {
	if e.timer != nil {
		return
	}
	h := e.w.Header()
	h["Content-Type"] = contentTypes[eventStreamType]
	h["Cache-Control"] = noStore
	h.Set("X-Accel-Buffering", "no") // else nginx would buffer events
	e.timer = time.AfterFunc(e.pause, e.keepAlive)
	e.w.WriteHeader(http.StatusOK)
	e.write([]byte(":\n\n"))
}

// write sends a piece immediately and reports whether the client is still connected. mu
// is held.
func (e *events) write(piece []byte) bool {
	if e.done {
		return false
	}
	// Not every writer supports deadlines; then the server's own applies.
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeWait))
	_, err := e.w.Write(piece)
	if err == nil {
		err = e.rc.Flush()
	}
	if err != nil {
		e.done = true
		e.gone()
		return false
	}
	// An idle stream must not exceed the deadline of its last write.
	_ = e.rc.SetWriteDeadline(time.Time{})
	return true
}

func (e *events) keepAlive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.write([]byte(":\n\n")) {
		e.timer.Reset(e.pause)
	}
}

// next sends one response.
func (e *events) next(r reply) bool {
	buf := buffers.Get().(*[]byte)
	defer keepBuffer(buf)
	*buf = appendReply((*buf)[:0], r)
	return e.event(*buf)
}

// event sends one result.
func (e *events) event(payload []byte) bool {
	buf := buffers.Get().(*[]byte)
	defer keepBuffer(buf)
	*buf = append((*buf)[:0], "event: next\ndata: "...)
	*buf = append(*buf, payload...)
	*buf = append(*buf, "\n\n"...)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start()
	ok := e.write(*buf)
	e.timer.Reset(e.pause)
	return ok
}

func (e *events) complete() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start()
	e.write([]byte("event: complete\ndata:\n\n"))
}

// close waits for a keep-alive that is being written and prevents the next.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = true
	if e.timer != nil {
		e.timer.Stop()
	}
}
