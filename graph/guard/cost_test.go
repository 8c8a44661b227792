package guard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
)

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
		{`{nodes(ids:"a"){id}}`, nil, 1},
		{`query($n:[ID!]!){nodes(ids:$n){id}}`, n("a"), 1},
		{`query($n:[ID!]!="a"){nodes(ids:$n){id}}`, nil, 1},
		{`query($n:ID!){nodes(ids:[$n,"b"]){id}}`, n("a"), 2},
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
	for _, n := range []any{int64(1000), int64(1<<31 - 1)} {
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
		if spent+cost > 170 {
			return guard.Budget{}, fault.New(fault.RateLimited, "Slow down.")
		}
		spent += cost
		return guard.Budget{Burst: 170, Remaining: 170 - spent, RestoreRate: 1}, nil
	}})
	got, err := h.send(graphql.RawParams{Query: "{node{big{id}}}"})
	if err != nil {
		t.Fatal(err)
	}
	// 100 points for a document that is not cached, and 51 for the operation
	want := `{"requestedQueryCost":51,"maximumAvailable":5000,"throttleStatus":{"burst":170,"remaining":19,"restoreRate":1}}`
	if got != want {
		t.Errorf("got %s", got)
	}
	refused := h.run("{node{big{id}}}", nil)
	if code(refused) != "RATE_LIMITED" || refused.Message != "Slow down." || fault.CodeOf(refused) != fault.RateLimited {
		t.Errorf("over the budget: %v", refused)
	}
}
