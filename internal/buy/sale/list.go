package sale

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	entgoods "seckill/ent/goods"
	"seckill/ent/predicate"
	entsale "seckill/ent/sale"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

// public are the statuses of sales that buyers may see, beside those that were cancelled
// after that.
var public = append(slices.Clone(running), string(Ended))

// Range selects rows of a list: those after After and before Before, in its order, at most
// Limit from its start or, Backward, from its end.
type Range struct {
	After, Before *cursor.Position
	Descending    bool
	Backward      bool
	Limit         int
}

// Filter selects sales.
type Filter struct {
	Phases   []Phase
	Statuses []Status
	Search   string // part of the title
	Hidden   bool   // include sales that buyers may not see
	// StartsBefore is the time before which they open; zero = any.
	StartsBefore time.Time
}

// Archived reports whether the filter may match sales that are not in the snapshot. Buyers
// see only those that are over.
func (f Filter) Archived() bool {
	return f.Hidden || len(f.Phases) == 0 || slices.Contains(f.Phases, PhaseEnded) ||
		slices.Contains(f.Phases, PhaseCancelled)
}

// ArchivePage is a page of rows that are not in the snapshot.
type ArchivePage[T any] struct {
	Rows  []T
	Total int // of all pages
}

// ArchivedSales returns sales that are not in a snapshot, by their start or their creation,
// and how many match the filter in all.
func (c *Catalog) ArchivedSales(ctx context.Context, s *Snapshot, f Filter, byCreation bool,
	r Range) (ArchivePage[*Sale], error) {
	key := fmt.Sprintf("sales %v %t %s", f, byCreation, r)
	return archived(ctx, c, key, func(ctx context.Context) (page ArchivePage[*Sale], err error) {
		page.Rows, page.Total, err = c.store.list(ctx, s.ids(), f, byCreation, r, c.clock.Now())
		return page, err
	})
}

// GoodsPage returns products, by their creation, and how many have text in their name. all
// includes those that are in no sale that buyers may see.
func (c *Catalog) GoodsPage(ctx context.Context, text string, all bool, r Range) (ArchivePage[*Goods], error) {
	key := fmt.Sprintf("products %q %t %s", text, all, r)
	return archived(ctx, c, key, func(ctx context.Context) (page ArchivePage[*Goods], err error) {
		page.Rows, page.Total, err = c.store.listGoods(ctx, text, all, r)
		return page, err
	})
}

func (r Range) String() string {
	text := fmt.Sprintf("%t %t %d", r.Descending, r.Backward, r.Limit)
	for _, p := range []*cursor.Position{r.After, r.Before} {
		if p != nil {
			text += fmt.Sprintf(" %d %s", p.At.UnixNano(), p.ID)
		} else {
			text += " -"
		}
	}
	return text
}

func (s *Store) list(ctx context.Context, except []id.Sale, f Filter, byCreation bool, r Range, now time.Time) ([]*Sale, int, error) { //nolint:revive // what the page asks for, and the time of it
	where := append(f.predicates(now), entsale.IDNotIn(except...))
	total, err := s.db.Sale.Query().Where(where...).Count(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("count sales: %w", err)
	}
	at := entsale.FieldStartsAt
	if byCreation {
		at = entsale.FieldCreatedAt
	}
	rows, err := s.db.Sale.Query().Where(where...).Where(r.rows(at)).Limit(r.Limit).All(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list sales: %w", err)
	}
	sales, err := s.complete(ctx, rows)
	return sales, total, err
}

func (s *Store) listGoods(ctx context.Context, text string, all bool, r Range) ([]*Goods, int, error) {
	var where []predicate.Goods
	if q := typed.QueryOf(text); q.Line != "" {
		where = append(where, goodsBy(q, all))
	}
	if !all {
		where = append(where, inSales(isPublic))
	}
	total, err := s.db.Goods.Query().Where(where...).Count(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("count goods: %w", err)
	}
	rows, err := s.db.Goods.Query().Where(where...).Where(r.rows(entgoods.FieldCreatedAt)).Limit(r.Limit).All(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list goods: %w", err)
	}
	return collect.Map(rows, goodsFromRow), total, nil
}

// Offered reports whether a product is in a sale that buyers may see.
func (s *Store) Offered(ctx context.Context, goodsID id.Goods) (bool, error) {
	found, err := s.db.Goods.Query().Where(entgoods.ID(goodsID), inSales(isPublic)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("read sales of goods %s: %w", goodsID, err)
	}
	return found, nil
}

// isPublic matches the sales of which Sale.Public is true, without private ones.
func isPublic(s *entsql.Selector) {
	status := s.C(entsale.FieldStatus)
	s.Where(entsql.EQ(s.C(entsale.FieldPrivate), false))
	s.Where(entsql.Or(entsql.In(status, public...),
		entsql.And(entsql.EQ(status, string(Cancelled)), entsql.EQ(s.C(entsale.FieldWasPublic), true))))
}

