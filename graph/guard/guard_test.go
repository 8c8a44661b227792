package guard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/guard"
	"seckill/internal/fault"
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

// run sends one operation as a transport does and returns the error that it was
// refused with, nil when it may run.
type harness struct {
	t     testing.TB
	exec  *executor.Executor
	guard *guard.Guard
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
	exec.Use(g)
	return &harness{t: t, exec: exec, guard: g}
}

func (h *harness) send(p graphql.RawParams) (cost string, refusal *gqlerror.Error) {
	ctx := graphql.StartOperationTrace(context.Background())
	op, errs := h.exec.CreateOperationContext(ctx, &p)
	if len(errs) > 0 {
		return "", errs[0]
	}
	responses, ctx := h.exec.DispatchOperation(ctx, op)
	if resp := responses(ctx); string(resp.Data) != `{}` {
		h.t.Errorf("the answer is changed: %s", resp.Data)
	}
	return string(h.guard.Cost(op).AppendJSON(nil)), nil
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

func TestShapeOfDocumentsIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{Limits: guard.Limits{Aliases: 40}})
	strict := newHarness(t, guard.Options{})
	const tooComplex = guard.CodeTooComplex
	for name, c := range map[string]struct{ document, want string }{
		"depth 8":                        {nest(8), ""},
		"depth 9":                        {nest(9), tooComplex},
		"depth 9 through a fragment":     {"{node{node{node{node{node{...F}}}}}} fragment F on Node{node{node{node{id}}}}", tooComplex},
		"inline fragments do not nest":   {"{" + strings.Repeat("...{", 20) + "leaf" + strings.Repeat("}", 20) + "}", ""},
		"300 nodes":                      {"{" + repeat(10, "a%d:node{"+wide+"} ") + "}", ""},
		"310 nodes":                      {"{" + repeat(10, "a%d:node{"+wide+" id} ") + "}", tooComplex},
		"311 nodes through fragments":    {"{" + repeat(10, "a%d:node{...F} ") + "leaf} fragment F on Node{" + wide + "}", tooComplex},
		"the same field 63 times":        {"{" + repeat(63, "leaf ") + "}", ""},
		"the same field 64 times":        {"{" + repeat(64, "leaf ") + "}", tooComplex},
		"the same field in merged sets":  {"{" + repeat(8, "node{"+repeat(9, "id ")+"} ") + "}", tooComplex},
		"1,000 tokens":                   {"query(" + repeat(248, "$v%d:Int ") + "){leaf}", "GRAPHQL_VALIDATION_FAILED"},
		"1,001 tokens":                   {"query(" + repeat(250, "$v%d:Int ") + "){leaf}", tooComplex},
		"10 aliases":                     {"{" + repeat(10, "a%d:leaf ") + "}", ""},
		"11 aliases":                     {"{" + repeat(11, "a%d:leaf ") + "}", tooComplex},
		"11 aliases in different fields": {"{node{" + repeat(6, "a%d:id ") + "} x:node{" + repeat(5, "b%d:id ") + "}}", tooComplex},
		"20 fragments":                   {"{...F0} " + chain(20), ""},
		"21 fragments":                   {"{...F0} " + chain(21), tooComplex},
		"21 operations":                  {repeat(21, "query Q%d{leaf} "), tooComplex},
		"one mutation":                   {"mutation{one __typename}", ""},
		"two mutations":                  {"mutation{one two}", tooComplex},
		"two mutations by alias":         {"mutation{a:one b:one}", tooComplex},
		"two mutations by fragment":      {"mutation{...F ...{two}} fragment F on Mutation{one}", tooComplex},
		"fields below are no mutations":  {"mutation{nested{id node{id}}}", ""},
		"a long name":                    {"{" + strings.Repeat("x", 65) + "}", tooComplex},
		"a long argument name":           {"{leaf(" + strings.Repeat("x", 65) + ":1)}", tooComplex},
		"cycle":                          {"{...A} fragment A on Query{...B} fragment B on Query{...A}", tooComplex},
		"bomb in an unused fragment":     {"{leaf} " + bomb(), tooComplex},
		"parse error":                    {"{leaf", "GRAPHQL_PARSE_FAILED"},
		"unknown field":                  {"{nope}", "GRAPHQL_VALIDATION_FAILED"},
		"missing fragment":               {"{...Gone}", "GRAPHQL_VALIDATION_FAILED"},
	} {
		if c.document == "" {
			continue
		}
		with := h
		if strings.Contains(name, "alias") {
			with = strict
		}
		if err := with.run(c.document, nil); code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// wide are 29 selections on a Node, no two of them the same.
const (
	few  = "id __typename node{id __typename} big{id __typename} x:node{id __typename}"
	wide = "id __typename node{" + few + "} x:node{" + few + "} big{id __typename}"
)

// chain defines n fragments, each spreading the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "fragment F%d on Query{leaf ...F%d} ", i, i+1)
	}
	fmt.Fprintf(&b, "fragment F%d on Query{leaf}", n-1)
	return b.String()
}

