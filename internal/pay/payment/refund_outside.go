package payment

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/ent/predicate"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// outsideReason is the reason of refunds that were made on the provider's pages.
const outsideReason = "refunded on the provider's pages"

// ownMoney matches refunds of the money that a payment received by its own transaction.
func ownMoney(p *Payment) []predicate.Refund {
	return []predicate.Refund{entrefund.PaymentID(p.ID),
		entrefund.Or(entrefund.Transaction(""), entrefund.CauseEQ(entrefund.CauseOUTSIDE))}
}

// back is what went back of a payment, as the shop knows it.
type back struct {
	minor   int64   // by the provider
	outside int64   // of it, on the provider's pages
	waiting *Refund // requested, or given up by the provider: no money has gone back for it
	sending bool    // a refund is on its way
}

// outside reports whether a refund was made on the provider's pages.
func (r *Refund) outside() bool { return r.Reason == outsideReason || r.Decision == outsideReason }

func backOf(ctx context.Context, refunds *ent.RefundClient, p *Payment) (known back, err error) {
	rows, err := refunds.Query().Where(ownMoney(p)...).All(ctx)
	if err != nil {
		return back{}, fmt.Errorf("read refunds of payment %s: %w", p.ID, err)
	}
	for _, row := range rows {
		switch r := refundFromRow(row); r.Status {
		case RefundSucceeded:
			known.minor += r.AmountMinor
			if r.outside() {
				known.outside += r.AmountMinor
			}
		case RefundSending:
			known.sending = true
		case RefundRequested, RefundGivenUp:
			known.waiting = r
		case RefundRejected, RefundSettled:
		}
	}
	return known, nil
}

// settleRefunded records money that went back on the provider's pages: what the provider says
// went back of the payment, less what the shop knows of. It never sends money.
//
// When all money is back, the order is refunded as by a void, and its units return to stock.
// A part that is the amount of a refund that waits ends that refund. Any other part leaves the
// order and its units as they are, and waits for an operator: it may be for anything.
func (s *Service) settleRefunded(ctx context.Context, e *ent.PaymentEvent, p *Payment) (done, error) {
	switch {
	case e.Transaction != "" && p.Transaction != "" && e.Transaction != p.Transaction:
		return s.finish(ctx, e, outcomeRepeated, nil) // of other money, which never paid the order
	case p.Status != Succeeded && p.Status != Refunded:
		return done{}, putOffError{why: "the payment is not known as paid"}
	}
	known, err := backOf(ctx, s.cfg.DB.Ent.Refund, p)
	if err != nil {
		return done{}, err
	}
	excess := e.AmountMinor - known.minor
	if isPart(e.EventID) {
		if excess, err = s.unnoted(ctx, p, known, e.AmountMinor); err != nil {
			return done{}, err
		}
	}
	whole := known.minor+excess >= p.AmountMinor
	switch {
	case e.Currency != p.Currency, excess <= 0:
		return s.finish(ctx, e, outcomeRepeated, nil)
	case known.sending:
		return done{}, putOffError{why: "a refund is on its way"}
	case known.waiting != nil && (known.waiting.AmountMinor == excess || whole && known.waiting.AmountMinor < excess):
		return done{}, s.endOutside(ctx, known.waiting, p)
	}
	o, err := s.cfg.Orders.Reload(ctx, p.Order)
	switch {
	case err != nil:
		return done{}, err
	case o == nil:
		return done{}, putOffError{why: "no such order", hold: holdUnknown}
	case whole && o.Status == order.Refunding:
		return done{}, putOffError{why: "another refund is not finished"}
	}
	what := outcomeRefundedPart
	if whole {
		what = outcomeRefundedWhole
	}
	s.cfg.Log.WarnContext(ctx, "money went back on the provider's pages", slog.String("payment", p.ID.String()),
		slog.Int64("minor", excess), slog.Bool("whole", whole))
	return s.finish(ctx, e, what, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		to := entpayment.StatusSUCCEEDED
		if whole {
			to = entpayment.StatusREFUNDED
		}
		if err := s.mark(ctx, tx, p, to, nil); err != nil { // of two at once, the second one counts the first
			return nil, err
		}
		draft := refundDraft{payment: p, cause: Outside, status: RefundSucceeded, key: ownKey("outside", e.ID),
			reason: outsideReason, amount: excess}
		if whole && o.Status == order.Paid {
			return s.refundedWhole(ctx, tx, o, draft)
		}
		draft.transaction = "outside:" + e.ID.String()
		if err := s.newRefund(ctx, tx, draft); err != nil {
			return nil, err
		}
		return s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodeRefundSettled,
			Note: money.Amount{Minor: excess, Currency: p.Currency}.String()})
	})
}

