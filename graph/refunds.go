package graph

import (
	"context"

	"github.com/google/uuid"

	"seckill/graph/model"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/payment"
	"seckill/internal/storefront"
)

// refundPage parses the page arguments of a list of refunds.
func refundPage(first *int, after *string, last *int, before *string) (payment.RefundList, error) {
	in := payment.RefundList{Limit: storefront.DefaultPage}
	switch {
	case first != nil && last != nil:
		return in, fault.New(fault.BadInput, "Give first or last, not both.")
	case first != nil:
		in.Limit = *first
	case last != nil:
		in.Limit, in.Backward = *last, true
	}
	for _, c := range []struct {
		text *string
		into *uuid.UUID
	}{{after, &in.After}, {before, &in.Before}} {
		if c.text == nil {
			continue
		}
		cursor, err := id.Parse(id.Refund, *c.text)
		if err != nil {
			return in, fault.Wrap(fault.BadInput, "Invalid cursor.", err)
		}
		*c.into = cursor
	}
	return in, nil
}

// refundFilter parses a filter. Refunds of the caller's own orders are never listed.
func refundFilter(ctx context.Context, f *model.RefundFilter) (payment.RefundFilter, error) {
	out := payment.RefundFilter{NotOf: auth.PrincipalFrom(ctx).UserID}
	if f == nil {
		return out, nil
	}
	if f.SaleID != nil {
		sale, err := id.Parse(id.Sale, *f.SaleID)
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
	out := &model.RefundConnection{Edges: make([]*model.RefundEdge, len(page.Refunds))}
	cursors := make([]string, len(page.Refunds))
	for i, f := range page.Refunds {
		cursors[i] = id.Format(id.Refund, f.ID)
		out.Edges[i] = &model.RefundEdge{Cursor: cursors[i], Node: toRefund(ctx, f)}
	}
	out.PageInfo = toPageInfo(cursors, page.HasNext, page.HasPrevious)
	out.TotalCount, err = totalOf(ctx, func(ctx context.Context) (int, error) { return r.Payments.CountRefunds(ctx, in.RefundFilter) })
	return out, err
}

// refundDecision parses the input of decideRefund.
func refundDecision(ctx context.Context, in model.DecideRefundInput) (payment.Decision, error) {
	refund, err := id.Parse(id.Refund, in.RefundID)
	if err != nil {
		return payment.Decision{}, unknown("refundId")
	}
	out := payment.Decision{
		Refund: refund, Operator: auth.PrincipalFrom(ctx).UserID, Approve: in.Approve, Note: deref(in.Note), KeepUnits: !in.Restock,
	}
	if in.Amount != nil {
		confirmed := amount(in.Amount)
		out.Amount = &confirmed
	}
	return out, nil
}
