package graph

import (
	"cmp"
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/buy/storefront"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/cursor"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/staff/operator"
)

// address returns the IP address of a client; "" when it is not known.
func (r *Resolver) address(ctx context.Context) string {
	if addr := auth.ClientAddr(ctx); addr.IsValid() {
		return addr.String()
	}
	return ""
}

func toOption(ctx context.Context, o payment.Option) *model.PaymentOption {
	label := text{o.Label.English, cmp.Or(o.Label.Chinese, o.Label.English)}
	out := &model.PaymentOption{ID: o.ID, DisplayName: label.in(ctx), Kind: o.Kind, Icon: o.Icon,
		Device: cmp.Or(o.Device, payment.AnyDevice)}
	if o.Away {
		out.UnavailableReason = orAbsent(optionAway.in(ctx))
	}
	return out
}

func toOptions(ctx context.Context, list []payment.Option) []*model.PaymentOption {
	return collect.Map(list, func(o payment.Option) *model.PaymentOption { return toOption(ctx, o) })
}

// paymentStatuses maps statuses to those of the API; a payment that its provider has not
// confirmed yet is pending like any other.
var paymentStatuses = map[payment.Status]model.PaymentStatus{
	payment.Creating: model.PaymentStatusPending, payment.Pending: model.PaymentStatusPending,
	payment.Authorized: model.PaymentStatusAuthorized,
	payment.Closed:     model.PaymentStatusClosed, payment.Succeeded: model.PaymentStatusSucceeded,
	payment.Refunded: model.PaymentStatusRefunded,
}

func (r *Resolver) toPayment(ctx context.Context, p *payment.Payment) *model.Payment {
	if p == nil {
		return nil
	}
	out := &model.Payment{
		ID: p.ID, Status: paymentStatuses[p.Status],
		Amount:    toMoney(money.Amount{Minor: p.AmountMinor, Currency: p.Currency}),
		Option:    toOption(ctx, r.Payments.Option(p.Provider)),
		CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt, PaidAt: p.PaidAt,
		QRCode: orAbsent(p.QRCode), RedirectURL: orAbsent(p.RedirectURL), Transaction: orAbsent(p.Transaction),
	}
	declined(ctx, p, out)
	if e, ok := r.Payments.Embedding(p); ok && auth.PrincipalFrom(ctx).UserID == p.User {
		out.Embedded = &model.EmbeddedPayment{ClientSecret: p.ClientSecret, PublishableKey: e.Key, ScriptURL: e.Script}
	}
	if p.Fee != nil {
		out.Fee = toMoney(*p.Fee)
	}
	if state, ok := disputeStates[p.Dispute]; ok {
		out.Dispute = &state
	}
	if p.Declined && p.Status == payment.Closed {
		out.Failure = basicError(ctx, fault.PaymentDeclined, nil)
	}
	return out
}

// declined fills in why the provider declined the last attempt of a payment without money.
func declined(ctx context.Context, p *payment.Payment, out *model.Payment) {
	if p.Decline == "" || p.Status == payment.Succeeded || p.Status == payment.Refunded {
		return
	}
	words := declineTexts[p.Decline].in(ctx)
	out.FailureCode, out.FailureText = &p.Decline, &words
}

func (r *Resolver) toPayments(ctx context.Context, list []*payment.Payment) []*model.Payment {
	return collect.Map(list, func(p *payment.Payment) *model.Payment { return r.toPayment(ctx, p) })
}

// disputeStates maps states of disputes to those of the API.
var disputeStates = map[payment.Dispute]model.PaymentDispute{
	payment.DisputeOpen: model.PaymentDisputeOpen, payment.DisputeWon: model.PaymentDisputeWon,
	payment.DisputeLost: model.PaymentDisputeLost,
}

func toLedger(list []payment.LedgerEntry) []*model.LedgerEntry {
	return collect.Map(list, func(e payment.LedgerEntry) *model.LedgerEntry {
		return &model.LedgerEntry{
			At: e.At, Kind: e.Kind, Amount: toMoney(e.Amount), PaymentID: e.Payment, Provider: e.Provider,
			Transaction: orAbsent(e.Transaction),
		}
	})
}

func toTotals(list []payment.Totals) []*model.MoneyTotals {
	out := make([]*model.MoneyTotals, len(list))
	for i, t := range list {
		in := func(minor int64) *model.Money { return toMoney(money.Amount{Minor: minor, Currency: t.Currency}) }
		out[i] = &model.MoneyTotals{
			Charged: in(t.Charged), Refunded: in(t.Refunded), Fees: in(t.Fees), Net: in(t.Net()), FeesUnknown: t.FeesUnknown,
		}
	}
	return out
}

// refundStatuses maps statuses to those of the API: a refund that was approved but not
// completed, or failed, is shown as requested; the order shows REFUNDING.
var refundStatuses = map[payment.RefundStatus]model.RefundStatus{
	payment.RefundRequested: model.RefundStatusRequested, payment.RefundSending: model.RefundStatusRequested,
	payment.RefundRejected: model.RefundStatusRejected, payment.RefundSucceeded: model.RefundStatusSucceeded,
	payment.RefundGivenUp: model.RefundStatusRequested, payment.RefundSettled: model.RefundStatusSucceeded,
}