// refundedWhole refunds the units of an order that are left, with money that is back already.
func (s *Service) refundedWhole(ctx context.Context, tx *ent.Tx, o *order.Order, draft refundDraft) (*order.Order,
	error) {
	entry := order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodeRefunded, Units: o.Left()}
	draft.id, draft.cause, draft.restock, draft.units = id.New[id.Refund](), Voided, true, o.Left()
	begun, err := s.apply(ctx, tx, order.Move{Order: o, To: order.Refunding, At: s.now(), Entry: order.Entry{
		By: entry.By, Code: order.CodeRefundSettled, Units: entry.Units,
	}})
	if err != nil {
		return nil, err
	}
	if err := s.newRefund(ctx, tx, draft); err != nil {
		return nil, err
	}
	row, err := tx.Refund.Get(ctx, draft.id)
	if err != nil {
		return nil, fmt.Errorf("read refund %s: %w", draft.id, err)
	}
	return s.endRefund(ctx, tx, refundFromRow(row), begun, entry)
}

// endOutside ends a refund that an operator has made on the provider's pages instead. The event
// is then decided again.
func (s *Service) endOutside(ctx context.Context, r *Refund, p *Payment) error {
	moved, err := s.sent(ctx, r, p)
	if err != nil {
		return err
	}
	s.metrics.result(p.Provider, resultRefunded)
	s.cfg.AfterCommit.Publish(ctx, moved)
	s.reportChange(ctx)
	return order.ErrMoved
}

// noteRefunded settles what a provider says went back of a payment, and reports whether the shop
// did not know it.
func (s *Service) noteRefunded(ctx context.Context, p *Payment, e Event) (unknown bool, err error) {
	known, err := backOf(ctx, s.cfg.DB.Ent.Refund, p)
	if err != nil || !isPart(e.ID) && (e.AmountMinor <= known.minor || known.sending) {
		return false, err
	}
	e.Payment, e.Kind, e.Transaction = p.ID, EventRefunded, p.Transaction
	stored, err := s.store(ctx, p.Provider, e)
	if err != nil {
		return false, fmt.Errorf("store refund of payment %s: %w", p.ID, err)
	}
	unknown = true
	if isPart(e.ID) {
		excess, err := s.unnoted(ctx, p, known, e.AmountMinor)
		if err != nil {
			return false, err
		}
		unknown = excess > 0
	}
	return unknown, s.Settle(ctx, stored)
}

// partPrefix begins the ids of events about one refund.
const partPrefix = "refunded:"

// RefundEventID returns the id of an event about one refund, by the provider's number of the
// refund: its report and its line in a bill are one event.
func RefundEventID(number string) string {
	return partPrefix + fault.Shorten(number, maxEventID-len(partPrefix))
}

// isPart reports whether an event is about one refund. The amount of others is what went back
// of their payment so far.
func isPart(event string) bool { return strings.HasPrefix(event, partPrefix) }

// fresh completes an event about one refund, and reports false for one that is known or of the
// shop.
func (s *Service) fresh(ctx context.Context, provider string, e *Event) (bool, error) {
	if e.Kind != EventRefundedPart {
		return true, nil
	}
	if known, err := s.known(ctx, provider, e.ID); err != nil || known != nil {
		return false, err
	}
	rows, err := s.cfg.DB.Ent.Refund.Query().Where(entrefund.PaymentID(e.Payment)).All(ctx)
	if err != nil {
		return false, fmt.Errorf("read refunds of payment %s: %w", e.Payment, err)
	}
	for _, row := range rows {
		if refundFromRow(row).made(e.Refund) {
			return false, nil
		}
	}
	e.Kind, e.Refund = EventRefunded, id.Refund{}
	return true, nil
}

// unnoted returns how much of one refund, whose event is stored, is not among the shop's refunds:
// several may be reported before the first of them is settled, and reports of sums may have
// noted some.
func (s *Service) unnoted(ctx context.Context, p *Payment, known back, amount int64) (int64, error) {
	parts, err := s.cfg.DB.Ent.PaymentEvent.Query().Where(
		paymentevent.Provider(p.Provider), paymentevent.PaymentID(p.ID), paymentevent.KindEQ(paymentevent.KindREFUNDED),
		paymentevent.EventIDHasPrefix(partPrefix), paymentevent.Currency(p.Currency),
	).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read refunds reported of payment %s: %w", p.ID, err)
	}
	left := -known.outside
	for _, part := range parts {
		left += part.AmountMinor
	}
	return min(amount, left, p.AmountMinor-known.minor), nil
}

