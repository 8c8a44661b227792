package guard_test

import (
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/guard"
)

// FuzzDocument searches for documents that crash the guard or take too long.
func FuzzDocument(f *testing.F) {
	for _, document := range worst(schema) {
		f.Add(document)
	}
	for _, document := range []string{"{leaf}", "query($w:Where,$n:Int){by(where:$w) page(first:$n){edges{node{id}}}}", "mutation{one}", "subscription{tick}", "{__schema{types{name}}}"} {
		f.Add(document)
	}
	h := newHarness(f, guard.Options{Introspection: true})
	variables := map[string]any{"n": int64(3), "w": map[string]any{"id": "1"}}
	f.Fuzz(func(t *testing.T, document string) {
		if len(document) > 32<<10 {
			return
		}
		_, err := h.send(graphql.RawParams{Query: document, Variables: variables})
		if err != nil && code(err) == "" {
			t.Errorf("a refusal without a code: %v", err)
		}
	})
}
