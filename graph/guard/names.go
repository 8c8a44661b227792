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

// unknownNames counts the names of a document that are not in the vocabulary. It does not
// follow fragments.
type unknownNames struct {
	known vocabulary
	count int
}

// check refuses a document with too many unknown names.
func (v vocabulary) check(doc *ast.QueryDocument) *gqlerror.Error {
	u := &unknownNames{known: v}
	for _, op := range doc.Operations {
		for _, d := range op.VariableDefinitions {
			u.name(d.Type.Name())
			u.value(d.DefaultValue)
			u.directives(d.Directives)
		}
		u.directives(op.Directives)
		u.selections(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		u.name(f.TypeCondition)
		u.directives(f.Directives)
		u.selections(f.SelectionSet)
	}
	if u.count > maxUnknownNames {
		return refuse(codeValidationFailed, fmt.Sprintf("More than %d names of the document are not in the schema.",
			maxUnknownNames))
	}
	return nil
}

func (u *unknownNames) name(n string) {
	if _, ok := u.known[n]; !ok && n != "" {
		u.count++
	}
}

func (u *unknownNames) selections(set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			u.name(sel.Name)
			u.arguments(sel.Arguments)
			u.directives(sel.Directives)
			u.selections(sel.SelectionSet)
		case *ast.InlineFragment:
			u.name(sel.TypeCondition)
			u.directives(sel.Directives)
			u.selections(sel.SelectionSet)
		case *ast.FragmentSpread:
			u.directives(sel.Directives)
		}
	}
}

func (u *unknownNames) arguments(list ast.ArgumentList) {
	for _, a := range list {
		u.name(a.Name)
		u.value(a.Value)
	}
}

func (u *unknownNames) directives(list ast.DirectiveList) {
	for _, d := range list {
		u.name(d.Name)
		u.arguments(d.Arguments)
	}
}

func (u *unknownNames) value(v *ast.Value) {
	if v == nil {
		return
	}
	if v.Kind == ast.EnumValue {
		u.name(v.Raw)
	}
	for _, c := range v.Children {
		u.name(c.Name)
		u.value(c.Value)
	}
}
