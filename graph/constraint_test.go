package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph"
	"seckill/graph/generated"
	"seckill/graph/guard"
	"seckill/graph/scalar"
	"seckill/graph/transport"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// door returns the API without any domain services, for a principal with a role, or
// without a principal. A request that passes constraints and directives panics, and the
// response is UNAVAILABLE.
func door(t *testing.T, role auth.Role) (http.Handler, *ast.Schema) {
	t.Helper()
	resolver := &graph.Resolver{}
	exec := generated.NewExecutableSchema(generated.Config{Resolvers: resolver, Directives: resolver.Directives()})
	g, err := guard.New(guard.Options{Schema: exec.Schema(), Scalars: scalar.Good()})
	if err != nil {
		t.Fatal(err)
	}
	h := transport.NewHandler(transport.Options{
		Schema: exec, Guard: g, Sockets: transport.NewSockets(transport.SocketOptions{}),
		Extensions: []graphql.HandlerExtension{graph.NewConstraints(exec.Schema(), resolver)},
		Recover:    func(context.Context, any) error { return fault.New(fault.Unavailable, "nothing behind it") },
	})
	if role == "" {
		return h, exec.Schema()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), &auth.Principal{UserID: id.User(uuid.New()), Role: role})))
	}), exec.Schema()
}

// broken is an argument value with one violated rule inside.
type broken struct {
	value any
	rule  string
	at    []string
}

// maker creates values of the schema's types.
type maker struct{ schema *ast.Schema }

// enum is written without quotes in a literal.
type enum string

// good returns a value that violates no rule; d are the directives of its position.
func (m maker) good(t *ast.Type, d ast.DirectiveList) any {
	if t.Elem != nil {
		return []any{m.good(t.Elem, d)}
	}
	def := m.schema.Types[t.NamedType]
	switch {
	case def.Kind == ast.Enum:
		return enum(def.EnumValues[0].Name)
	case def.Kind == ast.InputObject:
		object := map[string]any{}
		for _, f := range def.Fields {
			if f.Type.NonNull || def.Directives.ForName("oneOf") != nil && len(object) == 0 {
				object[f.Name] = m.good(f.Type, f.Directives)
			}
		}
		return object
	}
	switch t.NamedType {
	case "Int":
		return max(1, ruleOf(d, "min"))
	case "Float":
		return 1.5
	case "Boolean":
		return false
	case "DateTime":
		return "2030-01-01T00:00:00.000Z"
	case "CurrencyCode":
		return "CNY"
	}
	switch textOf(d, "format") {
	case "email":
		return "a@example.com"
	case "uri":
		return "/x"
	}
	return strings.Repeat("1", max(1, ruleOf(d, "minLength"))) // matches every pattern of the schema
}

// all returns every possible violation in a value of a type.
func (m maker) all(t *ast.Type, d ast.DirectiveList, at []string) []broken {
	if t.Elem != nil {
		var out []broken
		for _, b := range m.all(t.Elem, d, append(slices.Clone(at), "0")) {
			out = append(out, broken{[]any{b.value}, b.rule, b.at})
		}
		return out
	}
	if def := m.schema.Types[t.NamedType]; def.Kind == ast.InputObject {
		var out []broken
		for _, f := range def.Fields {
			for _, b := range m.all(f.Type, f.Directives, append(slices.Clone(at), f.Name)) {
				object := m.good(t, nil).(map[string]any)
				if def.Directives.ForName("oneOf") != nil {
					clear(object)
				}
				object[f.Name] = b.value
				out = append(out, broken{object, b.rule, b.at})
			}
		}
		return out
	}
	var out []broken
	add := func(rule string, v any) { out = append(out, broken{v, rule, at}) }
	for _, name := range []string{"min", "max", "minLength", "maxLength"} {
		n := ruleOf(d, name)
		switch {
		case !has(d, name):
		case name == "min":
			add(name, n-1)
		case name == "max":
			add(name, n+1)
		case name == "minLength" && n > 0:
			add(name, strings.Repeat("1", n-1))
		case name == "maxLength":
			add(name, strings.Repeat("é", n+1))
		}
	}
	within := max(1, ruleOf(d, "minLength"))
	if has(d, "pattern") {
		add("pattern", strings.Repeat("~", within))
	}
	if has(d, "format") {
		add("format", strings.Repeat("~ ", within))
	}
	return out
}

func has(d ast.DirectiveList, name string) bool {
	c := d.ForName("constraint")
	return c != nil && c.Arguments.ForName(name) != nil
}

func textOf(d ast.DirectiveList, name string) string {
	if !has(d, name) {
		return ""
	}
	return d.ForName("constraint").Arguments.ForName(name).Value.Raw
}

func ruleOf(d ast.DirectiveList, name string) int {
	n, _ := strconv.Atoi(textOf(d, name))
	return n
}