func toRefund(ctx context.Context, r *payment.Refund) *model.Refund {
	if r == nil {
		return nil
	}
	out := &model.Refund{
		ID: r.ID, Status: refundStatuses[r.Status], Reason: r.Reason, CreatedAt: r.CreatedAt, DecidedAt: r.DecidedAt,
		Amount: toMoney(money.Amount{Minor: r.AmountMinor, Currency: r.Currency}), Transaction: orAbsent(r.Transaction),
		State: refundStates[r.Status], Decision: orAbsent(r.Decision), Failure: orAbsent(r.Failure), Source: r,
	}
	if r.Quantity > 0 {
		out.Quantity = &r.Quantity
	}
	if reason, ok := ownReasons[r.Cause]; ok && r.DecidedBy == nil {
		out.Reason = reason.in(ctx)
	}
	return out
}

// refundStates maps statuses to how far a refund has got.
var refundStates = map[payment.RefundStatus]model.RefundState{
	payment.RefundRequested: model.RefundStateRequested, payment.RefundSending: model.RefundStateApproved,
	payment.RefundRejected: model.RefundStateRefused, payment.RefundSucceeded: model.RefundStateDone,
	payment.RefundGivenUp: model.RefundStateFailed, payment.RefundSettled: model.RefundStateSettled,
}

// ownReasons are the reasons of refunds that begin by themselves.
var ownReasons = map[payment.Cause]text{
	payment.Late:   {"The money came after the order had ended.", "款项到账时订单已结束。"},
	payment.Double: {"The order was paid twice.", "订单被重复支付。"},
}

func toRefunds(ctx context.Context, list []*payment.Refund) []*model.Refund {
	return collect.Map(list, func(r *payment.Refund) *model.Refund { return toRefund(ctx, r) })
}

func toTimeline(ctx context.Context, o *order.Order, entries []order.LogEntry) []*model.OrderLogEntry {
	return collect.Map(entries, func(e order.LogEntry) *model.OrderLogEntry {
		return &model.OrderLogEntry{At: e.At, Status: e.Status, Note: orAbsent(remark(ctx, o, e.Entry))}
	})
}

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

func toHeld(h *payment.Held) *model.HeldPayment {
	if h == nil {
		return nil
	}
	return &model.HeldPayment{
		ID: h.ID, At: h.At, Amount: toMoney(money.Amount{Minor: h.AmountMinor, Currency: h.Currency}),
		Provider: h.Provider, Transaction: h.Transaction, Reason: h.Why, Source: *h,
	}
}

// heldPage parses the arguments of a page.
func heldPage(first int, after, provider *string) (payment.HeldList, error) {
	from, err := cursor.Parse(after, id.ParseHeld)
	return payment.HeldList{After: from, Limit: first, Provider: deref(provider)}, err
}

func (r *Resolver) heldConnection(ctx context.Context, in payment.HeldList) (*model.HeldPaymentConnection, error) {
	page, total, err := listing[payment.Held]{
		first: in.Limit, begun: !in.After.IsZero(),
		read: func(ctx context.Context, limit int) ([]payment.Held, error) {
			in.Limit = limit
			return r.Payments.HeldEvents(ctx, in)
		},
		cursor: func(h payment.Held) string { return h.ID.Public() },
		count:  func(ctx context.Context) (int, error) { return r.Payments.CountHeld(ctx, in) },
	}.page(ctx)
	if err != nil {
		return nil, err
	}
	out := toPage(page, func(h payment.Held) *model.HeldPayment { return toHeld(&h) },
		func(n *model.HeldPayment, cursor string) *model.HeldPaymentEdge {
			return &model.HeldPaymentEdge{Cursor: cursor, Node: n}
		})
	return &model.HeldPaymentConnection{Nodes: out.nodes, Edges: out.edges, PageInfo: out.info, TotalCount: total}, nil
}

// heldNode returns money that waits for an operator, for operators.
func (r *Resolver) heldNode(ctx context.Context, u id.Held) (model.Node, error) {
	if !isOperator(ctx) {
		return nil, nil
	}
	h, err := r.Payments.HeldEvent(ctx, u)
	return orNil(toHeld(h)), err
}

// endHeld ends held money, or asks for a second person, and returns the order that was to be
// paid, or nil.
func (r *Resolver) endHeld(ctx context.Context, kind operator.Kind, heldID, note string) (*model.Order,
	*model.Intervention, error) {
	held, err := id.ParseHeld(heldID)
	if err != nil {
		return nil, nil, unknown("heldPaymentId")
	}
	done, err := r.Operator.Return(ctx, operator.ReturnInput{By: actor(ctx), Kind: kind, Held: held, Note: note})
	if err != nil {
		return nil, nil, err
	}
	if done.Payment.IsZero() {
		return nil, waits(done), nil
	}
	o, err := r.paidFor(ctx, done.Payment)
	return o, nil, err
}

// waits returns the request for a second person; nil = there is none.
func waits(done operator.Returned) *model.Intervention {
	if done.Intervention == nil || done.Intervention.State != operator.Requested {
		return nil
	}
	return toIntervention(done.Intervention)
}

// returnedOrder returns the order whose money was returned, or is to be.
func (r *Resolver) returnedOrder(ctx context.Context, done operator.Returned) *model.Order {
	if done.Order == nil && done.Intervention != nil && done.Intervention.Order != nil {
		if o, err := r.Orders.Order(ctx, *done.Intervention.Order); err == nil {
			return r.toOrder(o)
		}
	}
	return r.toOrder(done.Order)
}
