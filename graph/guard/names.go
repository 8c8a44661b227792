package guard

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxUnknownNames bounds the names of a document that are not in the schema. For each the
// validator computes edit distances to find suggestions: a document with only unknown
// names would take too long.
const maxUnknownNames = 8

// vocabulary is the set of all names in a schema.
type vocabulary map[string]struct{}

func newVocabulary(schema *ast.Schema) vocabulary {
	v := vocabulary{"__typename": {}, "__schema": {}, "__type": {}, "true": {}, "false": {}, "null": {}}
	arguments := func(list ast.ArgumentDefinitionList) {
		for _, a := range list {
			v[a.Name] = struct{}{}
		}
	}
	for name, t := range schema.Types {
		v[name] = struct{}{}
		for _, f := range t.Fields {
			v[f.Name] = struct{}{}
			arguments(f.Arguments)
		}
		for _, e := range t.EnumValues {
			v[e.Name] = struct{}{}
		}
	}
	for name, d := range schema.Directives {
		v[name] = struct{}{}
		arguments(d.Arguments)
	}
	return v
}

// strangers counts the names of a document that are not in the vocabulary. It does not
// follow fragments.
type strangers struct {
	known vocabulary
	count int
}

// check refuses a document with too many unknown names.
func (v vocabulary) check(doc *ast.QueryDocument) *gqlerror.Error {
	s := &strangers{known: v}
	for _, op := range doc.Operations {
		for _, d := range op.VariableDefinitions {
			s.name(d.Type.Name())
			s.value(d.DefaultValue)
			s.directives(d.Directives)
		}
		s.directives(op.Directives)
		s.selections(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		s.name(f.TypeCondition)
		s.directives(f.Directives)
		s.selections(f.SelectionSet)
	}
	if s.count > maxUnknownNames {
		return refuse(codeValidationFailed, fmt.Sprintf("More than %d names of the document are not in the schema.", maxUnknownNames))
	}
	return nil
}

func (s *strangers) name(n string) {
	if _, ok := s.known[n]; !ok && n != "" {
		s.count++
	}
}

func (s *strangers) selections(set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			s.name(sel.Name)
			s.arguments(sel.Arguments)
			s.directives(sel.Directives)
			s.selections(sel.SelectionSet)
		case *ast.InlineFragment:
			s.name(sel.TypeCondition)
			s.directives(sel.Directives)
			s.selections(sel.SelectionSet)
		case *ast.FragmentSpread:
			s.directives(sel.Directives)
		}
	}
}

func (s *strangers) arguments(list ast.ArgumentList) {
	for _, a := range list {
		s.name(a.Name)
		s.value(a.Value)
	}
}

func (s *strangers) directives(list ast.DirectiveList) {
	for _, d := range list {
		s.name(d.Name)
		s.arguments(d.Arguments)
	}
}

func (s *strangers) value(v *ast.Value) {
	if v == nil {
		return
	}
	if v.Kind == ast.EnumValue {
		s.name(v.Raw)
	}
	for _, c := range v.Children {
		s.name(c.Name)
		s.value(c.Value)
	}
}
