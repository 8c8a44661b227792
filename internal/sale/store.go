package sale

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/money"
)

// Store reads sales and products from the database.
type Store struct{ db *ent.Client }

// NewStore returns a Store on db.
func NewStore(db *ent.Client) *Store { return &Store{db: db} }

// Version identifies a version of the catalogue: it changes when a sale or product is
// added or a revision grows.
type Version struct {
	Sales, SaleRevisions, Goods, GoodsRevisions int64
}

// figures are a count and a sum of revisions.
type figures []struct {
	Count int64         `json:"count"`
	Sum   sql.NullInt64 `json:"sum"`
}

// Version reads the version of the catalogue with two small aggregate queries.
func (s *Store) Version(ctx context.Context) (Version, error) {
	var sales, goods figures
	err := s.db.Sale.Query().Aggregate(ent.Count(), ent.As(ent.Sum(entsale.FieldRevision), "sum")).Scan(ctx, &sales)
	if err != nil {
		return Version{}, fmt.Errorf("read catalogue version: %w", err)
	}
	err = s.db.Goods.Query().Aggregate(ent.Count(), ent.As(ent.Sum(entgoods.FieldRevision), "sum")).Scan(ctx, &goods)
	if err != nil {
		return Version{}, fmt.Errorf("read catalogue version: %w", err)
	}
	if len(sales) != 1 || len(goods) != 1 {
		return Version{}, fmt.Errorf("read catalogue version: %d and %d rows", len(sales), len(goods))
	}
	return Version{sales[0].Count, sales[0].Sum.Int64, goods[0].Count, goods[0].Sum.Int64}, nil
}

// Gone reports whether all units of an item are sold: none is available or held.
func (s *Store) Gone(ctx context.Context, itemID uuid.UUID) (bool, error) {
	gone, err := s.db.SaleItem.Query().Where(saleitem.ID(itemID), saleitem.Available(0), saleitem.Held(0)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("read what is left of item %s: %w", itemID, err)
	}
	return gone, nil
}

// ByID reads one sale with its items from the database; nil if there is none.
func (s *Store) ByID(ctx context.Context, saleID uuid.UUID) (*Sale, error) {
	row, err := s.db.Sale.Get(ctx, saleID)
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read sale %s: %w", saleID, err)
	}
	items, err := s.db.SaleItem.Query().Where(saleitem.SaleID(saleID)).Order(ent.Asc(saleitem.FieldPosition)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read items of sale %s: %w", saleID, err)
	}
	v := saleFromRow(row)
	for _, item := range items {
		goods, err := s.GoodsByID(ctx, item.GoodsID)
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, itemFromRow(row, item, goods))
	}
	return v, nil
}

// GoodsByID reads one product from the database; nil if there is none.
func (s *Store) GoodsByID(ctx context.Context, goodsID uuid.UUID) (*Goods, error) {
	row, err := s.db.Goods.Get(ctx, goodsID)
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read goods %s: %w", goodsID, err)
	}
	return goodsFromRow(row), nil
}

// GoodsByExternalID reads the product with an id of another system; nil if there is none.
func (s *Store) GoodsByExternalID(ctx context.Context, externalID string) (*Goods, error) {
	row, err := s.db.Goods.Query().Where(entgoods.ExternalID(externalID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read goods by external id: %w", err)
	}
	return goodsFromRow(row), nil
}

// ByReference reads the sale with an id of another system; nil if there is none.
func (s *Store) ByReference(ctx context.Context, reference string) (*Sale, error) {
	found, err := s.db.Sale.Query().Where(entsale.ExternalReference(reference)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read sale by reference: %w", err)
	}
	return s.ByID(ctx, found)
}

// All reads every sale with its items and products, and every product.
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
	indexByID := make(map[uuid.UUID]int, len(saleRows))
	for i, row := range saleRows {
		sales[i] = saleFromRow(row)
		indexByID[row.ID] = i
	}
	items, err := s.db.SaleItem.Query().Order(ent.Asc(saleitem.FieldPosition)).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read sale items: %w", err)
	}
	for _, row := range items {
		if i, ok := indexByID[row.SaleID]; ok {
			sales[i].Items = append(sales[i].Items, itemFromRow(saleRows[i], row, byID[row.GoodsID]))
		}
	}
	if err := s.addPreparers(ctx, sales, indexByID); err != nil {
		return nil, nil, err
	}
	return sales, goods, nil
}

func goodsFromRow(g *ent.Goods) *Goods {
	return &Goods{
		ID: g.ID, Name: g.Name, Description: g.Description, ImageURL: g.ImageURL,
		ListPrice:  money.Amount{Minor: g.ListPriceMinor, Currency: g.Currency},
		ExternalID: deref(g.ExternalID), SKU: deref(g.Sku),
		Revision: g.Revision, CreatedAt: g.CreatedAt.UTC(),
	}
}

func saleFromRow(r *ent.Sale) *Sale {
	return &Sale{
		ID: r.ID, Slug: r.Slug, Title: r.Title, Rules: r.Rules, Status: Status(r.Status),
		StartsAt: r.StartsAt.UTC(), EndsAt: r.EndsAt.UTC(), PreheatAt: r.PreheatAt.UTC(),
		PaymentWindow: time.Duration(r.PaymentWindowSeconds) * time.Second,
		PurchaseLimit: LimitOf(r), HideExactStock: r.HideExactStock, RequiresAddress: r.RequiresAddress,
		Requires: Requirements{VerifiedContact: r.RequiresVerifiedContact, AccountAge: time.Duration(r.MinimumAccountAgeHours) * time.Hour},
		Epoch:    r.Epoch, Revision: r.Revision, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.UTC(),
		WasPublic: r.WasPublic, Notice: r.Notice, SettledAt: utc(r.SettledAt), ExternalReference: deref(r.ExternalReference),
		Switches: Switches{
			CaptchaRequired: r.CaptchaRequired, CaptchaKinds: splitKinds(r.CaptchaKinds), PowMax: r.PowMax,
			PermitPerMille: r.PermitPerMille, InflowPerSecond: r.InflowPerSecond,
			LimitBurst: r.LimitBurst, LimitPerSecond: r.LimitPerSecond,
		},
	}
}

// LimitOf returns the purchase limit of a sale over all its items; 0 = no limit.
func LimitOf(r *ent.Sale) int {
	if r.TotalLimit == nil {
		return 0
	}
	return *r.TotalLimit
}

// ItemLimitOf returns the purchase limit of an item. Items of release 0.1 have that of
// their sale.
func ItemLimitOf(parent *ent.Sale, r *ent.SaleItem) int {
	if r.PurchaseLimit == nil {
		return parent.PurchaseLimit
	}
	return *r.PurchaseLimit
}

func itemFromRow(parent *ent.Sale, r *ent.SaleItem, g *Goods) *Item {
	return &Item{
		PurchaseLimit: ItemLimitOf(parent, r),
		ID:            r.ID, SaleID: r.SaleID, Goods: g, Position: r.Position,
		Price: money.Amount{Minor: r.PriceMinor, Currency: r.Currency},
		Total: r.Total, Available: r.Available, Held: r.Held, Sold: r.Sold, Revision: r.Revision,
		SoldOutAt: utc(r.SoldOutAt),
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
