package guard

import (
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	maxDocuments = 1000    // documents kept parsed; the shop has about 40
	maxCachedDoc = 8 << 10 // bytes; a larger one is parsed each time, so that strangers cannot fill the memory
)

// Documents keeps parsed and validated documents with what was reckoned about
// them. It is gqlgen's query cache.
type Documents struct {
	cache *lru.Cache[string, *entry]
}

type entry struct {
	doc *ast.QueryDocument

	mu    sync.RWMutex
	plans map[*ast.OperationDefinition]*plan // guarded by mu
}

var _ graphql.Cache[*ast.QueryDocument] = (*Documents)(nil)

func newDocuments() *Documents {
	cache, err := lru.New[string, *entry](maxDocuments)
	if err != nil {
		panic(err) // only a size below one is refused
	}
	return &Documents{cache: cache}
}

// Get returns the document of a text that passed before.
func (d *Documents) Get(_ context.Context, text string) (*ast.QueryDocument, bool) {
	e, ok := d.cache.Get(text)
	if !ok {
		return nil, false
	}
	return e.doc, true
}

// Add keeps a validated document.
func (d *Documents) Add(_ context.Context, text string, doc *ast.QueryDocument) {
	if len(text) <= maxCachedDoc {
		d.cache.Add(text, &entry{doc: doc, plans: map[*ast.OperationDefinition]*plan{}})
	}
}

func (d *Documents) has(text string) bool { return d.cache.Contains(text) }

// plan returns what is known about the operation, reckoning it the first time.
func (d *Documents) plan(schema *ast.Schema, op *graphql.OperationContext) *plan {
	e, ok := d.cache.Peek(op.RawQuery)
	if !ok || e.doc != op.Doc {
		return newPlan(schema, op.Doc, op.Operation)
	}
	e.mu.RLock()
	p := e.plans[op.Operation]
	e.mu.RUnlock()
	if p == nil {
		p = newPlan(schema, op.Doc, op.Operation)
		e.mu.Lock()
		e.plans[op.Operation] = p
		e.mu.Unlock()
	}
	return p
}
