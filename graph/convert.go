package graph

import (
	"context"
	"time"

	"seckill/graph/guard"
	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/platform/accent"
	"seckill/internal/platform/money"
)

// pollAfter is the poll interval that clients of an order task receive.
const pollAfter = 500 * time.Millisecond

func toMoney(a money.Amount) *model.Money {
	return &model.Money{Amount: a.Decimal(), CurrencyCode: a.Currency, FractionDigits: a.Digits()}
}

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
		Revision: int(v.Revision), Notice: unlessZero(v.Notice), PreheatAt: &v.PreheatAt, HideExactStock: &v.HideExactStock, Switches: toSwitches(v.Switches), Source: v,
		ExternalReference: unlessZero(v.ExternalReference), RequiresAddress: v.RequiresAddress, LimitBy: v.LimitBy.Kinds(),
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

func toTask(ctx context.Context, t *order.Task) *model.OrderTask {
	if t == nil {
		return nil
	}
	out := &model.OrderTask{
		ID: t.ID, Status: t.Status, Quantity: t.Quantity,
		Revision: int(t.Revision), Delayed: t.Delayed, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Source: t,
	}
	switch t.Status {
	case order.Submitted:
		ms := int(pollAfter.Milliseconds())
		out.PollAfterMs = &ms
	case order.Failed:
		out.Failure = basicError(ctx, t.Failure, nil)
	case order.Succeeded:
	}
	return out
}

func (r *Resolver) toOrder(o *order.Order) *model.Order {
	if o == nil {
		return nil
	}
	unit := money.Amount{Minor: o.UnitPriceMinor, Currency: o.Currency}
	return &model.Order{
		ID: o.ID, Number: o.Number, Type: o.Kind, Status: o.Status,
		Quantity: o.Quantity, UnitPrice: toMoney(unit), Total: toMoney(unit.Times(o.Quantity)),
		RefundedQuantity: o.RefundedUnits(), RefundedAmount: toMoney(unit.Times(o.RefundedUnits())),
		Revision: int(o.Version), CreatedAt: o.CreatedAt, PaidAt: o.PaidAt, PaymentDeadline: o.PaymentDeadline,
		ServerTime: r.Shop.Now(), AvailableActions: o.Actions(r.Shop.Now()), Source: o,
	}
}

// toPage converts a page into edges.
func toPage[T, E any](p storefront.Page[T], edge func(node T, cursor string) E) ([]E, *model.PageInfo) {
	edges := make([]E, len(p.Nodes))
	for i, n := range p.Nodes {
		edges[i] = edge(n, p.Cursors[i])
	}
	return edges, toPageInfo(p.Cursors, p.HasNext, p.HasPrev)
}

// listing reads a list in pages.
type listing[T any] struct {
	first  int  // length of a page
	begun  bool // there is a page before
	read   func(ctx context.Context, limit int) ([]T, error)
	cursor func(T) string
	count  func(context.Context) (int, error)
}

// page returns a page and, if the query selects it, the total. It reads one more than is
// shown, to know whether another page follows.
func (l listing[T]) page(ctx context.Context) (p storefront.Page[T], total *int, err error) {
	list, err := l.read(ctx, l.first+1)
	if err != nil {
		return p, nil, err
	}
	p = storefront.Page[T]{Nodes: list[:min(len(list), l.first)], HasNext: len(list) > l.first, HasPrev: l.begun}
	for _, n := range p.Nodes {
		p.Cursors = append(p.Cursors, l.cursor(n))
	}
	total, err = totalOf(ctx, l.count)
	return p, total, err
}

// totalOf returns the total of a connection; nil when the query does not select it.
func totalOf(ctx context.Context, count func(context.Context) (int, error)) (*int, error) {
	if !asked(ctx, "totalCount") {
		return nil, nil // not selected
	}
	total, err := count(ctx)
	return &total, err
}

func toPageInfo(cursors []string, next, prev bool) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: next, HasPreviousPage: prev}
	if len(cursors) > 0 {
		info.StartCursor, info.EndCursor = &cursors[0], &cursors[len(cursors)-1]
	}
	return info
}

// kindOf returns the kind of an event in a state stream.
func kindOf(snapshot bool) model.StreamEventKind {
	if snapshot {
		return model.StreamEventKindSnapshot
	}
	return model.StreamEventKindUpdate
}

// toRateLimit returns the cost of an operation and the remaining budget of its caller;
// nil without a budget.
func toRateLimit(c guard.Cost, now time.Time) *model.RateLimit {
	b := c.Budget
	if b == nil {
		return nil
	}
	missing := float64(b.Burst - b.Remaining)
	return &model.RateLimit{
		Burst: int(b.Burst), Cost: int(c.Requested), Remaining: int(b.Remaining), RestoreRate: b.RestoreRate,
		ResetAt: now.Add(time.Duration(missing / b.RestoreRate * float64(time.Second))),
	}
}

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
