package guard

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// notNull returns the variables of a validated operation that are used in a non-null
// position although their type is nullable: they may be omitted, because a default value
// applies, but must not be null
// (https://spec.graphql.org/October2021/#sec-All-Variable-Usages-are-Allowed). Neither
// gqlparser nor gqlgen checks this, and resolvers and directives expect a value.
func notNull(doc *ast.QueryDocument, op *ast.OperationDefinition) []string {
	n := &nulls{doc: doc, op: op}
	n.directives(op.Directives)
	n.selections(op.SelectionSet)
	return n.names
}

// nulls walks an operation, following a fragment each time it is spread; the number of
// nodes is already bounded.
type nulls struct {
	doc   *ast.QueryDocument
	op    *ast.OperationDefinition
	names []string
}

func (n *nulls) selections(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			n.arguments(s.Arguments)
			n.directives(s.Directives)
			n.selections(s.SelectionSet)
		case *ast.InlineFragment:
			n.directives(s.Directives)
			n.selections(s.SelectionSet)
		case *ast.FragmentSpread:
			n.directives(s.Directives)
			if f := n.doc.Fragments.ForName(s.Name); f != nil {
				n.directives(f.Directives)
				n.selections(f.SelectionSet)
			}
		}
	}
}

func (n *nulls) directives(list ast.DirectiveList) {
	for _, d := range list {
		n.arguments(d.Arguments)
	}
}

func (n *nulls) arguments(list ast.ArgumentList) {
	for _, a := range list {
		n.value(a.Value)
	}
}

func (n *nulls) value(v *ast.Value) {
	if v.Kind == ast.Variable && v.ExpectedType != nil && v.ExpectedType.NonNull {
		def := n.op.VariableDefinitions.ForName(v.Raw)
		if def != nil && !def.Type.NonNull && !slices.Contains(n.names, v.Raw) {
			n.names = append(n.names, v.Raw)
		}
	}
	for _, c := range v.Children {
		n.value(c.Value)
	}
}

// nullRefused returns an error for a null variable in a non-null position.
func (p *plan) nullRefused(variables map[string]any) *gqlerror.Error {
	for _, name := range p.notNull {
		if v, given := variables[name]; given && v == nil {
			refusal := refuse(codeBadUserInput, "The variable may be left out, but not be null.")
			refusal.Path = ast.Path{ast.PathName("variable"), ast.PathName(name)}
			return refusal
		}
	}
	return nil
}
