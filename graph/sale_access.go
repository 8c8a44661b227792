package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
)

// visible returns a sale that was read if the caller may see it, else nil.
func (r *Resolver) visible(ctx context.Context, v *sale.Sale, err error) (*sale.Sale, error) {
	if v == nil || err != nil || reads(ctx, auth.SalesRead) {
		return v, err
	}
	if seen, err := r.Shop.Sees(ctx, v, callerID(ctx)); err != nil || !seen {
		return nil, err
	}
	return v, nil
}

// visibleGoods returns a product if the caller may see it, else nil.
func (r *Resolver) visibleGoods(ctx context.Context, goodsID id.Goods) (*sale.Goods, error) {
	g, public, err := r.Shop.Product(ctx, goodsID)
	if err != nil || !public && !reads(ctx, auth.CatalogueRead) {
		return nil, err
	}
	return g, nil
}

// product returns the product with a key if the caller may see it, else nil. Only those who
// read the whole catalogue know ids of other systems.
func (r *Resolver) product(ctx context.Context, by model.GoodsLookup) (*model.Goods, error) {
	if by.ExternalID != nil {
		if !reads(ctx, auth.CatalogueRead) {
			return nil, nil
		}
		g, err := r.Operator.GoodsByExternalID(ctx, *by.ExternalID)
		return toGoods(g), err
	}
	goodsID, err := id.ParseGoods(deref(by.ID))
	if err != nil {
		return nil, nil
	}
	g, err := r.visibleGoods(ctx, goodsID)
	return toGoods(g), err
}

// visibleSale parses the id of a sale that the caller may see.
func (r *Resolver) visibleSale(ctx context.Context, saleID string) (id.Sale, error) {
	u, err := id.ParseSale(saleID)
	if err != nil {
		return id.Sale{}, unknown("saleId")
	}
	v, err := r.Shop.Sale(ctx, u)
	if v, err = r.visible(ctx, v, err); err == nil && v == nil {
		err = unknown("saleId")
	}
	return u, err
}

// stockHidden reports whether the sale of an item shows availability in words instead of
// numbers.
func (r *Resolver) stockHidden(ctx context.Context, item *sale.Item) (bool, error) {
	return r.seesLevels(ctx, item.SaleID)
}

// seesLevels reports whether the caller sees the stock of a sale in words only.
func (r *Resolver) seesLevels(ctx context.Context, saleID id.Sale) (bool, error) {
	v, err := r.Shop.Sale(ctx, saleID)
	if err != nil {
		return false, err
	}
	return v != nil && v.HideExactStock && !reads(ctx, auth.SalesRead), nil
}
