package guard

import (
	"errors"
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/internal/fault"
)

// gqlparser checks @oneOf in literals alone (a variable inside one must be
// non-null). Objects that come in variables are checked here, once, for every
// input type of the schema.

// oneOfVariable is a variable that holds a @oneOf object, at any depth.
type oneOfVariable struct {
	name string
	typ  *ast.Type
}

func findOneOf(schema *ast.Schema, op *ast.OperationDefinition) []oneOfVariable {
	var out []oneOfVariable
	for _, v := range op.VariableDefinitions {
		if reachesOneOf(schema, v.Type, map[string]bool{}) {
			out = append(out, oneOfVariable{name: v.Variable, typ: v.Type})
		}
	}
	return out
}

func reachesOneOf(schema *ast.Schema, t *ast.Type, seen map[string]bool) bool {
	def := schema.Types[t.Name()]
	if def == nil || def.Kind != ast.InputObject || seen[def.Name] {
		return false
	}
	seen[def.Name] = true
	if def.Directives.ForName("oneOf") != nil {
		return true
	}
	for _, f := range def.Fields {
		if reachesOneOf(schema, f.Type, seen) {
			return true
		}
	}
	return false
}

func (p *plan) checkOneOf(schema *ast.Schema, variables map[string]any) *gqlerror.Error {
	for _, c := range p.oneOf {
		if !validOneOf(schema, c.typ, variables[c.name]) {
			return oneOfRefused()
		}
	}
	return nil
}

// validOneOf walks a value down its type.
func validOneOf(schema *ast.Schema, t *ast.Type, v any) bool {
	if v == nil {
		return true
	}
	if t.Elem != nil {
		// a single value stands for a list of one; gqlparser wraps it as it is
		list := reflect.ValueOf(v)
		if list.Kind() != reflect.Slice {
			return validOneOf(schema, t.Elem, v)
		}
		for i := range list.Len() {
			if !validOneOf(schema, t.Elem, list.Index(i).Interface()) {
				return false
			}
		}
		return true
	}
	def := schema.Types[t.NamedType]
	object, ok := v.(map[string]any)
	if !ok || def == nil || def.Kind != ast.InputObject {
		return true
	}
	if def.Directives.ForName("oneOf") != nil && !exactlyOne(object) {
		return false
	}
	for _, f := range def.Fields {
		if !validOneOf(schema, f.Type, object[f.Name]) {
			return false
		}
	}
	return true
}

func exactlyOne(object map[string]any) bool {
	if len(object) != 1 {
		return false
	}
	for _, field := range object {
		return field != nil
	}
	return false
}

func oneOfRefused() *gqlerror.Error {
	return refuse(codeBadUserInput, "Exactly one field of a @oneOf input must be given, and not be null.")
}

// refused turns the error of a budget into the refusal of an operation.
func refused(err error) *gqlerror.Error {
	message := "The operation was refused."
	if f, ok := errors.AsType[*fault.Error](err); ok {
		message = f.Message
	}
	return &gqlerror.Error{Err: err, Message: message, Extensions: map[string]any{"code": string(fault.CodeOf(err))}}
}
