package guard

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	maxDocuments = 1000    // parsed documents kept; the shop has about 40
	maxCachedDoc = 8 << 10 // bytes; a larger one is parsed each time, which bounds the memory
)

// Documents is a cache of parsed and validated documents with their plans. It implements
// gqlgen's query cache. Trusted documents are stored separately, so that documents of
// other clients cannot evict them.
type Documents struct {
	trusted atomic.Pointer[trusted]
	only    bool                       // no other documents are cached
	cache   *lru.Cache[string, *entry] // of the others
}

type entry struct {
	doc *ast.QueryDocument

	mu    sync.RWMutex
	plans map[*ast.OperationDefinition]*plan // guarded by mu
}

var _ graphql.Cache[*ast.QueryDocument] = (*Documents)(nil)

func newDocuments(trustedOnly bool) *Documents {
	cache, err := lru.New[string, *entry](maxDocuments)
	if err != nil {
		panic(err) // the only error is a size below one
	}
	d := &Documents{cache: cache, only: trustedOnly}
	d.trusted.Store(&trusted{})
	return d
}

func newEntry(doc *ast.QueryDocument) *entry {
	return &entry{doc: doc, plans: map[*ast.OperationDefinition]*plan{}}
}

// peek returns the entry of a text without marking it as used.
func (d *Documents) peek(text string) (*entry, bool) {
	if e, ok := d.trusted.Load().parsed[text]; ok {
		return e, true
	}
	return d.cache.Peek(text)
}

// Get returns the document of a text that passed before.
func (d *Documents) Get(_ context.Context, text string) (*ast.QueryDocument, bool) {
	e, ok := d.trusted.Load().parsed[text]
	if !ok {
		e, ok = d.cache.Get(text)
	}
	if !ok {
		return nil, false
	}
	return e.doc, true
}

// Add caches a validated document.
func (d *Documents) Add(_ context.Context, text string, doc *ast.QueryDocument) {
	if !d.only && len(text) <= maxCachedDoc {
		d.cache.Add(text, newEntry(doc))
	}
}

func (d *Documents) has(text string) bool {
	_, ok := d.peek(text)
	return ok
}

// plan returns the plan of an operation; it is computed once for a cached document.
func (d *Documents) plan(schema *ast.Schema, op *graphql.OperationContext) *plan {
	return d.planOf(schema, op.RawQuery, op.Doc, op.Operation)
}

func (d *Documents) planOf(schema *ast.Schema, text string, doc *ast.QueryDocument, op *ast.OperationDefinition) *plan {
	e, ok := d.peek(text)
	if !ok || e.doc != doc {
		return newPlan(schema, doc, op)
	}
	e.mu.RLock()
	p := e.plans[op]
	e.mu.RUnlock()
	if p == nil {
		p = newPlan(schema, doc, op)
		e.mu.Lock()
		e.plans[op] = p
		e.mu.Unlock()
	}
	return p
}

// context returns a context of a complete operation of the same document, or a new one.
func (d *Documents) context(schema *ast.Schema, text string, doc *ast.QueryDocument,
	op *ast.OperationDefinition) *graphql.OperationContext {
	if free, ok := d.planOf(schema, text, doc, op).contexts.Get().(*graphql.OperationContext); ok {
		return free
	}
	return &graphql.OperationContext{}
}
