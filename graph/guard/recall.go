package guard

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/internal/platform/fault"
)

// Recall prepares an operation whose document is cached and whose variables match their
// types without coercion: nearly all operations of buyers during a sale. In other cases
// it returns nil; the executor then prepares the operation step by step and reports
// errors. When both can prepare an operation their results are equal, but gqlparser's use
// of reflection costs a third of a small operation.
func (g *Guard) Recall(p *graphql.RawParams) *graphql.OperationContext {
	if idOf(p.Extensions) != "" && (p.Query != "" || g.resolve(p) != nil) {
		return nil
	}
	doc, known := g.docs.Get(context.Background(), p.Query)
	if !known {
		return nil
	}
	def := doc.Operations.ForName(p.OperationName)
	if def == nil {
		return nil
	}
	values, fit := g.inputs.plain(def, p.Variables)
	if !fit {
		return nil
	}
	op := g.docs.context(g.opts.Schema, p.Query, doc, def)
	op.RawQuery, op.OperationName, op.Extensions, op.Headers = p.Query, p.OperationName, p.Extensions, p.Headers
	op.Doc, op.Operation, op.Variables = doc, def, values
	return op
}

// Release lets a later operation of the same document use the context of one that is
// complete: nothing may refer to it. It keeps what gqlgen derives from the document, the
// fields of each object and type, which is the same for equal documents without @skip and
// @include. The values of the caller are removed.
func (g *Guard) Release(op *graphql.OperationContext) {
	if e, ok := g.docs.peek(op.RawQuery); !ok || e.doc != op.Doc {
		return
	}
	p := g.docs.plan(g.opts.Schema, op)
	if p.optional {
		return
	}
	op.Variables, op.Extensions, op.Headers, op.Stats = nil, nil, nil, graphql.Stats{}
	p.contexts.Put(op)
}

// MayIntrospect reports whether a caller may query the schema.
func (g *Guard) MayIntrospect(ctx context.Context) bool {
	return g.opts.Introspection || g.opts.MayIntrospect != nil && g.opts.MayIntrospect(ctx)
}

// Charge checks the variables of a prepared operation for nulls in non-null positions,
// and its cost against the limit and the caller's budget.
func (g *Guard) Charge(ctx context.Context, op *graphql.OperationContext) *gqlerror.Error {
	p := g.docs.plan(g.opts.Schema, op)
	if p.schema && !g.MayIntrospect(ctx) {
		return refuse(string(fault.Forbidden), "This server does not show you its schema.")
	}
	op.DisableIntrospection = false // already checked here; the executor's own error has no code
	if refusal := p.nullRefused(op.Variables); refusal != nil {
		return refusal
	}
	cost := p.cost(op.Variables)
	if cost > g.opts.Limits.Cost {
		return tooComplex(fmt.Sprintf("The operation costs %d points, the limit is %d.", cost, g.opts.Limits.Cost))
	}
	passed := &charge{guard: g}
	if g.opts.Spend != nil {
		budget, err := g.opts.Spend(ctx, cost)
		switch {
		case err == nil:
			passed.budget = &budget
		case op.Operation.Operation != ast.Mutation:
			return refused(err)
		default:
			passed.spent = err
		}
	}
	op.Stats.SetExtension(chargeExtension, passed)
	return nil
}

// refusedCost is the price in points of a request that is refused before its cost is
// known. Decoding, parsing and validating one takes up to 10 ms, as long as an operation
// of 1,000 points.
const refusedCost = 1000

// ChargeRefused deducts the price of an unreadable request or a refused document from the
// caller's budget. When the budget is exhausted it returns that refusal, which replaces
// the first one; else nil.
func (g *Guard) ChargeRefused(ctx context.Context) *gqlerror.Error {
	return g.chargeOnly(ctx, refusedCost)
}

func (g *Guard) chargeOnly(ctx context.Context, cost int64) *gqlerror.Error {
	if g.opts.Spend == nil {
		return nil
	}
	if _, err := g.opts.Spend(ctx, cost); err != nil {
		return refused(err)
	}
	return nil
}

// plain returns the values of an operation's variables if each matches its type without a
// default, list coercion or number conversion: the given map, unless it has others, too.
func (all inputs) plain(op *ast.OperationDefinition, given map[string]any) (map[string]any, bool) {
	found := 0
	for _, def := range op.VariableDefinitions {
		v, ok := given[def.Variable]
		switch {
		case !ok && (def.DefaultValue != nil || def.Type.NonNull):
			return nil, false
		case !ok:
			continue
		case !all.fits(def.Type, v):
			return nil, false
		}
		found++
	}
	if found == len(given) && given != nil {
		return given, true
	}
	values := make(map[string]any, found)
	for _, def := range op.VariableDefinitions {
		if v, ok := given[def.Variable]; ok {
			values[def.Variable] = v
		}
	}
	return values, true
}

// fits reports whether a value matches its type without coercion.
func (all inputs) fits(t *ast.Type, v any) bool {
	if v == nil {
		return !t.NonNull
	}
	if t.Elem != nil {
		list, ok := v.([]any)
		if !ok {
			return false
		}
		for _, one := range list {
			if !all.fits(t.Elem, one) {
				return false
			}
		}
		return true
	}
	in := all[t.NamedType]
	switch {
	case in == nil:
		return false
	case in.fields == nil:
		_, long := v.(json.Number) // gqlparser converts it into a number
		return !long && in.fits(v)
	}
	object, ok := v.(map[string]any)
	if !ok || in.oneOf && !exactlyOne(object) {
		return false
	}
	return all.fieldsFit(in, object)
}

func (all inputs) fieldsFit(in *input, object map[string]any) bool {
	for name, v := range object {
		t, known := in.fields[name]
		if !known || !all.fits(t, v) {
			return false
		}
	}
	for _, name := range in.required {
		if _, given := object[name]; !given {
			return false
		}
	}
	return true
}
