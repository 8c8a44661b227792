package guard

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// The cost of an operation follows the GraphQL Cost Directives specification
// (https://ibm.github.io/graphql-specs/cost-spec.html): the weight of a field is its
// @cost, else the @cost of its type, else 1 for an object and 0 for a leaf, and
// everything below a list is multiplied by the length that @listSize gives. Fields
// excluded by @skip and @include count: the sum is an upper bound.

const (
	maxSize = 10_000        // bound of an assumed list length; resolvers bound pages at 100
	maxCost = math.MaxInt32 // sums saturate here
)

// plan is what is known about an operation before its variables.
type plan struct {
	terms    []term
	constant bool     // whether no list depends on a variable
	total    int64    // the cost, if constant
	notNull  []string // variables that may be omitted but must not be null
	schema   bool     // whether it queries the schema
	optional bool     // whether it has @skip or @include

	contexts sync.Pool // of complete operations: *graphql.OperationContext
}

type term struct {
	weight   int64
	size     size // multiplier of everything below
	constant bool // whether nothing below depends on a variable
	children []term
}

// size is the length of a list: the largest slicing argument given, else the assumed
// size.
type size struct {
	assumed int64
	args    []*ast.Value
}

func newPlan(schema *ast.Schema, doc *ast.QueryDocument, op *ast.OperationDefinition) *plan {
	b := &termBuilder{schema: schema, doc: doc}
	p := &plan{terms: b.terms(op.SelectionSet, nil), notNull: notNull(doc, op), schema: introspects(op.SelectionSet),
		optional: hasOptional(doc, op)}
	p.constant = allConstant(p.terms)
	if p.constant {
		p.total = sum(p.terms, nil)
	}
	return p
}

// hasOptional reports whether a document leaves out fields depending on variables.
func hasOptional(doc *ast.QueryDocument, op *ast.OperationDefinition) bool {
	found := optionalIn(op.SelectionSet)
	for _, f := range doc.Fragments {
		found = found || optionalIn(f.SelectionSet)
	}
	return found
}

func optionalIn(set ast.SelectionSet) bool {
	for _, s := range set {
		var below ast.SelectionSet
		var directives ast.DirectiveList
		switch s := s.(type) {
		case *ast.Field:
			below, directives = s.SelectionSet, s.Directives
		case *ast.InlineFragment:
			below, directives = s.SelectionSet, s.Directives
		case *ast.FragmentSpread:
			directives = s.Directives
		}
		if len(directives) > 0 || optionalIn(below) {
			return true
		}
	}
	return false
}

// introspects reports whether root fields of a validated operation query the schema.
func introspects(set ast.SelectionSet) bool {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if s.Name == "__schema" || s.Name == "__type" {
				return true
			}
		case *ast.InlineFragment:
			if introspects(s.SelectionSet) {
				return true
			}
		case *ast.FragmentSpread:
			if s.Definition != nil && introspects(s.Definition.SelectionSet) {
				return true
			}
		}
	}
	return false
}

func (p *plan) cost(variables map[string]any) int64 {
	if p.constant {
		return p.total
	}
	return sum(p.terms, variables)
}

// termBuilder builds terms from a validated document.
type termBuilder struct {
	schema *ast.Schema
	doc    *ast.QueryDocument
}

// sized lists the child fields of a connection that have the length of its page.
type sized struct {
	fields []string
	size   size
}

func (b *termBuilder) terms(set ast.SelectionSet, page *sized) []term {
	var out []term
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if s.Definition != nil {
				out = append(out, b.field(s, page))
			}
		case *ast.InlineFragment:
			out = append(out, b.terms(s.SelectionSet, page)...)
		case *ast.FragmentSpread:
			if f := b.doc.Fragments.ForName(s.Name); f != nil {
				out = append(out, b.terms(f.SelectionSet, page)...)
			}
		}
	}
	return out
}

