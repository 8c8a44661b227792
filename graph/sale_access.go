package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// callerID returns the user id of the caller; Nil = no user.
func callerID(ctx context.Context) id.User {
	if p := shopper(ctx); p != nil {
		return p.UserID
	}
	return id.User{}
}

// isOperator reports whether the caller has at least the operator role.
func isOperator(ctx context.Context) bool {
	p := auth.PrincipalFrom(ctx)
	return p != nil && p.Role.AtLeast(auth.Operator)
}

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

func saleFilter(ctx context.Context, f *model.SaleFilter) (storefront.SaleFilter, error) {
	out := storefront.SaleFilter{Hidden: reads(ctx, auth.SalesRead)}
	if f == nil {
		return out, nil
	}
	if len(f.Statuses) > 0 && !out.Hidden {
		return out, fault.New(fault.Forbidden, "Only operators may filter by status.")
	}
	out.Search, out.Phases, out.Statuses = deref(f.Search), f.Phases, f.Statuses
	out.StartsBefore = deref(f.StartsBefore)
	return out, nil
}

func saleOrder(o *model.SaleSort) storefront.SaleOrder {
	if o == nil {
		return storefront.SaleOrder{}
	}
	return storefront.SaleOrder{
		ByCreation: o.Field == model.SaleSortFieldCreatedAt,
		Descending: o.Direction == model.OrderDirectionDesc,
	}
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

func toItems(items []*sale.Item) []*model.SaleItem {
	out := make([]*model.SaleItem, len(items))
	for i, item := range items {
		out[i] = toItem(item)
	}
	return out
}

func (r *Resolver) toViewer(ctx context.Context, of *sale.Sale, v storefront.Viewer) *model.SaleViewer {
	out := &model.SaleViewer{
		Source: of, Action: v.Action, RemainingLimit: v.RemainingLimit,
		Order: r.toOrder(v.Order), OrderTask: toTask(ctx, v.Task), WaitlistEntry: toWaitlistEntry(v.Entry), QueueTicket: toTicket(v.Ticket),
	}
	for _, item := range v.Items {
		out.Items = append(out.Items, &model.SaleItemViewer{Item: toItem(item.Item), RemainingLimit: item.RemainingLimit, WaitlistEntry: toWaitlistEntry(item.Entry), Source: item})
	}
	if v.Action == storefront.ActionNone {
		reason := disabledReasons[v.Phase].in(ctx)
		if v.Phase == sale.PhaseSoldOut && v.Gone {
			reason = goneForGood.in(ctx)
		}
		if v.Prepared {
			reason = message(ctx, fault.OwnSale)
		}
		out.DisabledReason = &reason
	}
	return out
}

// disabledReasons explain why the buy button is disabled.
var disabledReasons = map[sale.Phase]text{
	sale.PhaseSoldOut:   {"Sold out at present.", "已抢光。"},
	sale.PhasePaused:    {"The sale is held for a moment.", "抢购暂停中。"},
	sale.PhaseEnded:     {"The sale is over.", "抢购已结束。"},
	sale.PhaseCancelled: {"The sale was cancelled.", "抢购已取消。"},
	sale.PhaseLive:      {"Nothing can be done at present.", "当前无法操作。"},
	sale.PhaseUpcoming:  {"The sale has not started.", "抢购尚未开始。"},
}