// bomb doubles in each of its fragments: a thousand bytes stand for a billion
// fields.
func bomb() string {
	var b strings.Builder
	for i := range 19 {
		fmt.Fprintf(&b, "fragment B%d on Query{...B%d ...B%d ...B%d} ", i, i+1, i+1, i+1)
	}
	b.WriteString("fragment B19 on Query{leaf}")
	return b.String()
}

func TestIntrospectionIsBoundedOnItsOwn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/introspection.graphql")
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, guard.Options{Introspection: true})
	if err := h.run(string(text), nil); err != nil {
		t.Errorf("the usual introspection query: %v", err)
	}
	deep := "{__schema{types{" + strings.Repeat("ofType{", 25) + "name" + strings.Repeat("}", 25) + "}}}"
	if err := h.run(deep, nil); code(err) != guard.CodeTooComplex {
		t.Errorf("deep introspection: %v", err)
	}
	wide := "{__schema{types{" + repeat(19, "...F ") + "}}} fragment F on __Type{" + repeat(40, "name ") + "}"
	if err := h.run(wide, nil); code(err) != guard.CodeTooComplex {
		t.Errorf("wide introspection: %v", err)
	}
}

func TestCostFollowsTheSchema(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{Limits: guard.Limits{Cost: 1_000_000}})
	n := func(v any) map[string]any { return map[string]any{"n": v} }
	for _, c := range []struct {
		document  string
		variables map[string]any
		want      int
	}{
		{"{leaf}", nil, 0},
		{"{node{id}}", nil, 1},
		{"{node{node{id}}}", nil, 2},
		{"{heavy}", nil, 7},
		{"{heavy(x:1)}", nil, 10},
		{"{node{big{id}}}", nil, 51},
		{"{page{total}}", nil, 6},
		{"{page{edges{node{id}}}}", nil, 41},
		{"{page(first:3){edges{node{id}}}}", nil, 7},
		{"{page(first:3,last:100){edges{node{id}}}}", nil, 201},
		{"query($n:Int){page(first:$n){edges{node{id}}}}", n(int64(5)), 11},
		{"query($n:Int){page(first:$n){edges{node{id}}}}", nil, 41},
		{"query($n:Int){page(first:$n){edges{node{id}}}}", n(nil), 41},
		{"query($n:Int=2){page(first:$n){edges{node{id}}}}", nil, 5},
		{"query($n:Int){page(first:$n){edges{node{kids{id}}}}}", n(int64(10)), 1 + 10*(1+1+20)},
		{`{nodes(ids:["a","b","c"]){id}}`, nil, 3},
		{`query($n:[ID!]!){nodes(ids:$n){id node{id}}}`, n([]any{"a", "b"}), 4},
		{"{node{kids{kids{id}}}}", nil, 1 + 20*(1+20)},
		{"query($n:Int){page(first:$n){edges{node{id}}}}", n(int64(-5)), 41},
		{"{...F} fragment F on Query{page{...P}} fragment P on Page{edges{node{id}}}", nil, 41},
	} {
		got, err := h.send(graphql.RawParams{Query: c.document, Variables: c.variables})
		if err != nil {
			t.Errorf("%s: %v", c.document, err)
			continue
		}
		want := fmt.Sprintf(`{"requestedQueryCost":%d,"maximumAvailable":1000000}`, c.want)
		if got != want {
			t.Errorf("%s: %s, want %d", c.document, got, c.want)
		}
	}
}

