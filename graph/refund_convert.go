package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/storefront"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// refundPage parses the page arguments of a list of refunds.
func refundPage(p storefront.PageInput) (in payment.RefundList, err error) {
	if in.Limit, in.Backward, err = p.Size(); err != nil {
		return in, err
	}
	if in.After, err = cursor.Parse(p.After, id.ParseRefund); err != nil {
		return in, err
	}
	in.Before, err = cursor.Parse(p.Before, id.ParseRefund)
	return in, err
}

// refundFilter parses a filter. Refunds of the caller's own orders are never listed.
func refundFilter(ctx context.Context, f *model.RefundFilter) (payment.RefundFilter, error) {
	out := payment.RefundFilter{NotOf: auth.PrincipalFrom(ctx).UserID}
	if f == nil {
		return out, nil
	}
	if f.SaleID != nil {
		sale, err := id.ParseSale(*f.SaleID)
		if err != nil {
			return out, fault.Wrap(fault.BadInput, "filter.saleId is not the id of a sale.", err)
		}
		out.Sale = sale
	}
	for status, state := range refundStates {
		for _, wanted := range f.States {
			if state == wanted {
				out.Statuses = append(out.Statuses, status)
			}
		}
	}
	return out, nil
}

func (r *Resolver) refundConnection(ctx context.Context, in payment.RefundList) (*model.RefundConnection, error) {
	page, err := r.Payments.ListRefunds(ctx, in)
	if err != nil {
		return nil, err
	}
	out := toPage(
		pageOf(page.Refunds, func(f *payment.Refund) string { return f.ID.Public() }, page.HasNext, page.HasPrevious),
		func(f *payment.Refund) *model.Refund { return toRefund(ctx, f) },
		func(n *model.Refund, cursor string) *model.RefundEdge {
			return &model.RefundEdge{Cursor: cursor, Node: n}
		})
	total, err := totalOf(ctx, func(ctx context.Context) (int, error) {
		return r.Payments.CountRefunds(ctx, in.RefundFilter)
	})
	return &model.RefundConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, err
}

func refundDecision(ctx context.Context, in model.DecideRefundInput) (payment.Decision, error) {
	refund, err := id.ParseRefund(in.RefundID)
	if err != nil {
		return payment.Decision{}, unknown("refundId")
	}
	out := payment.Decision{
		Refund: refund, Operator: auth.PrincipalFrom(ctx).UserID, Approve: in.Approve, Note: deref(in.Note),
		KeepUnits: !in.Restock,
	}
	if in.Amount != nil {
		confirmed := amount(in.Amount)
		out.Amount = &confirmed
	}
	return out, nil
}
