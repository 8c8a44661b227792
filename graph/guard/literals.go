package guard

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Rules are the rules of validation; hand them to the executor. They are
// gqlparser's and what it forgets about literals, default values included:
// integers beyond 32 bits, objects for scalars and enums, and anything but good
// strings for the API's own scalars.
func (g *Guard) Rules() *rules.Rules {
	all := rules.NewDefaultRules()
	all.AddRule("LiteralsFit", func(observers *core.Events, addError core.AddErrFunc) {
		observers.OnValue(func(_ *core.Walker, v *ast.Value) {
			if v.Definition != nil && v.ExpectedType != nil && !g.inputs.literalFits(v) {
				addError(core.Message("The value is not a valid %s.", v.ExpectedType.String()), core.At(v.Position))
			}
		})
	})
	return all
}

func (all inputs) literalFits(v *ast.Value) bool {
	scalar := v.Definition.Kind == ast.Scalar
	_, ofSpec := builtIn[v.Definition.Name]
	switch v.Kind {
	case ast.Variable, ast.NullValue:
		return true // gqlparser has judged it
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
	case ast.FloatValue, ast.BooleanValue, ast.EnumValue: // judged as below
	}
	return !scalar || ofSpec
}