func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{})
	const doc = "query($n:Int){page(first:$n){edges{node{kids{id}}}}}"
	if err := h.run(doc, map[string]any{"n": int64(100)}); err != nil {
		t.Errorf("100 pages: %v", err)
	}
	for _, n := range []any{int64(1000), int64(1 << 62)} {
		if err := h.run(doc, map[string]any{"n": n}); code(err) != guard.CodeTooComplex {
			t.Errorf("%v pages: %v", n, err)
		}
	}
	if err := h.run("{node{kids{kids{kids{kids{kids{kids{id}}}}}}}}", nil); code(err) != guard.CodeTooComplex {
		t.Errorf("nested lists: %v", err)
	}
}

func TestBudgetIsSpentAndShown(t *testing.T) {
	t.Parallel()
	var spent int64
	h := newHarness(t, guard.Options{Spend: func(_ context.Context, cost int64) (guard.Budget, error) {
		if spent+cost > 60 {
			return guard.Budget{}, fault.New(fault.RateLimited, "Slow down.")
		}
		spent += cost
		return guard.Budget{Burst: 60, Remaining: 60 - spent, RestoreRate: 1}, nil
	}})
	got, err := h.send(graphql.RawParams{Query: "{node{big{id}}}"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"requestedQueryCost":51,"maximumAvailable":5000,"throttleStatus":{"burst":60,"remaining":9,"restoreRate":1}}`
	if got != want {
		t.Errorf("got %s", got)
	}
	refused := h.run("{node{big{id}}}", nil)
	if code(refused) != "RATE_LIMITED" || refused.Message != "Slow down." || fault.CodeOf(refused) != fault.RateLimited {
		t.Errorf("over the budget: %v", refused)
	}
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

func TestOnlyTrustedDocumentsRunAndOthersAreNotParsed(t *testing.T) {
	t.Parallel()
	const trusted, other = "query T{leaf}", "{node{id}}"
	h := newHarness(t, guard.Options{Trusted: guard.NewManifest(trusted), TrustedOnly: true})
	byHash := func(hash string) map[string]any {
		return map[string]any{"persistedQuery": map[string]any{"version": int64(1), "sha256Hash": hash}}
	}
	for name, c := range map[string]struct {
		query      string
		extensions map[string]any
		want       string
	}{
		"by hash":                    {"", byHash(guard.Hash(trusted)), ""},
		"by hash and text":           {trusted, byHash(guard.Hash(trusted)), ""},
		"by text":                    {trusted, nil, ""},
		"by documentId":              {"", map[string]any{"documentId": "sha256:" + guard.Hash(trusted)}, ""},
		"by bare documentId":         {"", map[string]any{"documentId": guard.Hash(trusted)}, ""},
		"unknown hash":               {"", byHash(guard.Hash(other)), guard.CodeUnknownHash},
		"unknown hash with its text": {other, byHash(guard.Hash(other)), guard.CodeUnknownHash},
		"text under another's hash":  {other, byHash(guard.Hash(trusted)), "BAD_USER_INPUT"},
		"untrusted text":             {other, nil, guard.CodeNotTrusted},
		"not even a document":        {"{{{{", nil, guard.CodeNotTrusted},
		"empty":                      {"", nil, guard.CodeNotTrusted},
	} {
		_, err := h.send(graphql.RawParams{Query: c.query, Extensions: c.extensions})
		if code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	open := newHarness(t, guard.Options{Trusted: guard.NewManifest(trusted)})
	if _, err := open.send(graphql.RawParams{Query: other, Extensions: byHash(guard.Hash(other))}); err != nil {
		t.Errorf("development, hash and text: %v", err)
	}
	if _, err := open.send(graphql.RawParams{Extensions: byHash(guard.Hash(other))}); code(err) != guard.CodeUnknownHash {
		t.Errorf("development, unknown hash: %v", err)
	}
}

func TestManifestIsCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{"unknown field": "{nope}", "too deep": nest(9), "not a document": "{", "too dear": "{node{kids{kids{kids{kids{id}}}}}}"} {
		if _, err := guard.New(guard.Options{Schema: schema, Trusted: guard.NewManifest(document)}); err == nil {
			t.Errorf("%s was trusted", name)
		}
	}
	if _, err := guard.ParseManifest([]byte(`{"abc":"{leaf}"}`)); err == nil {
		t.Error("a wrong hash was taken")
	}
	m, err := guard.ParseManifest(fmt.Appendf(nil, `{%q:"{leaf}"}`, guard.Hash("{leaf}")))
	if err != nil || m[guard.Hash("{leaf}")] != "{leaf}" {
		t.Errorf("%v %v", m, err)
	}
}

// worst are documents of at most 32 kB that are as hard as they get.
func worst(s *ast.Schema) map[string]string {
	const most = 32 << 10
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (most-len(head)-len(tail))/len(part)) + tail
	}
	pairs := "{" + repeat(10, "a%d:leaf ") + repeat(140, "node{id} ") + "}"
	unknown := "{" + repeat(240, "unknown_field_with_a_long_name_%03d ") + "}"
	spreads := "{" + repeat(20, "...F%d ") + "}" + repeat(20, "fragment F%d on Query{leaf node{id node{id}}} ")
	long := "{" + repeat(8, strings.Repeat("n", 60)+"%03d ") + "}"
	types := "{" + repeat(8, "...on "+strings.Repeat("N", 60)+"%03d{__typename} ") + "}"
	var fields, all strings.Builder
	for _, f := range s.Query.Fields {
		if len(f.Arguments) == 0 && !strings.HasPrefix(f.Name, "__") {
			fields.WriteString(f.Name + " ")
		}
	}
	for name, t := range s.Types {
		if t.Kind == ast.Object && all.Len() < 4000 {
			all.WriteString("...on " + name + "{__typename} ")
		}
	}
	args := "{" + repeat(120, "by(where:{idd:1}) ") + "}"
	return map[string]string{
		"bomb":                            "{...B0}" + bomb(),
		"brackets":                        fill("", "{", ""),
		"lists":                           fill("{leaf(x:", "[", ""),
		"comments":                        fill("", "#\n", "{leaf}"),
		"one comment":                     fill("#", "x", "\n{leaf}"),
		"one string":                      fill(`{by(where:{name:"`, "x", `"})}`),
		"escapes":                         fill(`{by(where:{name:"`, `\u0041`, `"})}`),
		"block string":                    fill(`{by(where:{name:"""`, "\n x", `"""})}`),
		"block string, indented":          fill(`{by(where:{name:"""`, "\n                x", `"""})}`),
		"block string, quotes":            fill(`{by(where:{name:"""`, `\"""`, `"""})}`),
		"fields":                          fill("{", "leaf ", "}"),
		"merging pairs":                   pairs,
		"merging through spreads":         spreads,
		"unknown fields":                  unknown,
		"long unknown fields":             long,
		"long unknown types":              types,
		"unknown input fields":            args,
		"known fields without selections": "{" + strings.Repeat(fields.String(), 40) + "}",
		"spreads on every type":           "{" + all.String() + "}",
		"merging typenames":               "{" + repeat(290, "__typename ") + "}",
		"merging nested":                  "{" + repeat(7, "node{"+repeat(20, "node{id} ")+"} ") + "}",
		"directives":                      fill("{leaf ", "@skip(if:true) ", "}"),
		"variables":                       "query(" + repeat(160, "$v%d:Int ") + "){leaf}",
		"operations":                      repeat(20, "query Q%d{"+strings.Repeat("leaf ", 40)+"} "),
		"operations with spreads":         repeat(15, "query Q%d{...F0} ") + chain(20),
		"zero bytes":                      fill("", "\x00", ""),
		"invalid UTF-8":                   fill(`{by(where:{name:"`, "\xff", `"})}`),
		"spaces":                          fill("", " ", "{leaf}"),
		"numbers":                         fill("{heavy(x:", "1", ")}"),
	}
}

// Any document is decided within 10 ms, nested-fragment bombs within 1 ms, on
// the schema of these tests and on that of the product. The best of several
// runs counts: other work on the machine must not fail the test.
func TestAnyDocumentIsDecidedQuickly(t *testing.T) {
	for on, s := range map[string]*ast.Schema{"small schema": schema, "product": productSchema(t)} {
		for name, document := range worst(s) {
			limit := 10 * time.Millisecond * slowdown
			if name == "bomb" {
				limit = time.Millisecond * slowdown
			}
			best := time.Hour
			var err *gqlerror.Error
			for range max(2, 10/slowdown) {
				h := newHarnessOn(t, s, guard.Options{Introspection: true})
				start := time.Now()
				err = h.run(document, nil)
				best = min(best, time.Since(start))
			}
			t.Logf("%-14s%-26s%-12v%s", on, name, best, code(err))
			if best > limit {
				t.Errorf("%s (%d bytes) takes %v", name, len(document), best)
			}
		}
	}
}

func productSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("../schema/*.graphqls")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schema: %v", err)
	}
	var sources []*ast.Source
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: name, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
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
