package sale

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/money"
)

// Store reads sales and goods from the database.
type Store struct{ db *ent.Client }

// NewStore returns a store on db.
func NewStore(db *ent.Client) *Store { return &Store{db: db} }

// Version tells whether anything in the catalogue changed: it differs when a
// sale or a goods was added or a revision grew.
type Version struct {
	Sales, Revisions, Goods int64
}

// Version reads the version of the catalogue: two small aggregates.
func (s *Store) Version(ctx context.Context) (Version, error) {
	var v Version
	var row []struct {
		Count int64         `json:"count"`
		Sum   sql.NullInt64 `json:"sum"`
	}
	err := s.db.Sale.Query().Aggregate(ent.Count(), ent.As(ent.Sum(entsale.FieldRevision), "sum")).Scan(ctx, &row)
	if err != nil {
		return v, fmt.Errorf("read catalogue version: %w", err)
	}
	if len(row) == 1 {
		v.Sales, v.Revisions = row[0].Count, row[0].Sum.Int64
	}
	goods, err := s.db.Goods.Query().Count(ctx)
	if err != nil {
		return v, fmt.Errorf("read catalogue version: %w", err)
	}
	v.Goods = int64(goods)
	return v, nil
}

// All reads every sale with its items and goods, and every goods.
func (s *Store) All(ctx context.Context) ([]*Sale, []*Goods, error) {
	goodsRows, err := s.db.Goods.Query().All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read goods: %w", err)
	}
	goods := make([]*Goods, len(goodsRows))
	byID := make(map[uuid.UUID]*Goods, len(goodsRows))
	for i, g := range goodsRows {
		goods[i] = goodsFromRow(g)
		byID[g.ID] = goods[i]
	}
	saleRows, err := s.db.Sale.Query().All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read sales: %w", err)
	}
	sales := make([]*Sale, len(saleRows))
	saleByID := make(map[uuid.UUID]*Sale, len(saleRows))
	for i, row := range saleRows {
		sales[i] = saleFromRow(row)
		saleByID[row.ID] = sales[i]
	}
	items, err := s.db.SaleItem.Query().Order(ent.Asc(saleitem.FieldPosition)).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read sale items: %w", err)
	}
	for _, row := range items {
		if parent := saleByID[row.SaleID]; parent != nil {
			parent.Items = append(parent.Items, itemFromRow(row, byID[row.GoodsID]))
		}
	}
	return sales, goods, nil
}

func goodsFromRow(g *ent.Goods) *Goods {
	return &Goods{
		ID: g.ID, Name: g.Name, Description: g.Description, ImageURL: g.ImageURL,
		ListPrice: money.Amount{Minor: g.ListPriceMinor, Currency: g.Currency}, CreatedAt: g.CreatedAt.UTC(),
	}
}

func saleFromRow(r *ent.Sale) *Sale {
	return &Sale{
		ID: r.ID, Slug: r.Slug, Title: r.Title, Rules: r.Rules, Status: Status(r.Status),
		StartsAt: r.StartsAt.UTC(), EndsAt: r.EndsAt.UTC(), PreheatAt: r.PreheatAt.UTC(),
		PaymentWindow: time.Duration(r.PaymentWindowSeconds) * time.Second,
		PurchaseLimit: r.PurchaseLimit, HideExactStock: r.HideExactStock,
		Epoch: r.Epoch, Revision: r.Revision, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.UTC(),
	}
}

func itemFromRow(r *ent.SaleItem, g *Goods) *Item {
	return &Item{
		ID: r.ID, SaleID: r.SaleID, Goods: g, Position: r.Position,
		Price: money.Amount{Minor: r.PriceMinor, Currency: r.Currency},
		Total: r.Total, Available: r.Available, Revision: r.Revision,
	}
}
