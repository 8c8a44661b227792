package graph

import (
	"context"
	"math"
	"strings"
	"time"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/locale"
)

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