// rows orders a list by a time and the id and applies the bounds: on the indexed column
// first, then on the id for equal times.
func (r Range) rows(at string) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		t, id := s.C(at), s.C(entsale.FieldID)
		later := func(p *cursor.Position) *entsql.Predicate {
			return entsql.And(entsql.GTE(t, p.At), entsql.Or(entsql.GT(t, p.At), entsql.GT(id, p.ID)))
		}
		earlier := func(p *cursor.Position) *entsql.Predicate {
			return entsql.And(entsql.LTE(t, p.At), entsql.Or(entsql.LT(t, p.At), entsql.LT(id, p.ID)))
		}
		from, to := r.After, r.Before
		if r.Descending {
			from, to = to, from
		}
		if from != nil {
			s.Where(later(from))
		}
		if to != nil {
			s.Where(earlier(to))
		}
		if r.Descending != r.Backward {
			s.OrderBy(entsql.Desc(t), entsql.Desc(id))
		} else {
			s.OrderBy(entsql.Asc(t), entsql.Asc(id))
		}
	}
}

func (f Filter) predicates(now time.Time) []predicate.Sale {
	var ps []predicate.Sale
	if !f.Hidden {
		ps = append(ps, isPublic)
	}
	if len(f.Statuses) > 0 {
		in := collect.Map(f.Statuses, func(status Status) entsale.Status { return entsale.Status(status) })
		ps = append(ps, entsale.StatusIn(in...))
	}
	if q := typed.QueryOf(f.Search); q.Line != "" {
		ps = append(ps, salesBy(q, f.Hidden))
	}
	if !f.StartsBefore.IsZero() {
		ps = append(ps, entsale.StartsAtLT(f.StartsBefore))
	}
	if len(f.Phases) > 0 {
		phases := []predicate.Sale{entsale.IDIn()}
		for _, phase := range f.Phases {
			phases = append(phases, inPhase(phase, now))
		}
		ps = append(ps, entsale.Or(phases...))
	}
	return ps
}

// inPhase matches the sales that Sale.Phase puts into a phase, for those without a gate and
// with stock: no other sale is looked for in the database.
func inPhase(phase Phase, now time.Time) predicate.Sale {
	planned := entsale.StatusNotIn(entsale.StatusENDED, entsale.StatusCANCELLED, entsale.StatusPAUSED)
	switch phase {
	case PhaseCancelled:
		return entsale.StatusEQ(entsale.StatusCANCELLED)
	case PhaseEnded:
		return entsale.And(entsale.StatusNEQ(entsale.StatusCANCELLED), entsale.Or(entsale.StatusEQ(entsale.StatusENDED),
			entsale.EndsAtLTE(now)))
	case PhaseUpcoming:
		return entsale.And(planned, entsale.StartsAtGT(now), entsale.EndsAtGT(now))
	case PhaseLive:
		return entsale.And(planned, entsale.StartsAtLTE(now), entsale.EndsAtGT(now))
	case PhasePaused, PhaseSoldOut:
	}
	return entsale.IDIn()
}

func (s *Snapshot) ids() []id.Sale {
	return collect.Map(s.Sales, func(v *Sale) id.Sale { return v.ID })
}

// Matches reports whether a sale is one that a search looks for: by a part of its title, or
// by its public id or slug; for staff also by its id in another system.
func Matches(v *Sale, q typed.Query, staff bool) bool {
	title, key := strings.ToLower(v.Title), strings.ToLower(q.Key)
	return strings.Contains(title, strings.ToLower(q.Line)) || strings.Contains(title, strings.ToLower(q.Plain)) ||
		v.Slug == key || v.ID.Public() == key || staff && q.Key != "" && v.ExternalReference == q.Key
}

// salesBy is Matches for stored sales.
func salesBy(q typed.Query, staff bool) predicate.Sale {
	key := strings.ToLower(q.Key)
	match := []predicate.Sale{entsale.TitleContainsFold(q.Line), entsale.TitleContainsFold(q.Plain), entsale.Slug(key)}
	if saleID, err := id.ParseSale(key); err == nil {
		match = append(match, entsale.ID(saleID))
	}
	if staff {
		match = append(match, entsale.ExternalReference(q.Key))
	}
	return entsale.Or(match...)
}

// goodsBy matches products by a part of the name, or by the public id; for staff also by the
// SKU and the id in another system.
func goodsBy(q typed.Query, staff bool) predicate.Goods {
	match := []predicate.Goods{entgoods.NameContainsFold(q.Line), entgoods.NameContainsFold(q.Plain)}
	if goodsID, err := id.ParseGoods(strings.ToLower(q.Key)); err == nil {
		match = append(match, entgoods.ID(goodsID))
	}
	if staff {
		match = append(match, entgoods.SkuEqualFold(q.Key), entgoods.ExternalID(q.Key))
	}
	return entgoods.Or(match...)
}
