package guard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"seckill/graph/guard"
)

var typed = gqlparser.MustLoadSchema(&ast.Source{Input: `
enum Colour { RED GREEN }
scalar Decimal
input Point { x: Int! y: Float = 1.5 colour: Colour tags: [String!] next: Point amount: Decimal one: One }
input One @oneOf { id: ID name: String }
type Query {
  int(v: Int): Int
  must(v: Int!): Int
  float(v: Float): Int
  string(v: String): Int
  boolean(v: Boolean): Int
  id(v: ID): Int
  colour(v: Colour): Int
  decimal(v: Decimal): Int
  ints(v: [Int]): Int
  grid(v: [[Int]]): Int
  full(v: [Int!]!): Int
  amounts(v: [Decimal!]): Int
  colours(v: [Colour!]): Int
  point(v: Point): Int
  one(v: One): Int
}`})

// coercions are values that the specification accepts and refuses (October 2021, §3.5,
// §3.9 to §3.11), one per line: types, value as a literal, value in JSON; "-" where the
// form does not exist. Enum values are JSON strings too; Decimal is a string by its
// description in the schema; no string may contain a zero byte.
const taken = `
int     | 0                    | 0
int     | -0                   | -0
int     | 2147483647           | 2147483647
int     | -2147483648          | -2147483648
int     | null                 | null
must    | 1                    | 1
float   | 1                    | 1
float   | 1.5                  | 1.5
float   | -1e3                 | -1e3
float   | 2147483648           | 2147483648
string  | "1"                  | "1"
string  | ""                   | ""
string  | """block"""          | "block"
boolean | true                 | true
boolean | false                | false
id      | "a"                  | "a"
id      | 4                    | 4
id      | -                    | 12345678901234567890
colour  | RED                  | "RED"
decimal | "12.50"              | "12.50"
ints    | [1, 2, 3]            | [1, 2, 3]
ints    | [1, null]            | [1, null]
ints    | []                   | []
ints    | null                 | null
ints    | 1                    | 1
grid    | [[1], [2, 3]]        | [[1], [2, 3]]
grid    | 1                    | -
full    | [1]                  | [1]
full    | 1                    | 1
amounts | ["1", "2"]           | ["1", "2"]
amounts | "1"                  | "1"
colours | [RED, GREEN]         | ["RED", "GREEN"]
colours | RED                  | "RED"
point   | {x: 1}               | {"x": 1}
point   | {x: 1, y: null}      | {"x": 1, "y": null}
point   | {x: 1, colour: RED}  | {"x": 1, "colour": "RED"}
point   | {x: 1, tags: "a"}    | {"x": 1, "tags": "a"}
point   | {x: 1, next: {x: 2}} | {"x": 1, "next": {"x": 2}}
one     | {id: "1"}            | {"id": "1"}
point   | {x: 1, one: {id: 1}} | {"x": 1, "one": {"id": 1}}
`