func (b *termBuilder) field(f *ast.Field, page *sized) term {
	t := term{weight: b.weightOf(f), size: size{assumed: 1}}
	var below *sized
	if d := f.Definition.Directives.ForName("listSize"); d != nil {
		length := sizeOf(f, d)
		if fields := stringList(d.Arguments.ForName("sizedFields")); len(fields) > 0 {
			below = &sized{fields: fields, size: length}
		} else {
			t.size = length
		}
	}
	if page != nil && slices.Contains(page.fields, f.Name) {
		t.size = page.size
	}
	t.children = b.terms(f.SelectionSet, below)
	if t.size.assumed != 1 || len(t.size.args) > 0 {
		// The weight applies to the objects of the list, not to the field.
		t.children = append(t.children, term{weight: t.weight, size: size{assumed: 1}, constant: true})
		t.weight = 0
	}
	t.constant = t.size.constant() && allConstant(t.children)
	if t.constant {
		t = term{weight: t.cost(nil), size: size{assumed: 1}, constant: true}
	}
	return t
}

func (t term) cost(variables map[string]any) int64 {
	return clamp(t.weight + clamp(t.size.value(variables)*sum(t.children, variables)))
}

func sum(terms []term, variables map[string]any) int64 {
	var n int64
	for _, t := range terms {
		n = clamp(n + t.cost(variables))
	}
	return n
}

func clamp(n int64) int64 { return min(max(n, 0), maxCost) }

func allConstant(terms []term) bool {
	for _, t := range terms {
		if !t.constant {
			return false
		}
	}
	return true
}

// weightOf returns the weight of a field with its arguments.
func (b *termBuilder) weightOf(f *ast.Field) int64 {
	w := int64(0)
	if t := b.schema.Types[f.Definition.Type.Name()]; t != nil {
		if t.IsCompositeType() {
			w = 1
		}
		if explicit, ok := costOf(t.Directives); ok {
			w = explicit
		}
	}
	if explicit, ok := costOf(f.Definition.Directives); ok {
		w = explicit
	}
	for _, a := range f.Arguments {
		if def := f.Definition.Arguments.ForName(a.Name); def != nil {
			if explicit, ok := costOf(def.Directives); ok {
				w += explicit
			}
		}
	}
	return w
}

func costOf(directives ast.DirectiveList) (int64, bool) {
	d := directives.ForName("cost")
	if d == nil {
		return 0, false
	}
	arg := d.Arguments.ForName("weight")
	if arg == nil {
		return 0, false
	}
	w, err := strconv.ParseFloat(arg.Value.Raw, 64)
	return int64(math.Ceil(w)), err == nil
}

func sizeOf(f *ast.Field, d *ast.Directive) size {
	s := size{assumed: 1}
	if a := d.Arguments.ForName("assumedSize"); a != nil {
		if n, err := strconv.ParseInt(a.Value.Raw, 10, 32); err == nil {
			s.assumed = n
		}
	}
	for _, name := range stringList(d.Arguments.ForName("slicingArguments")) {
		if a := f.Arguments.ForName(name); a != nil {
			s.args = append(s.args, a.Value)
		} else if def := f.Definition.Arguments.ForName(name); def != nil && def.DefaultValue != nil {
			s.args = append(s.args, def.DefaultValue)
		}
	}
	return s
}

func (s size) constant() bool {
	for _, a := range s.args {
		if a.Kind == ast.Variable || a.Kind == ast.ListValue {
			return false
		}
	}
	return true
}

func (s size) value(variables map[string]any) int64 {
	n := int64(-1)
	for _, a := range s.args {
		v, err := a.Value(variables)
		if err != nil {
			continue
		}
		n = max(n, length(v))
	}
	if n < 0 {
		n = s.assumed
	}
	return min(n, maxSize)
}

// length returns the length that a slicing argument requests: its number, or the number
// of its elements; -1 when it is null. A single value is coerced to a list of one;
// gqlparser wraps those of variables in a slice of its own type.
func length(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case int:
		return int64(v)
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return maxSize
		}
		return n
	case []any:
		return int64(len(v))
	case nil:
		return -1
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		return int64(list.Len())
	}
	return 1
}

func stringList(a *ast.Argument) []string {
	if a == nil || a.Value == nil {
		return nil
	}
	var out []string
	for _, c := range a.Value.Children {
		out = append(out, c.Value.Raw)
	}
	return out
}
