package graph

import (
	"cmp"
	"context"

	"seckill/graph/model"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/money"
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
	out := make([]*model.PaymentOption, len(list))
	for i, o := range list {
		out[i] = toOption(ctx, o)
	}
	return out
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
	out := make([]*model.Payment, len(list))
	for i, p := range list {
		out[i] = r.toPayment(ctx, p)
	}
	return out
}

// disputeStates maps states of disputes to those of the API.
var disputeStates = map[payment.Dispute]model.PaymentDispute{
	payment.DisputeOpen: model.PaymentDisputeOpen, payment.DisputeWon: model.PaymentDisputeWon,
	payment.DisputeLost: model.PaymentDisputeLost,
}

func toLedger(list []payment.LedgerEntry) []*model.LedgerEntry {
	out := make([]*model.LedgerEntry, len(list))
	for i, e := range list {
		out[i] = &model.LedgerEntry{
			At: e.At, Kind: e.Kind, Amount: toMoney(e.Amount), PaymentID: e.Payment, Provider: e.Provider,
			Transaction: orAbsent(e.Transaction),
		}
	}
	return out
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
	out := make([]*model.Refund, len(list))
	for i, r := range list {
		out[i] = toRefund(ctx, r)
	}
	return out
}

func toTimeline(ctx context.Context, o *order.Order, entries []order.LogEntry) []*model.OrderLogEntry {
	out := make([]*model.OrderLogEntry, len(entries))
	for i, e := range entries {
		out[i] = &model.OrderLogEntry{At: e.At, Status: e.Status, Note: orAbsent(remark(ctx, o, e.Entry))}
	}
	return out
}
