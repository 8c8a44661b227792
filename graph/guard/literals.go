package guard

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Rules returns the validation rules, for the executor. They are gqlparser's rules plus
// what those omit: for subscriptions see oneStream; for literals, including default
// values, integers beyond 32 bits, objects for scalars and enums, and invalid strings for
// the API's own scalars.
func (g *Guard) Rules() *rules.Rules {
	all := rules.NewDefaultRules()
	all.AddRule("LiteralsFit", func(observers *core.Events, addError core.AddErrFunc) {
		observers.OnValue(func(_ *core.Walker, v *ast.Value) {
			if v.Definition != nil && v.ExpectedType != nil && !g.inputs.literalFits(v) {
				addError(core.Message("The value is not a valid %s.", v.ExpectedType.String()), core.At(v.Position))
			}
		})
	})
	all.AddRule("OneStream", oneStream)
	return all
}

// oneStream requires that a subscription has one root field under one response name,
// always included. gqlparser counts field names, not response names, and the October 2021
// edition evaluates @skip and @include at run time; the draft forbids them
// (https://spec.graphql.org/draft/#sec-Single-Root-Field).
func oneStream(observers *core.Events, addError core.AddErrFunc) {
	observers.OnOperation(func(w *core.Walker, op *ast.OperationDefinition) {
		if op.Operation != ast.Subscription {
			return
		}
		r := &roots{doc: w.Document, names: map[string]bool{}, seen: map[string]bool{}}
		r.collect(op.SelectionSet)
		switch {
		case r.optional:
			addError(core.Message("The field of a subscription cannot be skipped."), core.At(op.Position))
		case len(r.names) > 1:
			addError(core.Message("A subscription must select one field."), core.At(op.Position))
		}
	})
}

// roots are the response names at the root of an operation.
type roots struct {
	doc      *ast.QueryDocument
	names    map[string]bool
	seen     map[string]bool // fragments
	optional bool            // a field may be skipped
}

func (r *roots) collect(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			r.names[s.Alias] = true
			r.look(s.Directives)
		case *ast.InlineFragment:
			r.look(s.Directives)
			r.collect(s.SelectionSet)
		case *ast.FragmentSpread:
			r.look(s.Directives)
			if f := r.doc.Fragments.ForName(s.Name); f != nil && !r.seen[s.Name] {
				r.seen[s.Name] = true
				r.collect(f.SelectionSet)
			}
		}
	}
}

func (r *roots) look(directives ast.DirectiveList) {
	r.optional = r.optional || directives.ForName("skip") != nil || directives.ForName("include") != nil
}

func (all inputs) literalFits(v *ast.Value) bool {
	scalar := v.Definition.Kind == ast.Scalar
	_, ofSpec := builtIn[v.Definition.Name]
	switch v.Kind {
	case ast.Variable, ast.NullValue:
		return true // gqlparser has validated it
	case ast.StringValue, ast.BlockValue:
		return !scalar || isString(v.Raw) && (ofSpec || all[v.Definition.Name].fits(v.Raw))
	case ast.ObjectValue:
		return v.Definition.Kind == ast.InputObject
	case ast.ListValue:
		return v.ExpectedType.Elem != nil
	case ast.IntValue:
		if v.Definition.Name == "Int" {
			_, err := strconv.ParseInt(v.Raw, 10, 32)
			return err == nil
		}
	case ast.FloatValue, ast.BooleanValue, ast.EnumValue: // validated below
	}
	return !scalar || ofSpec
}