// literal formats a value as a GraphQL literal.
func literal(v any) string {
	switch v := v.(type) {
	case enum:
		return string(v)
	case []any:
		return "[" + literal(v[0]) + "]"
	case map[string]any:
		var fields []string
		for name, f := range v {
			fields = append(fields, name+":"+literal(f))
		}
		sort.Strings(fields)
		return "{" + strings.Join(fields, " ") + "}"
	}
	text, _ := json.Marshal(v)
	return string(text)
}

func TestConstraintsHoldForLiteralsAndVariablesAlike(t *testing.T) {
	t.Parallel()
	h, schema := door(t, auth.Admin)
	m := maker{schema}
	n := 0
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation} {
		for _, f := range root.Fields {
			for _, arg := range f.Arguments {
				for _, b := range append(m.all(arg.Type, arg.Directives, []string{arg.Name}), broken{value: m.good(arg.Type, arg.Directives)}) {
					n++
					for form, answer := range map[string]string{
						"literal":  m.ask(t, h, root, f, map[string]any{arg.Name: b.value}, false),
						"variable": m.ask(t, h, root, f, map[string]any{arg.Name: b.value}, true),
					} {
						rule, at := ruleIn(answer)
						wantAt := strings.Join(b.at, ".")
						if rule != b.rule || rule != "" && root == schema.Mutation && at != wantAt {
							t.Errorf("%s.%s, %s, %s of %s: %.300s", root.Name, f.Name, form, b.rule, wantAt, answer)
						}
					}
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d values", n)
	}
	t.Logf("%d values, each twice", n)
}

func TestAuthorisationComesBeforeEveryOtherCheck(t *testing.T) {
	t.Parallel()
	anonymous, schema := door(t, "")
	customer, _ := door(t, auth.Customer)
	m := maker{schema}
	n := 0
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation} {
		for _, f := range root.Fields {
			guarded := f.Directives.ForName("auth")
			if guarded == nil {
				continue
			}
			asks := []map[string]any{{}} // without a violation: the role is checked before a rate limit
			for _, arg := range f.Arguments {
				for _, b := range m.all(arg.Type, arg.Directives, nil) {
					asks = append(asks, map[string]any{arg.Name: b.value})
				}
			}
			for _, given := range asks {
				n++
				if answer := m.ask(t, anonymous, root, f, given, true); !strings.Contains(answer, `"UNAUTHENTICATED"`) {
					t.Errorf("%s.%s %v, not signed in: %.300s", root.Name, f.Name, given, answer)
				}
				if guarded.ArgumentMap(nil)["role"] == string(auth.Customer) {
					continue
				}
				if answer := m.ask(t, customer, root, f, given, true); !strings.Contains(answer, `"FORBIDDEN"`) {
					t.Errorf("%s.%s %v, as a customer: %.300s", root.Name, f.Name, given, answer)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d requests", n)
	}
}

// ruleIn returns the rule that an answer names, and its path in a payload.
func ruleIn(answer string) (rule, at string) {
	var a struct {
		Data map[string]*struct {
			UserErrors []struct {
				Rule string
				Path []string
			}
		}
		Errors []struct{ Message string }
	}
	if json.Unmarshal([]byte(answer), &a) == nil {
		for _, payload := range a.Data {
			if payload != nil && len(payload.UserErrors) == 1 {
				rule, _, _ = strings.Cut(payload.UserErrors[0].Rule, ":")
				return rule, strings.Join(payload.UserErrors[0].Path, ".")
			}
		}
	}
	for _, e := range a.Errors {
		if _, rest, found := strings.Cut(e.Message, " breaks the rule "); found {
			rule, _, _ = strings.Cut(rest, ":")
			return strings.TrimSuffix(rule, "."), ""
		}
	}
	return "", ""
}

// ask sends a root field with the given arguments and valid ones for the rest.
func (m maker) ask(t *testing.T, h http.Handler, root *ast.Definition, f *ast.FieldDefinition, given map[string]any, variables bool) string {
	t.Helper()
	var heads, args []string
	values := map[string]any{}
	for _, arg := range f.Arguments {
		v, ok := given[arg.Name]
		if !ok && !arg.Type.NonNull {
			continue
		}
		if !ok {
			v = m.good(arg.Type, arg.Directives)
		}
		if variables {
			heads, args = append(heads, fmt.Sprintf("$%s:%s", arg.Name, arg.Type)), append(args, fmt.Sprintf("%s:$%s", arg.Name, arg.Name))
			values[arg.Name] = v
		} else {
			args = append(args, arg.Name+":"+literal(v))
		}
	}
	within := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return "(" + strings.Join(list, " ") + ")"
	}
	document := strings.ToLower(root.Name) + within(heads) + "{" + f.Name + within(args)
	switch {
	case root == m.schema.Mutation:
		document += "{userErrors{path ...on InputError{rule}}}"
	case m.schema.Types[f.Type.Name()].IsCompositeType():
		document += "{__typename}"
	}
	body, err := json.Marshal(map[string]any{"query": document + "}", "variables": values})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), "GRAPHQL_VALIDATION_FAILED") {
		t.Errorf("%s: %s", document, w.Body)
	}
	return w.Body.String()
}
