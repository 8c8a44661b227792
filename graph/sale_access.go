package graph

import (
	"context"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// visible returns a sale if the caller may see it, else nil.
func visible(ctx context.Context, v *sale.Sale) *sale.Sale {
	if v == nil || (!v.Public() && !reads(ctx, auth.SalesRead)) {
		return nil
	}
	return v
}

// visibleSale parses the id of a sale that the caller may see.
func (r *Resolver) visibleSale(ctx context.Context, saleID string) (id.Sale, error) {
	u, err := id.ParseSale(saleID)
	if err != nil {
		return id.Sale{}, fault.New(fault.NotFound, "There is no such sale.")
	}
	v, err := r.Shop.Sale(ctx, u)
	if err != nil {
		return id.Sale{}, err
	}
	if visible(ctx, v) == nil {
		return id.Sale{}, fault.New(fault.NotFound, "There is no such sale.")
	}
	return u, nil
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
