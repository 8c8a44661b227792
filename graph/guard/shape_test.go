package guard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"seckill/graph/guard"
)

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
		"a stream":                       {"subscription{tick tick ...T} fragment T on Subscription{tick}", ""},
		"a stream under two names":       {"subscription{a:tick b:tick}", "GRAPHQL_VALIDATION_FAILED"},
		"two streams by fragment":        {"subscription{a:tick ...T} fragment T on Subscription{tick}", "GRAPHQL_VALIDATION_FAILED"},
		"two streams, one inline":        {"subscription{a:tick ...{tick}}", "GRAPHQL_VALIDATION_FAILED"},
		"a stream that may be skipped":   {"subscription($x:Boolean=false){tick @skip(if:$x)}", "GRAPHQL_VALIDATION_FAILED"},
		"a stream perhaps included":      {"subscription{...@include(if:false){tick}}", "GRAPHQL_VALIDATION_FAILED"},
		"a stream in a skipped fragment": {"subscription{...T @skip(if:true)} fragment T on Subscription{tick}", "GRAPHQL_VALIDATION_FAILED"},
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

// wide has 29 different selections on a Node.
const (
	few  = "id __typename node{id __typename} big{id __typename} x:node{id __typename}"
	wide = "id __typename node{" + few + "} x:node{" + few + "} big{id __typename}"
)

// chain defines n fragments, each of which spreads the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "fragment F%d on Query{leaf ...F%d} ", i, i+1)
	}
	fmt.Fprintf(&b, "fragment F%d on Query{leaf}", n-1)
	return b.String()
}

// bomb doubles in each of its fragments: a thousand bytes expand to a billion fields.
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
