package guard

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/internal/platform/fault"
)

// Input coercion of variables by the specification
// (https://spec.graphql.org/October2021/#sec-Scalars.Input-Coercion). gqlparser checks
// lists, nulls and missing fields. It accepts integers beyond 32 bits, numbers in
// strings, numbers for strings, enum values in any case, any value for the API's own
// scalars, and @oneOf objects with any number of fields.

// input is a named input type with what is needed to check its values.
type input struct {
	fits     func(v any) bool     // of a scalar or enum
	fields   map[string]*ast.Type // of an input object
	required []string             // fields that must be present
	oneOf    bool
}

type inputs map[string]*input

// builtIn are the scalars of the specification. The API's own scalars are strings.
//
// Strings have one additional rule: no U+0000, which Postgres cannot store.
var builtIn = map[string]func(v any) bool{"Int": isInt, "Float": isFloat, "String": isString, "Boolean": isBoolean,
	"ID": isID}

func newInputs(schema *ast.Schema, own map[string]func(text string) bool) inputs {
	all := inputs{}
	for name, def := range schema.Types {
		switch def.Kind {
		case ast.Scalar:
			fits, ok := builtIn[name]
			if !ok {
				good := own[name]
				fits = func(v any) bool { return isString(v) && (good == nil || good(v.(string))) } // isString has looked
			}
			all[name] = &input{fits: fits}
		case ast.Enum:
			all[name] = &input{fits: func(v any) bool {
				text, ok := v.(string)
				return ok && def.EnumValues.ForName(text) != nil
			}}
		case ast.InputObject:
			in := &input{fields: make(map[string]*ast.Type, len(def.Fields)), oneOf: def.Directives.ForName("oneOf") != nil}
			for _, f := range def.Fields {
				in.fields[f.Name] = f.Type
				if f.Type.NonNull && f.DefaultValue == nil {
					in.required = append(in.required, f.Name)
				}
			}
			all[name] = in
		case ast.Object, ast.Interface, ast.Union: // not input types
		}
	}
	return all
}

// checkVariables returns an error for the first variable whose value does not match its
// type.
func (all inputs) checkVariables(op *ast.OperationDefinition, values map[string]any) *gqlerror.Error {
	for _, def := range op.VariableDefinitions {
		if refusal := all.check(def.Type, values[def.Variable]); refusal != nil {
			refusal.Path = ast.Path{ast.PathName("variable"), ast.PathName(def.Variable)}
			return refusal
		}
	}
	return nil
}

// check checks a value recursively against its type. gqlparser has already refused null
// for non-null types.
func (all inputs) check(t *ast.Type, v any) *gqlerror.Error {
	if v == nil {
		return nil
	}
	if t.Elem != nil {
		return all.checkList(t.Elem, v)
	}
	in := all[t.NamedType]
	object, isObject := v.(map[string]any)
	switch {
	case in == nil:
		return misfit(t)
	case in.fields == nil && in.fits(v):
		return nil
	case in.fields == nil || !isObject:
		return misfit(t)
	case in.oneOf && !exactlyOne(object):
		return refuse(codeBadUserInput, "Exactly one field of a @oneOf input must be given, and not be null.")
	}
	for name, value := range object {
		field, known := in.fields[name]
		if !known {
			return misfit(t)
		}
		if refusal := all.check(field, value); refusal != nil {
			return refusal
		}
	}
	return nil
}

// checkList also accepts a single value, which is coerced to a list of one; gqlparser
// wraps it in a slice of its own type.
func (all inputs) checkList(elem *ast.Type, v any) *gqlerror.Error {
	list, ok := v.([]any)
	if !ok {
		r := reflect.ValueOf(v)
		if r.Kind() != reflect.Slice {
			return all.check(elem, v)
		}
		for i := range r.Len() {
			list = append(list, r.Index(i).Interface())
		}
	}
	for _, one := range list {
		if refusal := all.check(elem, one); refusal != nil {
			return refusal
		}
	}
	return nil
}

func misfit(t *ast.Type) *gqlerror.Error {
	return refuse(codeBadUserInput, "The value is not a valid "+t.Name()+".")
}

// isInt accepts 32-bit integers. Whole numbers are int64, both from variables and from
// default values.
func isInt(v any) bool {
	n, ok := v.(int64)
	return ok && n >= math.MinInt32 && n <= math.MaxInt32
}

func isFloat(v any) bool {
	switch v := v.(type) {
	case int64:
		return true
	case float64:
		return !math.IsInf(v, 0) && !math.IsNaN(v)
	case json.Number:
		_, err := v.Float64() // an error for ±Inf
		return err == nil
	}
	return false
}

func isString(v any) bool {
	text, ok := v.(string)
	return ok && strings.IndexByte(text, 0) < 0
}

func isBoolean(v any) bool { _, ok := v.(bool); return ok }

// isID accepts a string or a whole number of any length.
func isID(v any) bool {
	switch v := v.(type) {
	case int64:
		return true
	case string:
		return isString(v)
	case json.Number:
		return !strings.ContainsAny(string(v), ".eE")
	}
	return false
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

// refused converts the error of a budget into a GraphQL error.
func refused(err error) *gqlerror.Error {
	message, extensions := "The operation was refused.", map[string]any{"code": string(fault.CodeOf(err))}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		message = f.Message
		if f.RetryAfter > 0 {
			extensions[RetryAfterMs] = max(1, f.RetryAfter.Milliseconds())
		}
	}
	return &gqlerror.Error{Err: err, Message: message, Extensions: extensions}
}