const refusedValues = `
int     | 2147483648           | 2147483648
int     | -2147483649          | -2147483649
int     | 9223372036854775807  | 9223372036854775807
int     | 9223372036854775808  | 9223372036854775808
int     | 1.0                  | 1.0
int     | 1.5                  | 1.5
int     | 1e3                  | 1e3
int     | "1"                  | "1"
int     | true                 | true
int     | RED                  | -
int     | {}                   | {}
int     | {v: 1}               | {"v": 1}
int     | [1]                  | [1]
must    | null                 | null
float   | "1.5"                | "1.5"
float   | "NaN"                | "NaN"
float   | "Infinity"           | "Infinity"
float   | -                    | 1e999
float   | true                 | true
float   | {}                   | {}
string  | 1                    | 1
string  | 1.5                  | 1.5
string  | true                 | true
string  | RED                  | -
string  | {}                   | {}
string  | "a\u0000"            | "a\u0000"
id      | "a\u0000"            | "a\u0000"
string  | ["a"]                | ["a"]
boolean | 1                    | 1
boolean | 0                    | 0
boolean | "true"               | "true"
boolean | "false"              | "false"
boolean | TRUE                 | -
boolean | {}                   | {}
id      | 1.5                  | 1.5
id      | -                    | 1e3
id      | true                 | true
id      | RED                  | -
id      | {}                   | {}
colour  | "RED"                | -
colour  | BLUE                 | "BLUE"
colour  | red                  | "red"
colour  | 1                    | 1
colour  | true                 | true
colour  | {}                   | {}
colour  | [RED]                | ["RED"]
decimal | 1                    | 1
decimal | 1.5                  | 1.5
decimal | true                 | true
decimal | RED                  | -
decimal | {}                   | {}
decimal | "bad"                | "bad"
decimal | "\u0000"             | "\u0000"
amounts | ["1", "\u0000"]      | ["1", "\u0000"]
point   | {x: 1, tags: ["a", "\u0000"]} | {"x": 1, "tags": ["a", "\u0000"]}
point   | {x: 1, tags: "\u0000"} | {"x": 1, "tags": "\u0000"}
point   | {x: 1, next: {x: 2, amount: "\u0000"}} | {"x": 1, "next": {"x": 2, "amount": "\u0000"}}
point   | {x: 1, one: {name: "a\u0000b"}} | {"x": 1, "one": {"name": "a\u0000b"}}
one     | {id: "a\u0000b"}     | {"id": "a\u0000b"}
amounts | ["1", "bad"]         | ["1", "bad"]
decimal | ["1"]                | ["1"]
ints    | [1, "b", true]       | [1, "b", true]
ints    | ["1"]                | ["1"]
ints    | [2147483648]         | [2147483648]
ints    | "1"                  | "1"
ints    | 2147483648           | 2147483648
grid    | [[1], ["2"]]         | [[1], ["2"]]
full    | [1, null]            | [1, null]
full    | null                 | null
amounts | [1]                  | [1]
amounts | 1                    | 1
colours | ["RED"]              | -
colours | [RED, BLUE]          | ["RED", "BLUE"]
colours | red                  | "red"
point   | {}                   | {}
point   | {x: null}            | {"x": null}
point   | {x: "1"}             | {"x": "1"}
point   | {x: 2147483648}      | {"x": 2147483648}
point   | {x: 1, y: "2"}       | {"x": 1, "y": "2"}
point   | {x: 1, z: 2}         | {"x": 1, "z": 2}
point   | {x: 1, __typename: "Point"} | {"x": 1, "__typename": "Point"}
point   | {x: 1, x: 2}         | -
point   | {x: 1, colour: "RED"} | {"x": 1, "colour": "red"}
point   | {x: 1, tags: [1]}    | {"x": 1, "tags": [1]}
point   | {x: 1, tags: [null]} | {"x": 1, "tags": [null]}
point   | {x: 1, next: {x: 1.5}} | {"x": 1, "next": {"x": 1.5}}
point   | {x: 1, amount: 5}    | {"x": 1, "amount": 5}
point   | {x: 1, one: {}}      | {"x": 1, "one": {}}
point   | "x"                  | "x"
point   | 5                    | 5
point   | [{x: 1}]             | [{"x": 1}]
one     | {}                   | {}
one     | {id: "1", name: "a"} | {"id": "1", "name": "a"}
one     | {id: null}           | {"id": null}
one     | {id: true}           | {"id": true}
`

// fieldTypes maps fields to the type of their argument v, for variables.
var fieldTypes = func() map[string]string {
	types := map[string]string{}
	for _, f := range typed.Query.Fields {
		if arg := f.Arguments.ForName("v"); arg != nil {
			types[f.Name] = arg.Type.String()
		}
	}
	return types
}()

