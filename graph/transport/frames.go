package transport

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/push"
	"seckill/internal/platform/tracing"
)

// maxFrames bounds the frames in memory; further ones are not shared.
const maxFrames = 1024

// frameAge is the default of Public.Age.
const frameAge = 50 * time.Millisecond

// frames holds the payloads of recent events that many subscribers receive: one of them
// executes the operation and marshals, the others send the same bytes. The opening of a
// sale and each change of its stock are marshalled once per document and language.
type frames struct {
	age    time.Duration
	mu     sync.Mutex
	byKey  map[frameKey]*sharedFrame // guarded by mu
	oldest []*sharedFrame            // guarded by mu; in the order of their creation
}

// audience identifies subscribers who receive equal payloads for equal events: same
// document, variables, and name of Public.Audience.
type audience [sha256.Size]byte

// frameKey identifies a payload.
type frameKey struct {
	audience audience
	event    string
	revision int64
}

// sharedFrame is the payload of one event.
type sharedFrame struct {
	key     frameKey
	at      time.Time
	done    chan struct{} // closed by finish
	payload []byte        // set before done is closed; nil when the response cannot be shared
}

// join returns the frame of an event. leads is true for the one caller who must finish it;
// the frame is nil when it is not shared.
func (f *frames) join(key frameKey, now time.Time) (frame *sharedFrame, leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(f.oldest) && now.Sub(f.oldest[n].at) > f.age {
		if old := f.oldest[n]; f.byKey[old.key] == old {
			delete(f.byKey, old.key)
		}
		n++
	}
	f.oldest = slices.Delete(f.oldest, 0, n)
	if frame, ok := f.byKey[key]; ok {
		return frame, false
	}
	if len(f.oldest) == maxFrames {
		return nil, true
	}
	if f.byKey == nil {
		f.byKey = map[frameKey]*sharedFrame{}
	}
	frame = &sharedFrame{key: key, at: now, done: make(chan struct{})}
	f.byKey[key] = frame
	f.oldest = append(f.oldest, frame)
	return frame, true
}

// finish hands the payload to all who wait.
func (f *sharedFrame) finish(payload []byte) {
	f.payload = payload
	close(f.done)
}

// wait returns the payload; nil when it cannot be shared or ctx ended.
func (f *sharedFrame) wait(ctx context.Context) []byte {
	select {
	case <-f.done:
		return f.payload
	case <-ctx.Done():
		return nil
	}
}

// Public names what subscribers may share: results that depend on the caller only by
// Audience.
type Public struct {
	// Fields are the shareable fields, by type: their resolvers may read from ctx only what
	// Audience depends on. A document with any other field is executed
	// for each subscriber.
	Fields map[string][]string
	// Audience names the callers for whom Fields have the same values.
	Audience func(ctx context.Context) string
	// Age bounds how long a payload is shared, and so how late the server's clock in it can
	// be; 50 ms by default.
	Age time.Duration
}

// audienceOf returns the audience of a subscription; false when its results are for its
// caller alone.
func (p Public) audienceOf(ctx context.Context, op *graphql.OperationContext) (audience, bool) {
	if p.Audience == nil || op.RawQuery == "" || !p.Covers(op.Operation.SelectionSet) {
		return audience{}, false
	}
	text, err := json.Marshal([]any{op.RawQuery, op.OperationName, op.Variables, p.Audience(ctx)})
	return sha256.Sum256(text), err == nil
}

// Covers reports whether a selection has shareable fields only.
func (p Public) Covers(set ast.SelectionSet) bool {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name != "__typename" && !slices.Contains(p.Fields[s.ObjectDefinition.Name], s.Name) ||
				!p.Covers(s.SelectionSet) {
				return false
			}
		case *ast.InlineFragment:
			if !p.Covers(s.SelectionSet) {
				return false
			}
		case *ast.FragmentSpread:
			if !p.Covers(s.Definition.SelectionSet) {
				return false
			}
		}
	}
	return true
}

// results are the responses of one operation of a socket or an event stream.
type results struct {
	frames    *frames
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
	frame, leads := r.frames.join(frameKey{r.audience, event.Key, event.Revision}, time.Now())
	if !leads {
		if payload := frame.wait(r.ctx); payload != nil {
			return payload, nil
		}
		frame = nil
	}
	if frame == nil {
		r.source.Emit()
		return nil, r.responses(r.ctx)
	}
	defer func() { frame.finish(payload) }()
	r.source.Emit()
	resp = r.responses(r.ctx)
	if resp != nil && resp.Data != nil && len(resp.Errors) == 0 {
		payload = appendReply(nil, reply{Response: resp})
	}
	return payload, resp
}

func (h *Handler) dispatch(ctx context.Context, op *graphql.OperationContext) *results {
	ctx, slot := push.WithSlot(ctx)
	r := &results{frames: &h.frames, tracer: h.opts.Tracer}
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
