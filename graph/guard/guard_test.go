package guard_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/guard"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `
directive @cost(weight: String!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = false) on FIELD_DEFINITION
type Query {
  leaf: Int
  node: Node
  nodes(ids: [ID!]!): [Node]! @listSize(slicingArguments: ["ids"])
  page(first: Int, last: Int): Page @listSize(assumedSize: 20, slicingArguments: ["first", "last"], sizedFields: ["edges"])
  by(where: Where, all: [Where!], deep: Deep): Int
  heavy(x: Int @cost(weight: "3")): Int @cost(weight: "7")
}
type Page { edges: [Edge!]! total: Int @cost(weight: "5") }
type Edge { node: Node }
type Node { id: ID! node: Node big: Big kids: [Node!]! @listSize(assumedSize: 20) }
type Big @cost(weight: "50") { id: ID! }
input Where @oneOf { id: ID name: String }
input Deep { list: [Deep!] where: Where }
type Mutation { one: Int two: Int nested: Node }
type Subscription { tick: Int }
`})

// harness runs operations as a transport does and returns the refusal, nil when the
// operation may run.
type harness struct {
	t       testing.TB
	exec    *executor.Executor
	guard   *guard.Guard
	budgets bool // budgets are on, and each check of an operation spends
}

func newHarness(t testing.TB, opts guard.Options) *harness {
	t.Helper()
	return newHarnessOn(t, schema, opts)
}

func newHarnessOn(t testing.TB, schema *ast.Schema, opts guard.Options) *harness {
	t.Helper()
	opts.Schema = schema
	g, err := guard.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	exec := executor.New(&graphql.ExecutableSchemaMock{
		SchemaFunc: func() *ast.Schema { return schema },
		ExecFunc: func(context.Context) graphql.ResponseHandler {
			return graphql.OneShot(&graphql.Response{Data: []byte(`{}`)})
		},
	})
	exec.SetQueryCache(g.Documents())
	exec.SetParserTokenLimit(g.MaxTokens())
	exec.SetDefaultRulesFn(g.Rules)
	exec.Use(g)
	return &harness{t: t, exec: exec, guard: g, budgets: opts.Spend != nil}
}

func (h *harness) send(p graphql.RawParams) (cost string, refusal *gqlerror.Error) {
	ctx := graphql.StartOperationTrace(context.Background())
	op, errs := h.exec.CreateOperationContext(ctx, &p)
	h.agree(p, op, errs)
	if len(errs) > 0 {
		return "", errs[0]
	}
	responses, ctx := h.exec.DispatchOperation(ctx, op)
	if resp := responses(ctx); string(resp.Data) != `{}` {
		h.t.Errorf("the answer is changed: %s", resp.Data)
	}
	return string(guard.CostOf(op).AppendJSON(nil)), nil
}

// agree checks that Recall and the executor prepare the same operation.
func (h *harness) agree(p graphql.RawParams, op *graphql.OperationContext, errs gqlerror.List) {
	if h.budgets {
		return
	}
	short := h.guard.Recall(&p)
	if short == nil {
		return
	}
	if refusal := h.guard.Charge(context.Background(), short); refusal != nil || len(errs) > 0 {
		if refusal == nil || len(errs) == 0 || code(refusal) != code(errs[0]) {
			h.t.Errorf("%s %v: the short way says %v, the long one %v", p.Query, p.Variables, refusal, errs)
		}
		return
	}
	if short.Doc != op.Doc || short.Operation != op.Operation || !reflect.DeepEqual(short.Variables, op.Variables) ||
		short.RawQuery != op.RawQuery {
		h.t.Errorf("%s %v: the short way has %v, the long one %v", p.Query, p.Variables, short.Variables, op.Variables)
	}
}

func (h *harness) run(document string, variables map[string]any) *gqlerror.Error {
	_, err := h.send(graphql.RawParams{Query: document, Variables: variables})
	return err
}

func code(err *gqlerror.Error) string {
	if err == nil {
		return ""
	}
	c, _ := err.Extensions["code"].(string)
	return c
}

func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if strings.Contains(format, "%") {
			fmt.Fprintf(&b, format, i)
		} else {
			b.WriteString(format)
		}
	}
	return b.String()
}

func nest(depth int) string {
	return "{" + strings.Repeat("node{", depth-1) + "id" + strings.Repeat("}", depth-1) + "}"
}

func TestOneOfInVariables(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{})
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	const where, all, deep = "query($v:Where){by(where:$v)}", "query($v:[Where!]){by(all:$v)}", "query($v:Deep){by(deep:$v)}"
	for name, c := range map[string]struct {
		document string
		value    any
		ok       bool
	}{
		"one field":             {where, object("id", "1"), true},
		"null":                  {where, nil, true},
		"no field":              {where, object(), false},
		"two fields":            {where, object("id", "1", "name", "n"), false},
		"a null field":          {where, object("id", nil), false},
		"a null beside another": {where, object("id", "1", "name", nil), false},
		"list":                  {all, []any{object("id", "1"), object("name", "n")}, true},
		"list with a bad one":   {all, []any{object("id", "1"), object()}, false},
		"a single one as list":  {all, object("id", "1", "name", "n"), false},
		"nested":                {deep, object("list", []any{object("where", object("id", "1"))}), true},
		"nested and bad":        {deep, object("list", []any{object("where", object())}), false},
	} {
		err := h.run(c.document, map[string]any{"v": c.value})
		if (err == nil) != c.ok || err != nil && code(err) != "BAD_USER_INPUT" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCacheIsNotFilledByStrangers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{})
	small, large := "{leaf}", "#"+strings.Repeat("x", 9<<10)+"\n{leaf}"
	for _, doc := range []string{small, large} {
		if err := h.run(doc, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := h.guard.Documents().Get(t.Context(), small); !ok {
		t.Error("a usual document is not kept")
	}
	if _, ok := h.guard.Documents().Get(t.Context(), large); ok {
		t.Error("a large document is kept")
	}
}
