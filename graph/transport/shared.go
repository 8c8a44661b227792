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
)

// maxSharedPayloads bounds the payloads in memory; further ones are not shared.
const maxSharedPayloads = 1024

// sharedPayloadAge is the default of Public.Age.
const sharedPayloadAge = 50 * time.Millisecond

// sharedPayloads holds the payloads of recent events that many subscribers receive: one of them
// executes the operation and marshals, the others send the same bytes. The opening of a
// sale and each change of its stock are marshalled once per document and language.
type sharedPayloads struct {
	age    time.Duration
	mu     sync.Mutex
	byKey  map[payloadKey]*sharedPayload // guarded by mu
	oldest []*sharedPayload              // guarded by mu; in the order of their creation
}

// audience identifies subscribers who receive equal payloads for equal events: same
// document, variables, and name of Public.Audience.
type audience [sha256.Size]byte

// payloadKey identifies a payload.
type payloadKey struct {
	audience audience
	event    string
	revision int64
}

// sharedPayload is the payload of one event.
type sharedPayload struct {
	key     payloadKey
	at      time.Time
	done    chan struct{} // closed by finish
	payload []byte        // set before done is closed; nil when the response cannot be shared
}

// join returns the payload of an event. leads is true for the one caller who must finish it;
// shared is nil when no other subscriber may use it.
func (p *sharedPayloads) join(key payloadKey, now time.Time) (shared *sharedPayload, leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.oldest) && now.Sub(p.oldest[n].at) > p.age {
		if old := p.oldest[n]; p.byKey[old.key] == old {
			delete(p.byKey, old.key)
		}
		n++
	}
	p.oldest = slices.Delete(p.oldest, 0, n)
	if shared, ok := p.byKey[key]; ok {
		return shared, false
	}
	if len(p.oldest) == maxSharedPayloads {
		return nil, true
	}
	if p.byKey == nil {
		p.byKey = map[payloadKey]*sharedPayload{}
	}
	shared = &sharedPayload{key: key, at: now, done: make(chan struct{})}
	p.byKey[key] = shared
	p.oldest = append(p.oldest, shared)
	return shared, true
}

// finish hands the payload to all who wait.
func (p *sharedPayload) finish(payload []byte) {
	p.payload = payload
	close(p.done)
}

// wait returns the payload; nil when it cannot be shared or ctx ended.
func (p *sharedPayload) wait(ctx context.Context) []byte {
	select {
	case <-p.done:
		return p.payload
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