func TestValuesAreCoercedAsTheSpecificationSays(t *testing.T) {
	t.Parallel()
	h := newHarnessOn(t, typed, guard.Options{Scalars: map[string]func(string) bool{"Decimal": func(text string) bool { return text != "bad" }}})
	check := func(table, wantLiteral, wantVariable string) {
		for line := range strings.Lines(strings.TrimSpace(table)) {
			cells := strings.SplitN(line, "|", 3)
			field, literal, variable := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
			if literal != "-" {
				for _, document := range []string{
					fmt.Sprintf("{%s(v: %s)}", field, literal),
					fmt.Sprintf("query($v: %s = %s) {%s(v: $v)}", fieldTypes[field], literal, field),
				} {
					if err := h.run(document, nil); code(err) != wantLiteral {
						t.Errorf("%s: %v", document, err)
					}
				}
			}
			if variable == "-" {
				continue
			}
			err := h.run(fmt.Sprintf("query($v: %s) {%s(v: $v)}", fieldTypes[field], field), map[string]any{"v": fromJSON(t, variable)})
			if got := code(err); got != wantVariable && !(got == "GRAPHQL_VALIDATION_FAILED" && wantVariable != "") {
				t.Errorf("%s, variable %s: %v", field, variable, err)
			}
		}
	}
	check(taken, "", "")
	check(refusedValues, "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT")
}

func TestPlainValuesTakeTheShortWay(t *testing.T) {
	t.Parallel()
	h := newHarnessOn(t, typed, guard.Options{})
	for document, variables := range map[string]string{
		"query($v: Int!) {int(v: $v)}":          `{"v": 1}`,
		"query($v: [Colour!]) {colours(v: $v)}": `{"v": ["RED", "GREEN"]}`,
		"query($v: Point) {point(v: $v)}":       `{"v": {"x": 1, "colour": "RED", "tags": ["a"], "next": {"x": 2}, "one": {"id": "1"}}}`,
		"{int}":                                 `{}`,
	} {
		values, _ := fromJSON(t, variables).(map[string]any)
		if err := h.run(document, values); err != nil {
			t.Fatal(err)
		}
		if h.guard.Recall(&graphql.RawParams{Query: document, Variables: values}) == nil {
			t.Errorf("%s %s went the long way", document, variables)
		}
	}
	for document, variables := range map[string]string{
		"query($v: Int = 3) {int(v: $v)}": `{}`,
		"query($v: [Int]) {ints(v: $v)}":  `{"v": 1}`,
		"query($v: Float) {float(v: $v)}": `{"v": 12345678901234567890}`,
	} {
		values, _ := fromJSON(t, variables).(map[string]any)
		if err := h.run(document, values); err != nil {
			t.Fatal(err)
		}
		if h.guard.Recall(&graphql.RawParams{Query: document, Variables: values}) != nil {
			t.Errorf("%s %s needs more than the short way does", document, variables)
		}
	}
}

// fromJSON decodes numbers as the transports do: int64 where they are whole and fit.
func fromJSON(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return whole(v)
}

func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return v
}

func TestVariablesThatAreMissingOrTooMany(t *testing.T) {
	t.Parallel()
	h := newHarnessOn(t, typed, guard.Options{})
	for document, want := range map[string]string{
		"query($v: Int) {int(v: $v)}":                "",
		"query($v: Int = 3) {must(v: $v)}":           "", // a non-null default makes it safe
		"query($v: Int!) {must(v: $v)}":              "GRAPHQL_VALIDATION_FAILED",
		"query($v: Int) {must(v: $v)}":               "GRAPHQL_VALIDATION_FAILED",
		"query($v: Int = null) {must(v: $v)}":        "GRAPHQL_VALIDATION_FAILED",
		"query($v: String) {int(v: $v)}":             "GRAPHQL_VALIDATION_FAILED",
		"query($v: [Int]) {int(v: $v)}":              "GRAPHQL_VALIDATION_FAILED",
		"query($v: Int) {ints(v: $v)}":               "GRAPHQL_VALIDATION_FAILED",
		"query($v: Int) {point(v: {x: $v})}":         "GRAPHQL_VALIDATION_FAILED",
		"query($v: ID) {one(v: {id: $v})}":           "GRAPHQL_VALIDATION_FAILED",
		"query($v: Query) {int}":                     "GRAPHQL_VALIDATION_FAILED",
		"query($v: Nothing) {int}":                   "GRAPHQL_VALIDATION_FAILED",
		"query($v: Int, $v: Int) {int(v: $v)}":       "GRAPHQL_VALIDATION_FAILED",
		"query {int(v: $v)}":                         "GRAPHQL_VALIDATION_FAILED",
		"query($v: Int) {int}":                       "GRAPHQL_VALIDATION_FAILED",
		"{int(v: 1, v: 2)}":                          "GRAPHQL_VALIDATION_FAILED",
		"{must}":                                     "GRAPHQL_VALIDATION_FAILED",
		"{int @skip(if: 1)}":                         "GRAPHQL_VALIDATION_FAILED",
		"{int(v: 01)}":                               "GRAPHQL_PARSE_FAILED",
		"query($v: Boolean!) {int @include(if: $v)}": "GRAPHQL_VALIDATION_FAILED",
	} {
		if err := h.run(document, nil); code(err) != want {
			t.Errorf("%s: %v, want %q", document, err, want)
		}
	}
	if _, err := h.send(graphql.RawParams{Query: "{int}", Variables: map[string]any{"unknown": "x"}}); err != nil {
		t.Errorf("a variable that is never used: %v", err)
	}
}