// toRefund returns what is left of a payment that the provider has not given back.
func (s *Service) toRefund(ctx context.Context, p *Payment) (int64, error) {
	rows, err := s.cfg.DB.Ent.Refund.Query().Where(ownMoney(p)...).
		Where(entrefund.StatusIn(entrefund.StatusSUCCEEDED, entrefund.StatusSETTLED)).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read refunds of payment %s: %w", p.ID, err)
	}
	left := p.AmountMinor
	for _, row := range rows {
		left -= row.AmountMinor
	}
	return left, nil
}

// Settlement says that the money of a failed refund was given back outside its provider.
type Settlement struct {
	Refund   id.Refund
	Operator id.User
	Reason   string // how; the buyer sees it
}

// SettleRefund records that the money of a failed refund was given back outside its provider,
// which keeps the money of the payment. The order ends as with any refund. Repeating it changes
// nothing.
func (s *Service) SettleRefund(ctx context.Context, in Settlement) (RefundResult, error) {
	if err := remark(&in.Reason, 1, "reason"); err != nil {
		return RefundResult{}, err
	}
	return racing(func() (RefundResult, error) { return s.trySettleRefund(ctx, in) })
}

func (s *Service) trySettleRefund(ctx context.Context, in Settlement) (RefundResult, error) {
	r, p, o, err := s.refundOf(ctx, in.Refund)
	if err != nil {
		return RefundResult{}, err
	}
	switch {
	case p.User == in.Operator:
		return RefundResult{Order: o, Refund: r}, OwnOrder{fault.Refused{Why: fault.Conflict, At: refundIDField}}
	case r.Status == RefundSettled:
		return RefundResult{Order: o, Refund: r, Replayed: true}, nil
	case r.Status != RefundGivenUp:
		return RefundResult{Order: o, Refund: r}, fault.Refused{Why: fault.Conflict, At: refundIDField}
	}
	moved, err := s.settleRefund(ctx, r, o, in)
	if err != nil {
		return RefundResult{}, err
	}
	s.cfg.AfterCommit.Publish(ctx, moved)
	s.reportChange(ctx)
	r, err = s.Refund(ctx, r.ID)
	return RefundResult{Order: moved, Refund: r}, err
}

func (s *Service) settleRefund(ctx context.Context, r *Refund, o *order.Order, in Settlement) (moved *order.Order,
	err error) {
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeRefundSettled,
		Note: in.Reason, Units: r.Quantity}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := s.now()
		n, err := tx.Refund.Update().Where(entrefund.ID(r.ID), entrefund.Version(r.Version),
			entrefund.StatusEQ(entrefund.StatusFAILED)).
			SetStatus(entrefund.StatusSETTLED).SetDecidedBy(in.Operator).SetDecidedAt(now).SetDecision(in.Reason).
			SetUpdatedAt(now).AddVersion(1).Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return order.ErrMoved
		}
		moved, err = s.endRefund(ctx, tx, r, o, entry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("settle refund %s: %w", r.ID, err)
	}
	return moved, nil
}

// endRefund moves the order of a refund whose money is back with the buyer, where the refund
// is of units and no former attempt has moved it; otherwise it notes it. An entry that was not drawn has
// no order.
func (s *Service) endRefund(ctx context.Context, tx *ent.Tx, r *Refund, o *order.Order,
	entry order.Entry) (moved *order.Order, err error) {
	if o != nil && r.Cause.moves() && !r.Applied && o.Status != order.Refunded {
		move := r.move(o)
		move.At, move.Entry = s.now(), entry
		if err := tx.Refund.UpdateOneID(r.ID).SetApplied(true).Exec(ctx); err != nil {
			return nil, fmt.Errorf("mark refund %s as applied: %w", r.ID, err)
		}
		moved, err = s.apply(ctx, tx, move)
	} else {
		moved, err = order.Note(ctx, tx, o, s.now(), entry)
	}
	if err != nil || moved == nil {
		return nil, err
	}
	return moved, s.writeRefunded(ctx, tx, moved, r)
}
