package graph

import (
	"context"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"seckill/graph/guard"
	"seckill/graph/model"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/money"
)

func toMoney(a money.Amount) *model.Money {
	return &model.Money{Amount: a.Decimal(), CurrencyCode: a.Currency, FractionDigits: a.Digits()}
}

// paged is a page in the parts of a connection.
type paged[N, E any] struct {
	nodes []N
	edges []E
	info  *model.PageInfo
}

// toPage converts a page into the parts of a connection.
func toPage[T, N, E any](p storefront.Page[T], node func(T) N, edge func(node N, cursor string) E) paged[N, E] {
	out := paged[N, E]{nodes: make([]N, len(p.Nodes)), edges: make([]E, len(p.Nodes)),
		info: toPageInfo(p.Cursors, p.HasNext, p.HasPrev)}
	for i, n := range p.Nodes {
		out.nodes[i] = node(n)
		out.edges[i] = edge(out.nodes[i], p.Cursors[i])
	}
	return out
}

func pageOf[T any](nodes []T, cursor func(T) string, next, prev bool) storefront.Page[T] {
	p := storefront.Page[T]{Nodes: nodes, Cursors: make([]string, len(nodes)), HasNext: next, HasPrev: prev}
	for i, n := range nodes {
		p.Cursors[i] = cursor(n)
	}
	return p
}

// listing reads a list in pages.
type listing[T any] struct {
	first  int  // length of a page
	begun  bool // there is a page before
	read   func(ctx context.Context, limit int) ([]T, error)
	cursor func(T) string
	count  func(context.Context) (int, error)
}

// page returns a page and, if the query selects it, the total. It reads one more than is
// shown, to know whether another page follows.
func (l listing[T]) page(ctx context.Context) (p storefront.Page[T], total *int, err error) {
	list, err := l.read(ctx, l.first+1)
	if err != nil {
		return p, nil, err
	}
	p = pageOf(list[:min(len(list), l.first)], l.cursor, len(list) > l.first, l.begun)
	total, err = totalOf(ctx, l.count)
	return p, total, err
}

// totalOf returns the total of a connection; nil when the query does not select it.
func totalOf(ctx context.Context, count func(context.Context) (int, error)) (*int, error) {
	if !asked(ctx, "totalCount") {
		return nil, nil // not selected
	}
	total, err := count(ctx)
	return &total, err
}

func toPageInfo(cursors []string, next, prev bool) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: next, HasPreviousPage: prev}
	if len(cursors) > 0 {
		info.StartCursor, info.EndCursor = &cursors[0], &cursors[len(cursors)-1]
	}
	return info
}

func kindOf(snapshot bool) model.StreamEventKind {
	if snapshot {
		return model.StreamEventKindSnapshot
	}
	return model.StreamEventKindUpdate
}

// toRateLimit returns the cost of an operation and the remaining budget of its caller;
// nil without a budget.
func toRateLimit(c guard.Cost, now time.Time) *model.RateLimit {
	b := c.Budget
	if b == nil {
		return nil
	}
	missing := float64(b.Burst - b.Remaining)
	return &model.RateLimit{
		Burst: int(b.Burst), Cost: int(c.Requested), Remaining: int(b.Remaining), RestoreRate: b.RestoreRate,
		ResetAt: now.Add(time.Duration(missing / b.RestoreRate * float64(time.Second))),
	}
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// asked reports whether the current field selects a subfield: of the first name, in it one
// of the second, and so on.
func asked(ctx context.Context, names ...string) bool {
	fields := graphql.CollectFieldsCtx(ctx, nil)
	for depth, name := range names {
		at := slices.IndexFunc(fields, func(f graphql.CollectedField) bool { return f.Name == name })
		if at < 0 {
			return false
		}
		if depth < len(names)-1 {
			fields = graphql.CollectFields(graphql.GetOperationContext(ctx), fields[at].Selections, nil)
		}
	}
	return true
}

func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// orAbsent returns nil for an empty string.
func orAbsent(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
