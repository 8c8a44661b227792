package storefront

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/sale"
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

// SaleFilter selects sales.
type SaleFilter = sale.Filter

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
	list := s.matching(snap, f)
	key := func(v *sale.Sale) (time.Time, uuid.UUID) { return v.StartsAt, v.ID }
	if o.ByCreation {
		key = func(v *sale.Sale) (time.Time, uuid.UUID) { return v.CreatedAt, v.ID }
	}
	var others sale.ArchivePage[*sale.Sale]
	if f.Archived() {
		rows, err := p.rows(o.Descending)
		if err != nil {
			return Page[*sale.Sale]{}, err
		}
		if others, err = s.catalog.ArchivedSales(ctx, snap, f, o.ByCreation, rows); err != nil {
			return Page[*sale.Sale]{}, unreadable(err)
		}
	}
	total := len(list) + others.Total
	return paginate(append(list, others.Rows...), total, p, o.Descending, key)
}

// matching returns the active sales that match a filter.
func (s *Storefront) matching(snap *sale.Snapshot, f SaleFilter) (list []*sale.Sale) {
	now := s.Now()
	search := strings.ToLower(f.Search)
	for _, v := range snap.Sales {
		if (f.Hidden || v.Public()) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, v.Status)) &&
			(search == "" || strings.Contains(strings.ToLower(v.Title), search)) &&
			(len(f.Phases) == 0 || slices.Contains(f.Phases, s.Phase(v, now))) {
			list = append(list, v)
		}
	}
	return list
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
	found, err := s.catalog.GoodsPage(ctx, search.Text, search.All, rows)
	if err != nil {
		return Page[*sale.Goods]{}, unreadable(err)
	}
	return paginate(slices.Clone(found.Rows), found.Total, p, true, func(g *sale.Goods) (time.Time, uuid.UUID) { return g.CreatedAt, g.ID })
}

// rows selects one row more than a page, so that the page knows whether there are more.
func (p PageInput) rows(descending bool) (sale.Range, error) {
	size, backward, err := p.size()
	if err != nil {
		return sale.Range{}, err
	}
	r := sale.Range{Descending: descending, Backward: backward, Limit: size + 1}
	for cursor, at := range map[*string]**sale.Position{p.After: &r.After, p.Before: &r.Before} {
		if cursor == nil {
			continue
		}
		key, err := readCursor(*cursor)
		if err != nil {
			return sale.Range{}, err
		}
		if *at, err = positionOf(key); err != nil {
			return sale.Range{}, err
		}
	}
	return r, nil
}

// paginate sorts a list by (time, id) and returns a page of it: of all total rows, or of
// those around the page. Cursors contain the sort key, so that pages stay consistent while
// the list grows.
func paginate[T any](list []T, total int, p PageInput, descending bool, key func(T) (time.Time, uuid.UUID)) (Page[T], error) {
	size, backward, err := p.size()
	if err != nil {
		return Page[T]{}, err
	}
	slices.SortFunc(list, func(a, b T) int {
		c := strings.Compare(cursorKey(key(a)), cursorKey(key(b)))
		if descending {
			return -c
		}
		return c
	})
	lo, hi := 0, len(list)
	beyond := func(i int, cursor string) int { // compares element i with a cursor, in list order
		c := cmp.Compare(cursorKey(key(list[i])), cursor)
		if descending {
			return -c
		}
		return c
	}
	if p.After != nil {
		c, err := readCursor(*p.After)
		if err != nil {
			return Page[T]{}, err
		}
		for lo < hi && beyond(lo, c) <= 0 {
			lo++
		}
	}
	if p.Before != nil {
		c, err := readCursor(*p.Before)
		if err != nil {
			return Page[T]{}, err
		}
		for hi > lo && beyond(hi-1, c) >= 0 {
			hi--
		}
	}
	page := Page[T]{Total: total}
	if backward {
		lo = max(lo, hi-size)
	} else {
		hi = min(hi, lo+size)
	}
	page.HasPrev, page.HasNext = lo > 0 || p.After != nil, hi < len(list) || p.Before != nil
	page.Nodes = list[lo:hi]
	for i := lo; i < hi; i++ {
		page.Cursors = append(page.Cursors, writeCursor(cursorKey(key(list[i]))))
	}
	return page, nil
}

func (p PageInput) size() (n int, backward bool, err error) {
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

// cursorTime is the time in a cursor.
const cursorTime = "20060102150405.000000000"

// cursorKey returns a text that sorts like (time, id).
func cursorKey(t time.Time, u uuid.UUID) string { return t.UTC().Format(cursorTime) + u.String() }

// positionOf parses a cursorKey.
func positionOf(key string) (*sale.Position, error) {
	at, err := time.Parse(cursorTime, key[:len(cursorTime)])
	if err != nil {
		return nil, errCursor()
	}
	u, err := uuid.Parse(key[len(cursorTime):])
	if err != nil {
		return nil, errCursor()
	}
	return &sale.Position{At: at, ID: u}, nil
}

func errCursor() error { return fault.New(fault.BadInput, "Invalid cursor.") }

func writeCursor(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func readCursor(cursor string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) != len(cursorTime)+36 {
		return "", errCursor()
	}
	return string(raw), nil
}