func TestDefaultsDoNotLetNullThrough(t *testing.T) {
	t.Parallel()
	h := newHarness(t, guard.Options{})
	null := map[string]any{"x": nil}
	for _, document := range []string{
		`query($x:Boolean=true){leaf @skip(if:$x)}`,
		`query($x:Boolean=true){node{id @include(if:$x)}}`,
		`query($x:Boolean=true){...@skip(if:$x){leaf}}`,
		`query($x:Boolean=true){leaf ...F @skip(if:$x)} fragment F on Query{node{id}}`,
		`query($x:Boolean=true){...F} fragment F on Query{node{id @skip(if:$x)}}`,
		`query($x:[ID!]=["a"]){nodes(ids:$x){id}}`,
		`query($x:ID="a"){nodes(ids:["b",$x]){id}}`,
		`query($x:Int){sorted(by:{limit:$x})}`,
		`query($x:Int){sorted(top:$x)}`,
		`subscription($x:Int=1){ticks(n:$x)}`,
	} {
		on := h
		if strings.Contains(document, "sorted") || strings.Contains(document, "ticks") {
			on = newHarnessOn(t, defaults, guard.Options{})
		}
		if err := on.run(document, nil); err != nil {
			t.Errorf("%s without a value: %v", document, err)
		}
		if err := on.run(document, null); code(err) != "BAD_USER_INPUT" {
			t.Errorf("%s with null: %v", document, err)
		}
	}
	for _, document := range []string{`query($x:Int){page(first:$x){total}}`, `query($x:Int=1){heavy(x:$x)}`} {
		if err := h.run(document, null); err != nil {
			t.Errorf("%s where null may stand: %v", document, err)
		}
	}
}

// defaults is a schema with default values in non-null positions.
var defaults = gqlparser.MustLoadSchema(&ast.Source{Input: `
directive @cost(weight: String!) on FIELD_DEFINITION
type Query { sorted(by: By, top: Int! = 3): Int }
input By { limit: Int! = 5 }
type Subscription { ticks(n: Int!): Int }
`})

func TestAContextThatIsUsedAgainHoldsNothingOfItsLastCaller(t *testing.T) {
	t.Parallel()
	h := newHarnessOn(t, typed, guard.Options{})
	const document = "query($v: Int!) {int(v: $v)}"
	values := func(text string) map[string]any { v, _ := fromJSON(t, text).(map[string]any); return v }
	if err := h.run(document, values(`{"v": 1}`)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		first := h.guard.Recall(&graphql.RawParams{
			Query: document, Variables: values(`{"v": 1}`), Headers: http.Header{"Accept-Language": {"zh"}}, Extensions: map[string]any{"x": true},
		})
		if first == nil {
			t.Fatal("not recalled")
		}
		h.guard.Release(first)
		second := h.guard.Recall(&graphql.RawParams{Query: document, Variables: values(`{"v": 2}`)})
		if second.Headers != nil || second.Extensions != nil || !reflect.DeepEqual(second.Variables, values(`{"v": 2}`)) {
			t.Fatalf("headers %v, extensions %v, variables %v", second.Headers, second.Extensions, second.Variables)
		}
	}
}
