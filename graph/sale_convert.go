package graph

import (
	"context"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/accent"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
)

func toGoods(g *sale.Goods) *model.Goods {
	if g == nil {
		return nil
	}
	return &model.Goods{
		ID: g.ID, Name: g.Name, Description: g.Description, ImageURL: g.ImageURL, ImageAlt: unlessZero(g.ImageAlt),
		ListPrice: toMoney(g.ListPrice), CreatedAt: g.CreatedAt, ExternalID: unlessZero(g.ExternalID), Sku: unlessZero(g.SKU),
	}
}

func (r *Resolver) toSale(v *sale.Sale) *model.Sale {
	if v == nil {
		return nil
	}
	now := r.Shop.Now()
	return &model.Sale{
		ID: v.ID, Slug: v.Slug, Title: v.Title, Rules: v.Rules,
		StartsAt: v.StartsAt, EndsAt: v.EndsAt, ServerTime: now, NextTransitionAt: v.NextTransition(now),
		Phase: r.Shop.Phase(v, now), Status: v.StatusAt(now),
		PaymentWindowSeconds: int(v.PaymentWindow / time.Second), PurchaseLimit: unlessZero(v.PurchaseLimit),
		Revision: int(v.Revision), Notice: unlessZero(v.Notice), PreheatAt: &v.PreheatAt, HideExactStock: &v.HideExactStock,
		Switches: toSwitches(v.Switches), Source: v,
		ExternalReference: unlessZero(v.ExternalReference), RequiresAddress: v.RequiresAddress, LimitBy: v.LimitBy.Kinds(),
		Access: toAccessRules(v), AccessCodes: r.toBatches(v), Private: v.Private, Mode: v.Mode(),
		EntriesCloseAt: unlessZero(v.EntriesCloseAt()),
		OfferSeconds:   unlessZero(v.Draw.OfferSeconds), AuthorizesEntries: v.Draw.Authorize,
		RequireVerifiedContact: v.Requires.VerifiedContact, MinimumAccountAge: int(v.Requires.AccountAge / time.Hour),
		Accent: toAccent(v.Accent), DrawOpensAt: drawOpensAt(v, now),
	}
}

// drawOpensAt returns the time from which the waiting room takes buyers: that of the preload, or
// now at the latest once the sale is loaded.
func drawOpensAt(v *sale.Sale, now time.Time) *time.Time {
	at := v.PreheatAt
	if v.Status == sale.Preheated && now.Before(at) {
		at = now
	}
	return unlessZero(at)
}

func toAccent(a accent.Accent) *model.Accent {
	if a == (accent.Accent{}) {
		return nil
	}
	shades := func(s accent.Shades) *model.AccentShades {
		return &model.AccentShades{Fill: s.Fill, Press: s.Press, Text: s.Text}
	}
	return &model.Accent{Color: a.Color, Light: shades(a.Light), Dark: shades(a.Dark)}
}

func toItem(item *sale.Item) *model.SaleItem {
	if item == nil {
		return nil
	}
	return &model.SaleItem{ID: item.ID, Price: toMoney(item.Price), PurchaseLimit: item.PurchaseLimit, Source: item}
}

// toStock hides the numbers of a hidden stock. Its revision is the second of the last
// change then, because the true one counts the orders.
func toStock(s storefront.Stock, hidden bool) *model.Stock {
	out := &model.Stock{Level: s.Level, Revision: int(s.Revision), UpdatedAt: s.UpdatedAt}
	if hidden {
		out.Revision = int(s.UpdatedAt.Unix())
	} else {
		out.Remaining, out.Total = &s.Remaining, &s.Total
	}
	return out
}

func saleFilter(ctx context.Context, f *model.SaleFilter) (storefront.SaleFilter, error) {
	out := storefront.SaleFilter{Viewer: callerID(ctx)}
	out.Hidden = reads(ctx, auth.SalesRead)
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

func toItems(items []*sale.Item) []*model.SaleItem {
	return collect.Map(items, toItem)
}

func (r *Resolver) toViewer(ctx context.Context, of *sale.Sale, v storefront.Viewer) *model.SaleViewer {
	out := &model.SaleViewer{
		Source: of, Action: v.Action, RemainingLimit: v.RemainingLimit,
		Order: r.toOrder(v.Order), OrderTask: toTask(ctx, v.Task), WaitlistEntry: toWaitlistEntry(v.Entry),
		QueueTicket: toTicket(v.Ticket), Access: r.toAccess(of, v),
	}
	for _, item := range v.Items {
		out.Items = append(out.Items, &model.SaleItemViewer{Item: toItem(item.Item), RemainingLimit: item.RemainingLimit,
			WaitlistEntry: toWaitlistEntry(item.Entry), Source: item})
	}
	if v.Action == storefront.ActionNone {
		reason := disabledReasons[v.Phase].in(ctx)
		if v.Phase == sale.PhaseSoldOut && v.Gone {
			reason = goneForGood.in(ctx)
		}
		if v.Restricted && v.Access.Rule == nil && (v.Phase == sale.PhaseUpcoming || v.Phase == sale.PhaseLive ||
			v.Phase == sale.PhaseSoldOut) {
			reason = message(ctx, fault.NoAccess)
		}
		if of.Draw.On() && v.Phase == sale.PhaseLive && (!v.Restricted || v.Access.Rule != nil) {
			reason = message(ctx, fault.EntriesClosed)
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
