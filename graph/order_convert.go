package graph

import (
	"context"
	"math"
	"strings"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/storefront"
	"seckill/internal/identity/person"
	"seckill/internal/identity/recipient"
	"seckill/internal/pay/receipt"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
	"seckill/internal/platform/typed"
)

// pollAfter is the poll interval that clients of an order task receive.
const pollAfter = 500 * time.Millisecond

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

// toReceipt returns the receipt of an order; nil before it was paid.
func toReceipt(o *order.Order, s receipt.Seller) *model.Receipt {
	if o.PaidAt == nil {
		return nil
	}
	out := &model.Receipt{Number: o.Number, Seller: orAbsent(s.Name), SellerDetails: s.Details}
	if out.SellerDetails == nil {
		out.SellerDetails = []string{}
	}
	if t := s.Tax; t != nil {
		total := money.Amount{Minor: o.TotalMinor(), Currency: o.Currency}
		out.Tax = &model.ReceiptTax{Name: t.Name, Rate: t.Rate, Amount: toMoney(t.In(total))}
	}
	return out
}

// orderPage parses the page arguments of an order list.
func orderPage(p storefront.PageInput) (in order.ListInput, err error) {
	if in.Limit, in.Backward, err = p.Size(); err != nil {
		return in, err
	}
	if in.After, err = cursor.Parse(p.After, cursor.ParsePosition); err != nil {
		return in, err
	}
	in.Before, err = cursor.Parse(p.Before, cursor.ParsePosition)
	return in, err
}

func orderFilter(f *model.OrderFilter) (order.Filter, error) {
	var out order.Filter
	if f == nil {
		return out, nil
	}
	if f.SaleID != nil {
		u, err := id.ParseSale(*f.SaleID)
		if err != nil {
			return out, fault.Wrap(fault.BadInput, "filter.saleId is not the id of a sale.", err)
		}
		out.Sale = u
	}
	if f.Cluster != nil && out.Sale.IsZero() {
		return out, fault.New(fault.BadInput, "filter.cluster needs filter.saleId.")
	}
	out.Cluster, out.InReview = deref(f.Cluster), f.InReview
	out.Statuses, out.From, out.Until = f.Statuses, deref(f.CreatedFrom), deref(f.CreatedUntil)
	if f.Search != nil {
		out.Match = order.Numbered(typed.QueryOf(*f.Search))
	}
	return out, nil
}

func (r *Resolver) orderConnection(ctx context.Context, in order.ListInput) (*model.OrderConnection, error) {
	page, err := r.Orders.List(ctx, in)
	if err != nil {
		return nil, err
	}
	out := toPage(
		pageOf(page.Orders, func(o *order.Order) string { return order.CursorOf(o).String() },
			page.HasNext, page.HasPrevious),
		r.toOrder, func(n *model.Order, cursor string) *model.OrderEdge { return &model.OrderEdge{Cursor: cursor, Node: n} })
	total, err := totalOf(ctx, func(ctx context.Context) (int, error) { return r.Orders.Count(ctx, in.Filter) })
	return &model.OrderConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, err
}

func toRecipient(r *recipient.Recipient) *model.Recipient {
	if r == nil {
		return nil
	}
	return &model.Recipient{
		Name: r.Name, Phone: r.Phone, Country: r.Country, Region: unlessZero(r.Region), City: r.City, Street: r.Street,
		PostalCode: unlessZero(r.PostalCode),
	}
}

func toAddress(a recipient.Address) *model.Address {
	return &model.Address{ID: a.ID, Default: a.Default, Recipient: toRecipient(&a.Recipient)}
}

func toAddresses(list []recipient.Address) []*model.Address {
	return collect.Map(list, toAddress)
}

// address parses the input of saveAddress; without an id, it is a new address.
func address(in model.SaveAddressInput) (recipient.Address, error) {
	a := recipient.Address{Recipient: recipient.Recipient{
		Name: in.Name, Phone: in.Phone, Country: in.Country, Region: deref(in.Region), City: in.City, Street: in.Street,
		PostalCode: deref(in.PostalCode),
	}}
	if in.AddressID == nil {
		return a, nil
	}
	var err error
	a.ID, err = addressID(*in.AddressID)
	return a, err
}

