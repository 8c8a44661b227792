package storefront

import (
	"context"
	"slices"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

// DefaultPage is the default length of a page; MaxPage is the maximum.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// PageInput selects a page of a list, in the form of Relay connections.
type PageInput struct {
	First, Last   *int
	After, Before *string
}

// Page is a page of a list.
type Page[T any] struct {
	Nodes   []T
	Cursors []string
	HasNext bool
	HasPrev bool
	Total   int // length of the whole list
}

// SaleFilter selects sales for a buyer.
type SaleFilter struct {
	sale.Filter
	Viewer id.User // who also sees the private sales to which an access rule gives access; zero = none
}

// SaleOrder is the sort order of sales.
type SaleOrder struct {
	ByCreation bool // by creation instead of by start
	Descending bool
}

// Sales lists sales: active ones from memory, the others by page from the database.
func (s *Storefront) Sales(ctx context.Context, f SaleFilter, o SaleOrder, p PageInput) (Page[*sale.Sale], error) {
	snap, err := s.Catalog(ctx)
	if err != nil {
		return Page[*sale.Sale]{}, err
	}
	list, err := s.matching(ctx, snap, f)
	if err != nil {
		return Page[*sale.Sale]{}, err
	}
	rows, err := p.rows(o.Descending)
	if err != nil {
		return Page[*sale.Sale]{}, err
	}
	key := func(v *sale.Sale) cursor.Position { return cursor.Position{At: v.StartsAt, ID: v.ID.UUID()} }
	if o.ByCreation {
		key = func(v *sale.Sale) cursor.Position { return cursor.Position{At: v.CreatedAt, ID: v.ID.UUID()} }
	}
	var others sale.ArchivePage[*sale.Sale]
	if f.Archived() {
		if others, err = s.cfg.Catalog.ArchivedSales(ctx, snap, f.Filter, o.ByCreation, rows); err != nil {
			return Page[*sale.Sale]{}, unreadable(err)
		}
	}
	total := len(list) + others.Total
	return paginate(append(list, others.Rows...), total, rows, key), nil
}

func (s *Storefront) matching(ctx context.Context, snap *sale.Snapshot, f SaleFilter) (list []*sale.Sale,
	err error) {
	now := s.Now()
	q := typed.QueryOf(f.Search)
	for _, v := range snap.Sales {
		seen := f.Hidden
		if !seen {
			if seen, err = s.Sees(ctx, v, f.Viewer); err != nil {
				return nil, err
			}
		}
		if seen &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, v.StatusAt(now))) &&
			(f.StartsBefore.IsZero() || v.StartsAt.Before(f.StartsBefore)) &&
			(q.Line == "" || sale.Matches(v, q, f.Hidden)) &&
			(len(f.Phases) == 0 || slices.Contains(f.Phases, s.Phase(v, now))) {
			list = append(list, v)
		}
	}
	return list, nil
}

// GoodsSearch selects products.
type GoodsSearch struct {
	Text string // part of the name; "" = all names
	All  bool   // also those that are in no public sale, for operators
}

// Goods lists products, newest first.
func (s *Storefront) Goods(ctx context.Context, search GoodsSearch, p PageInput) (Page[*sale.Goods], error) {
	rows, err := p.rows(true)
	if err != nil {
		return Page[*sale.Goods]{}, err
	}
	found, err := s.cfg.Catalog.GoodsPage(ctx, search.Text, search.All, rows)
	if err != nil {
		return Page[*sale.Goods]{}, unreadable(err)
	}
	key := func(g *sale.Goods) cursor.Position { return cursor.Position{At: g.CreatedAt, ID: g.ID.UUID()} }
	return paginate(slices.Clone(found.Rows), found.Total, rows, key), nil
}

// rows selects one row more than a page, so that the page knows whether there are more.
func (p PageInput) rows(descending bool) (sale.Range, error) {
	size, backward, err := p.Size()
	if err != nil {
		return sale.Range{}, err
	}
	r := sale.Range{Descending: descending, Backward: backward, Limit: size + 1}
	if r.After, err = cursor.Parse(p.After, cursor.ParsePosition); err != nil {
		return sale.Range{}, err
	}
	r.Before, err = cursor.Parse(p.Before, cursor.ParsePosition)
	return r, err
}

// paginate sorts a list by (time, id) and returns a page of it: of all total rows, or of
// those around the page. Cursors contain the sort key, so that pages stay consistent while
// the list grows.
func paginate[T any](list []T, total int, r sale.Range, key func(T) cursor.Position) Page[T] {
	compare := func(a, b cursor.Position) int { // in the order of the list
		if r.Descending {
			return b.Compare(a)
		}
		return a.Compare(b)
	}
	slices.SortFunc(list, func(a, b T) int { return compare(key(a), key(b)) })
	lo, hi, size := 0, len(list), r.Limit-1
	if r.After != nil {
		for lo < hi && compare(key(list[lo]), *r.After) <= 0 {
			lo++
		}
	}
	if r.Before != nil {
		for hi > lo && compare(key(list[hi-1]), *r.Before) >= 0 {
			hi--
		}
	}
	page := Page[T]{Total: total}
	if r.Backward {
		lo = max(lo, hi-size)
	} else {
		hi = min(hi, lo+size)
	}
	page.HasPrev, page.HasNext = lo > 0 || r.After != nil, hi < len(list) || r.Before != nil
	page.Nodes = list[lo:hi]
	for _, node := range page.Nodes {
		page.Cursors = append(page.Cursors, key(node).String())
	}
	return page
}

// Size returns the length of the page, and whether it is taken from the end.
func (p PageInput) Size() (n int, backward bool, err error) {
	switch {
	case p.First != nil && p.Last != nil:
		return 0, false, fault.New(fault.BadInput, "Give first or last, not both.")
	case p.First != nil:
		n = *p.First
	case p.Last != nil:
		n, backward = *p.Last, true
	default:
		return DefaultPage, false, nil
	}
	if n < 1 || n > MaxPage {
		return 0, false, fault.New(fault.BadInput, "first and last must be between 1 and 100.")
	}
	return n, backward, nil
}
