package transport

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
)

// describe records which operation a context serves.
func describe(ctx context.Context, op *graphql.OperationContext) {
	if o := telemetry.OperationFrom(ctx); o != nil {
		o.Field, o.Name = rootField(op.Operation.SelectionSet, ""), op.Operation.Name
	}
}

// several stands for different root fields.
const several = "several"

// rootField returns the name of the root field of a selection that is reached with found.
// Names are of the schema, so that they are few.
func rootField(set ast.SelectionSet, found string) string {
	for _, selection := range set {
		name := found
		switch s := selection.(type) {
		case *ast.Field:
			name = s.Name
		case *ast.InlineFragment:
			name = rootField(s.SelectionSet, found)
		case *ast.FragmentSpread:
			name = rootField(s.Definition.SelectionSet, found)
		}
		if found != "" && name != found {
			return several
		}
		found = name
	}
	return found
}

func endSpan(span tracing.Span, op *telemetry.Operation) {
	if span.On() {
		telemetry.DescribeSpan(span, op)
	}
	span.End(nil)
}

// note records the code of a response with errors.
func note(ctx context.Context, resp *graphql.Response) {
	if resp != nil && len(resp.Errors) > 0 {
		telemetry.OperationFrom(ctx).Fail(codeOf(resp.Errors[0]))
	}
}