// correction parses the input of correctRecipient. Who bought the order decides whether the
// caller is its buyer.
func correction(in model.CorrectRecipientInput) (order.Correction, error) {
	orderID, err := id.ParseOrder(in.OrderID)
	if err != nil {
		return order.Correction{}, unknown("orderId")
	}
	return order.Correction{Order: orderID, Reason: deref(in.Reason), Recipient: recipient.Recipient{
		Name: in.Name, Phone: in.Phone, Country: in.Country, Region: deref(in.Region), City: in.City, Street: in.Street,
		PostalCode: deref(in.PostalCode),
	}}, nil
}

// corrector returns the caller as the one who corrects an order: staff, unless it is their own.
func corrector(ctx context.Context, buyer id.User) order.Actor {
	p := auth.PrincipalFrom(ctx)
	if p.UserID != buyer && reads(ctx, auth.OrdersWrite) {
		return order.Actor{Kind: order.Operator, User: p.UserID}
	}
	return order.Actor{Kind: order.Buyer, User: p.UserID}
}

func addressID(text string) (id.Address, error) {
	u, err := id.ParseAddress(text)
	if err != nil {
		return u, unknown("addressId")
	}
	return u, nil
}

func toFulfilment(f *order.Fulfilment) *model.Fulfilment {
	if f == nil {
		return nil
	}
	return &model.Fulfilment{State: f.State, Carrier: unlessZero(f.Carrier), TrackingURL: unlessZero(f.TrackingURL),
		UpdatedAt: f.UpdatedAt}
}

// sharedThings are what the accounts of a cluster share, for buyers.
var sharedThings = map[person.Kind]text{
	person.Address: {"several accounts ordered to one address", "多个账号使用同一收货地址下单"},
	person.Contact: {"several accounts with one mailbox or phone number ordered", "多个账号使用同一邮箱或手机号下单"},
	person.Device:  {"several accounts ordered from one browser", "多个账号在同一浏览器下单"},
	person.Network: {"several accounts ordered from one network", "多个账号在同一网络下单"},
	person.Payment: {"several accounts paid by one means of payment", "多个账号使用同一支付方式"},
}

// seen begins the text of a review.
var seen = text{"The shop checks this order before you can pay: %s.", "商家正在核实该订单，核实后即可付款：%s。"}

// reviewText returns what was seen, without whose orders the others are.
func reviewText(ctx context.Context, kinds []person.Kind) string {
	parts := collect.Map(kinds, func(kind person.Kind) string { return sharedThings[kind].in(ctx) })
	separator := "; "
	if languageOf(ctx) == locale.Chinese {
		separator = "；"
	}
	return seen.with(ctx, strings.Join(parts, separator))
}

func toReview(ctx context.Context, o *order.Order) *model.OrderReview {
	if o.Review == nil {
		return nil
	}
	return &model.OrderReview{
		Held: o.UnderReview(), Reasons: o.Review.Kinds, Since: o.Review.Since, Until: o.Review.Until(),
		Text: reviewText(ctx, o.Review.Kinds), Source: o,
	}
}

func (r *Resolver) clusters(ctx context.Context, v *sale.Sale, first int, after *string) (*model.OrderClusterConnection,
	error) {
	from, err := cursor.Parse(after, order.ParseClusterPosition)
	if err != nil {
		return nil, err
	}
	page, _, err := listing[order.Cluster]{
		first: first, begun: after != nil,
		read: func(ctx context.Context, limit int) ([]order.Cluster, error) {
			return r.Orders.Clusters(ctx, order.ClustersInput{Sale: v.ID, After: from, Limit: limit})
		},
		cursor: func(c order.Cluster) string { return c.Position().String() },
		count:  func(context.Context) (int, error) { return 0, nil },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, func(c order.Cluster) *model.OrderCluster {
		return &model.OrderCluster{
			Kind: c.Kind, Label: c.Label, Accounts: c.Accounts, Orders: c.Orders, Units: c.Units, UnpaidOrders: c.Unpaid,
			HeldOrders:          c.Held,
			FirstAfterOpeningMs: sinceOpening(v, c.First), LastAfterOpeningMs: sinceOpening(v, c.Last),
		}
	}, func(n *model.OrderCluster, cursor string) *model.OrderClusterEdge {
		return &model.OrderClusterEdge{Cursor: cursor, Node: n}
	})
	return &model.OrderClusterConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info}, nil
}

// sinceOpening returns the milliseconds from the opening of a sale, as far as an Int reaches.
func sinceOpening(v *sale.Sale, at time.Time) int {
	return int(min(max(at.Sub(v.StartsAt).Milliseconds(), 0), math.MaxInt32))
}
