package sale

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	entgoods "seckill/ent/goods"
	"seckill/ent/predicate"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/buy/access"
	"seckill/internal/platform/accent"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
)

// Store reads sales and products from the database.
type Store struct{ db *ent.Client }

// NewStore returns a Store on db.
func NewStore(db *ent.Client) *Store { return &Store{db: db} }

// Gone reports whether all units of an item are sold: none is available or held.
func (s *Store) Gone(ctx context.Context, itemID id.Item) (bool, error) {
	gone, err := s.db.SaleItem.Query().Where(saleitem.ID(itemID), saleitem.Available(0), saleitem.Held(0)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("read what is left of item %s: %w", itemID, err)
	}
	return gone, nil
}

// ByID reads one sale with its items from the database; nil if there is none.
func (s *Store) ByID(ctx context.Context, saleID id.Sale) (*Sale, error) {
	return s.one(ctx, entsale.ID(saleID))
}

// BySlug reads the sale with a slug; nil if there is none.
func (s *Store) BySlug(ctx context.Context, slug string) (*Sale, error) {
	return s.one(ctx, entsale.Slug(slug))
}

// ByItem reads the sale of an item; nil if there is none.
func (s *Store) ByItem(ctx context.Context, itemID id.Item) (*Sale, error) {
	item, err := s.db.SaleItem.Get(ctx, itemID)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read item %s: %w", itemID, err)
	}
	return s.ByID(ctx, item.SaleID)
}

// one reads the sale that a unique condition names.
func (s *Store) one(ctx context.Context, is predicate.Sale) (*Sale, error) {
	row, err := s.db.Sale.Query().Where(is).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read sale: %w", err)
	}
	sales, err := s.complete(ctx, []*ent.Sale{row})
	if err != nil {
		return nil, err
	}
	return sales[0], nil
}

// GoodsByID reads one product from the database; nil if there is none.
func (s *Store) GoodsByID(ctx context.Context, goodsID id.Goods) (*Goods, error) {
	row, err := s.db.Goods.Get(ctx, goodsID)
	if ent.IsNotFound(err) {
		return nil, nil
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
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read goods by external id: %w", err)
	}
	return goodsFromRow(row), nil
}

// ByReference reads the sale with an id of another system; nil if there is none.
func (s *Store) ByReference(ctx context.Context, reference string) (*Sale, error) {
	return s.one(ctx, entsale.ExternalReference(reference))
}

func goodsFromRow(g *ent.Goods) *Goods {
	return &Goods{
		ID: g.ID, Name: g.Name, Description: g.Description, ImageURL: g.ImageURL, ImageAlt: postgres.Value(g.ImageAlt),
		ListPrice:  money.Amount{Minor: g.ListPriceMinor, Currency: g.Currency},
		ExternalID: postgres.Value(g.ExternalID), SKU: postgres.Value(g.Sku),
		Revision: g.Revision, CreatedAt: g.CreatedAt.UTC(),
	}
}

func saleFromRow(r *ent.Sale) *Sale {
	return &Sale{
		ID: r.ID, Slug: r.Slug, Title: r.Title, Rules: r.Rules, Status: Status(r.Status),
		StartsAt: r.StartsAt.UTC(), EndsAt: r.EndsAt.UTC(), PreheatAt: r.PreheatAt.UTC(),
		PaymentWindow: time.Duration(r.PaymentWindowSeconds) * time.Second,
		PurchaseLimit: LimitOf(r), HideExactStock: r.HideExactStock, RequiresAddress: r.RequiresAddress,
		Requires: Requirements{VerifiedContact: r.RequiresVerifiedContact,
			AccountAge: time.Duration(r.MinimumAccountAgeHours) * time.Hour},
		LimitBy: ParseLimitBy(r.LimitBy), Access: access.Parse(r.Access),
		Codes: access.ParseBatches(r.AccessCodes), Private: r.Private,
		Draw:  DrawRules{EntrySeconds: r.EntrySeconds, OfferSeconds: r.OfferSeconds, Authorize: r.AuthorizeEntries},
		Epoch: r.Epoch, Revision: r.Revision, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.UTC(),
		Accent: accentOf(r.Accent), WasPublic: r.WasPublic, Notice: r.Notice, SettledAt: clock.UTC(r.SettledAt),
		ExternalReference: postgres.Value(r.ExternalReference),
		Switches: Switches{
			CaptchaRequired: r.CaptchaRequired, CaptchaKinds: splitKinds(r.CaptchaKinds), PowMax: r.PowMax,
			PermitPerMille: r.PermitPerMille, InflowPerSecond: r.InflowPerSecond, ReviewAccounts: r.ReviewAccounts,
			LimitBurst: r.LimitBurst, LimitPerSecond: r.LimitPerSecond,
		},
	}
}

// accentOf returns an accent that was checked when it was written; a later release may
// refuse it, and then there is none.
func accentOf(color string) accent.Accent {
	read, err := accent.Parse(color)
	if err != nil {
		return accent.Accent{}
	}
	return read
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
		SoldOutAt: clock.UTC(r.SoldOutAt), DrawSeed: r.DrawSeed,
	}
}
