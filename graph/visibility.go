package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
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

// unknown refuses an id in the input that names no object visible to the caller.
func unknown(field string) error {
	return fault.Refused{Why: fault.Unknown, At: []string{field}}
}

// ownOrder returns an order that the caller may see; others are NOT_FOUND.
func (r *Resolver) ownOrder(ctx context.Context, orderID string) (*order.Order, error) {
	missing := fault.New(fault.NotFound, "There is no such order.")
	u, err := id.ParseOrder(orderID)
	if err != nil {
		return nil, missing
	}
	o, err := r.visibleOrder(ctx, u)
	if err == nil && o == nil {
		err = missing
	}
	return o, err
}

// visibleOrder returns an order that the caller may see, or nil.
func (r *Resolver) visibleOrder(ctx context.Context, orderID id.Order) (*order.Order, error) {
	return ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*order.Order, error) {
		return r.Orders.OrderFor(ctx, orderID, auth.PrincipalFrom(ctx).UserID, reads(ctx, auth.OrdersRead))
	})
}

// orderBy returns the order with a key if the caller may see it, else nil. An order has the
// UUID of the task that became it.
func (r *Resolver) orderBy(ctx context.Context, by model.OrderLookup) (*order.Order, error) {
	switch {
	case by.ID != nil:
		u, err := id.ParseOrder(*by.ID)
		if err != nil {
			return nil, nil
		}
		return r.visibleOrder(ctx, u)
	case by.TaskID != nil:
		u, err := id.ParseTask(*by.TaskID)
		if err != nil {
			return nil, nil
		}
		return r.visibleOrder(ctx, id.Order(u))
	}
	return ratelimit.Find(ctx, r.Absences, func(ctx context.Context) (*order.Order, error) {
		return r.Orders.NumberFor(ctx, deref(by.Number), auth.PrincipalFrom(ctx).UserID, reads(ctx, auth.OrdersRead))
	})
}

// ownTask returns a task of the caller; nil when it does not exist or belongs to another
// user.
func (r *Resolver) ownTask(ctx context.Context, taskID string) (*order.Task, error) {
	u, err := id.ParseTask(taskID)
	if err != nil {
		return nil, nil
	}
	user := auth.PrincipalFrom(ctx).UserID
	t, err := ratelimit.Find(ctx, r.Absences,
		func(ctx context.Context) (*order.Task, error) { return r.Orders.Task(ctx, u, user) })
	switch {
	case err != nil:
		return nil, err
	case t != nil && (t.User == user || isOperator(ctx)):
		return t, nil
	case isOperator(ctx):
		return r.anyTask(ctx, u)
	}
	return nil, nil
}

// anyTask returns the task of any user, for operators.
func (r *Resolver) anyTask(ctx context.Context, task id.Task) (*order.Task, error) {
	return r.Orders.Task(ctx, task, id.User{})
}
