package guard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
)

// Introspection queries nest deeper than others (a type wrapped nine times) and have
// their own bounds; gqlparser bounds their lists.
const (
	introspectionDepth = 20
	introspectionNodes = 600
)

// examine parses a document and checks its limits. Its run time is bounded by the limits:
// the parser stops at the maximum number of tokens, the walk at the maximum number of
// nodes.
func (g *Guard) examine(text string) (*ast.QueryDocument, *gqlerror.Error) {
	limits := g.opts.Limits
	if refusal := countTokens(text, limits); refusal != nil {
		return nil, refusal
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, limits.Tokens)
	if err != nil {
		return nil, parseError(err)
	}
	if len(doc.Fragments) > limits.Fragments {
		return nil, tooComplex(fmt.Sprintf("A document may define at most %d fragments.", limits.Fragments))
	}
	if len(doc.Operations) > limits.Operations {
		return nil, tooComplex(fmt.Sprintf("A document may define at most %d operations.", limits.Operations))
	}
	if refusal := g.names.check(doc); refusal != nil {
		return nil, refusal
	}
	m := &merges{doc: doc}
	for _, op := range doc.Operations {
		w := &walk{limits: limits, doc: doc, mutation: op.Operation == ast.Mutation}
		if refusal := w.selections(op.SelectionSet, 0); refusal != nil {
			return nil, refusal
		}
		if refusal := m.add(op.SelectionSet); refusal != nil {
			return nil, refusal
		}
	}
	// Fragments that no operation uses are validated too.
	for _, f := range doc.Fragments {
		w := &walk{limits: limits, doc: doc}
		below := w.selections
		if strings.HasPrefix(f.TypeCondition, "__") {
			below = w.introspect
		}
		if refusal := below(f.SelectionSet, 0); refusal != nil {
			return nil, refusal
		}
		if refusal := m.add(f.SelectionSet); refusal != nil {
			return nil, refusal
		}
	}
	return doc, nil
}

// countTokens stops at the first token or name above the limits: validation computes the
// edit distance between unknown names and all known ones.
func countTokens(text string, limits Limits) *gqlerror.Error {
	lex := lexer.New(&ast.Source{Input: text})
	for n := 0; ; n++ {
		token, err := lex.ReadToken()
		switch {
		case err != nil || token.Kind == lexer.EOF:
			return nil // the parser reports the error
		case n >= limits.Tokens:
			return tooComplex(fmt.Sprintf("A document may have at most %d tokens.", limits.Tokens))
		case token.Kind == lexer.Name && len(token.Value) > limits.NameLength:
			return tooComplex(fmt.Sprintf("A name may have at most %d characters.", limits.NameLength))
		}
	}
}

func parseError(err error) *gqlerror.Error {
	parsed, ok := errors.AsType[*gqlerror.Error](err)
	if !ok {
		return refuse(codeParseFailed, "The document cannot be parsed.")
	}
	if parsed.Extensions == nil {
		parsed.Extensions = map[string]any{}
	}
	parsed.Extensions["code"] = codeParseFailed
	return parsed
}

// walk counts the selections of one operation, following a fragment each time it is
// spread. A spread counts as a node, so that fragment bombs and cycles exceed the node
// limit.
type walk struct {
	limits        Limits
	doc           *ast.QueryDocument
	mutation      bool
	nodes         int
	introspection int // nodes below __schema and __type
	rootMutations int
	aliases       map[string]int
}

func (w *walk) selections(set ast.SelectionSet, depth int) *gqlerror.Error {
	for _, s := range set {
		if w.nodes++; w.nodes > w.limits.Nodes {
			return tooComplex(fmt.Sprintf("An operation may select at most %d fields and fragments.", w.limits.Nodes))
		}
		var refusal *gqlerror.Error
		switch s := s.(type) {
		case *ast.Field:
			refusal = w.field(s, depth)
		case *ast.InlineFragment:
			refusal = w.selections(s.SelectionSet, depth)
		case *ast.FragmentSpread:
			if f := w.doc.Fragments.ForName(s.Name); f != nil {
				refusal = w.selections(f.SelectionSet, depth)
			}
		}
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

func (w *walk) field(f *ast.Field, depth int) *gqlerror.Error {
	if depth++; depth > w.limits.Depth {
		return tooComplex(fmt.Sprintf("An operation may nest at most %d fields.", w.limits.Depth))
	}
	if w.mutation && depth == 1 && f.Name != "__typename" {
		if w.rootMutations++; w.rootMutations > 1 {
			return tooComplex("An operation may run one mutation only.")
		}
	}
	if f.Alias != f.Name {
		if w.aliases == nil {
			w.aliases = map[string]int{}
		}
		if w.aliases[f.Name]++; w.aliases[f.Name] > w.limits.Aliases {
			return tooComplex(fmt.Sprintf("A field may have at most %d aliases.", w.limits.Aliases))
		}
	}
	if f.Name == "__schema" || f.Name == "__type" {
		return w.introspect(f.SelectionSet, 0)
	}
	return w.selections(f.SelectionSet, depth)
}

func (w *walk) introspect(set ast.SelectionSet, depth int) *gqlerror.Error {
	if len(set) > 0 && depth >= introspectionDepth {
		return tooComplex("The introspection query is too deep.")
	}
	for _, s := range set {
		if w.introspection++; w.introspection > introspectionNodes {
			return tooComplex("The introspection query is too large.")
		}
		var refusal *gqlerror.Error
		switch s := s.(type) {
		case *ast.Field:
			refusal = w.introspect(s.SelectionSet, depth+1)
		case *ast.InlineFragment:
			refusal = w.introspect(s.SelectionSet, depth)
		case *ast.FragmentSpread:
			if f := w.doc.Fragments.ForName(s.Name); f != nil {
				refusal = w.introspect(f.SelectionSet, depth)
			}
		}
		if refusal != nil {
			return refusal
		}
	}
	return nil
}
