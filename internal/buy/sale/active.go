package sale

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/ent/predicate"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

const (
	// recentFor is how long an ended or cancelled sale stays in memory after its end: longer
	// than payment windows, retries with idempotency keys, and open pages.
	recentFor = 7 * 24 * time.Hour
	// maxRecent bounds the settled sales in memory, the last to end first.
	maxRecent = 200
)

// running are the statuses of sales that are on sale or will be.
var running = []any{string(Scheduled), string(Preheated), string(Live), string(Paused)}

var over = []any{string(Ended), string(Cancelled)}

// isActive matches the sales that are kept in memory: on sale or soon, ended with orders that
// have not ended, and the last ones that ended within recentFor.
func isActive(now time.Time) predicate.Sale {
	since := now.Add(-recentFor)
	return func(s *entsql.Selector) {
		selected := func(where func(t *entsql.SelectTable) *entsql.Predicate) *entsql.Selector {
			t := entsql.Table(entsale.Table)
			return entsql.Dialect(s.Dialect()).Select(t.C(entsale.FieldID)).From(t).Where(where(t))
		}
		onSale := selected(func(t *entsql.SelectTable) *entsql.Predicate {
			return entsql.In(t.C(entsale.FieldStatus),
				running...)
		})
		unsettled := selected(func(t *entsql.SelectTable) *entsql.Predicate {
			return entsql.And(entsql.EQ(t.C(entsale.FieldStatus), string(Ended)), entsql.IsNull(t.C(entsale.FieldSettledAt)),
				entsql.GT(t.C(entsale.FieldEndsAt), since))
		})
		last := selected(func(t *entsql.SelectTable) *entsql.Predicate {
			return entsql.And(entsql.In(t.C(entsale.FieldStatus), over...), entsql.GT(t.C(entsale.FieldEndsAt), since))
		}).OrderBy(entsql.Desc(entsale.FieldEndsAt)).Limit(maxRecent)
		recent := selected(func(t *entsql.SelectTable) *entsql.Predicate { return entsql.In(t.C(entsale.FieldID), last) })
		// A union, because Postgres answers conditions joined by OR by reading the whole table.
		s.Where(entsql.In(s.C(entsale.FieldID), onSale.Union(unsettled).Union(recent)))
	}
}

// Version identifies a version of the catalogue in memory: it changes when a sale or
// product enters or leaves it or a revision grows.
type Version struct {
	Sales, SaleRevisions, Goods, GoodsRevisions int64
}

// figures are a count and a sum of revisions.
type figures []struct {
	Count int64         `json:"count"`
	Sum   sql.NullInt64 `json:"sum"`
}

// Version reads the version of the active sales and their products with two aggregate
// queries.
func (s *Store) Version(ctx context.Context, now time.Time) (Version, error) {
	var sales, goods figures
	err := s.db.Sale.Query().Where(isActive(now)).Aggregate(ent.Count(), ent.As(ent.Sum(entsale.FieldRevision), "sum")).
		Scan(ctx, &sales)
	if err != nil {
		return Version{}, fmt.Errorf("read catalogue version: %w", err)
	}
	err = s.db.Goods.Query().Where(inSales(isActive(now))).
		Aggregate(ent.Count(), ent.As(ent.Sum(entgoods.FieldRevision), "sum")).Scan(ctx, &goods)
	if err != nil {
		return Version{}, fmt.Errorf("read catalogue version: %w", err)
	}
	if len(sales) != 1 || len(goods) != 1 {
		return Version{}, fmt.Errorf("read catalogue version: %d and %d rows", len(sales), len(goods))
	}
	return Version{sales[0].Count, sales[0].Sum.Int64, goods[0].Count, goods[0].Sum.Int64}, nil
}

// inSales matches products that are in a sale of which of is true.
func inSales(of predicate.Sale) predicate.Goods {
	return func(s *entsql.Selector) {
		item := entsql.Table(saleitem.Table)
		s.Where(entsql.In(s.C(entgoods.FieldID), entsql.Dialect(s.Dialect()).Select(item.C(saleitem.FieldGoodsID)).From(item).
			Where(entsql.In(item.C(saleitem.FieldSaleID), saleIDs(s.Dialect(), of)))))
	}
}

func saleIDs(dialect string, of predicate.Sale) *entsql.Selector {
	t := entsql.Table(entsale.Table)
	ids := entsql.Dialect(dialect).Select(t.C(entsale.FieldID)).From(t)
	of(ids)
	return ids
}

// Active reads the sales that are kept in memory, with their items and products.
func (s *Store) Active(ctx context.Context, now time.Time) ([]*Sale, error) {
	sales, err := s.read(ctx, isActive(now))
	if err != nil {
		return nil, err
	}
	return sales, s.addPreparers(ctx, sales)
}

// All reads every sale with its items and products.
func (s *Store) All(ctx context.Context) ([]*Sale, error) { return s.read(ctx) }

func (s *Store) read(ctx context.Context, of ...predicate.Sale) ([]*Sale, error) {
	rows, err := s.db.Sale.Query().Where(of...).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sales: %w", err)
	}
	return s.complete(ctx, rows)
}

// completeAtOnce is how many sales are completed with one query: each is an argument.
const completeAtOnce = 1000

// complete reads the items and products of sales.
func (s *Store) complete(ctx context.Context, rows []*ent.Sale) ([]*Sale, error) {
	sales := make([]*Sale, 0, len(rows))
	products := map[id.Goods]*Goods{}
	for some := range slices.Chunk(rows, completeAtOnce) {
		ids := collect.Map(some, func(row *ent.Sale) id.Sale { return row.ID })
		items, err := s.db.SaleItem.Query().Where(saleitem.SaleIDIn(ids...)).Order(ent.Asc(saleitem.FieldPosition)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read sale items: %w", err)
		}
		goods, err := s.db.Goods.Query().Where(inSales(entsale.IDIn(ids...))).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read goods: %w", err)
		}
		for _, g := range goods {
			if products[g.ID] == nil { // sales share their products
				products[g.ID] = goodsFromRow(g)
			}
		}
		sales = append(sales, assemble(some, items, products)...)
	}
	return sales, nil
}

func assemble(rows []*ent.Sale, items []*ent.SaleItem, products map[id.Goods]*Goods) []*Sale {
	sales := make([]*Sale, len(rows))
	indexByID := make(map[id.Sale]int, len(rows))
	for i, row := range rows {
		sales[i] = saleFromRow(row)
		indexByID[row.ID] = i
	}
	for _, item := range items {
		if i, ok := indexByID[item.SaleID]; ok {
			sales[i].Items = append(sales[i].Items, itemFromRow(rows[i], item, products[item.GoodsID]))
		}
	}
	return sales
}
