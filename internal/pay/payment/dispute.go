package payment

import (
	"context"
	"fmt"
	"log/slog"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/internal/buy/order"
	"seckill/internal/platform/collect"
)

// eventKinds are the kinds that providers may report.
var eventKinds = []EventKind{
	EventSucceeded, EventAuthorized, EventDeclined, EventAttemptDeclined, EventClosed, EventRefundFailed,
	EventRefunded, EventDisputed,
	EventDisputeWon, EventDisputeLost,
}

// Dispute is how far the dispute of a payment has got.
type Dispute string

// States of a dispute.
const (
	NotDisputed Dispute = "NONE"
	DisputeOpen Dispute = "OPEN"
	DisputeWon  Dispute = "WON"
	DisputeLost Dispute = "LOST" // the bank has taken the money back
)

// disputes maps the kinds of events about disputes to the entries of the order's log.
var disputes = map[EventKind]order.Code{
	EventDisputed: order.CodePaymentDisputed, EventDisputeWon: order.CodeDisputeWon,
	EventDisputeLost: order.CodeDisputeLost,
}

// match completes an event that names its payment by the transaction alone. It reports
// false for a transaction that is not one of the shop's.
func (s *Service) match(ctx context.Context, provider string, e *Event) (bool, error) {
	if !e.Payment.IsZero() || e.Transaction == "" {
		return true, nil
	}
	p, err := one(s.cfg.DB.Ent.Payment.Query().Where(entpayment.Provider(provider), entpayment.Transaction(e.Transaction)).
		First(ctx))
	if err != nil || p == nil {
		return false, err
	}
	e.Payment = p.ID
	return true, nil
}

// settleDispute records a dispute at its payment, and notes it in the log of its order, which
// operators and the buyer see. An open one waits for an operator. The order stays as it is: a
// dispute is argued in the provider's dashboard.
func (s *Service) settleDispute(ctx context.Context, e *ent.PaymentEvent, p *Payment, code order.Code) (done, error) {
	result, err := s.finish(ctx, e, outcomeDisputed, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		update := tx.Payment.Update().Where(entpayment.ID(p.ID)).SetUpdatedAt(s.now()).AddVersion(1)
		switch EventKind(e.Kind) {
		case EventDisputeWon:
			update.SetDispute(entpayment.DisputeWON)
		case EventDisputeLost:
			update.SetDispute(entpayment.DisputeLOST)
		default:
			decided, err := decidedSince(ctx, tx, e)
			if err != nil {
				return nil, err
			}
			if !decided { // else the report of the decision came first
				update.SetDispute(entpayment.DisputeOPEN)
			}
		}
		if err := update.Exec(ctx); err != nil {
			return nil, err
		}
		return s.noteOrder(ctx, tx, p, order.Entry{Code: code})
	})
	if err != nil {
		return done{}, fmt.Errorf("note dispute of payment %s: %w", p.ID, err)
	}
	s.cfg.Log.WarnContext(ctx, "payment disputed", slog.String("payment", p.ID.String()), slog.String("state",
		string(e.Kind)))
	return result, nil
}

// decidedSince reports whether a dispute of the payment was decided after it was opened. A
// payment may be disputed again after a decision.
func decidedSince(ctx context.Context, tx *ent.Tx, opened *ent.PaymentEvent) (bool, error) {
	return tx.PaymentEvent.Query().Where(
		paymentevent.PaymentID(opened.PaymentID), paymentevent.KindIn(paymentevent.KindDISPUTE_WON,
			paymentevent.KindDISPUTE_LOST),
		paymentevent.HappenedAtGTE(opened.HappenedAt),
	).Exist(ctx)
}

// Disputed returns at most limit payments whose dispute is not decided, oldest first.
func (s *Service) Disputed(ctx context.Context, limit int) ([]*Payment, error) {
	rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.DisputeEQ(entpayment.DisputeOPEN)).
		Order(ent.Asc(entpayment.FieldID)).Limit(limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read disputed payments: %w", err)
	}
	return collect.Map(rows, fromRow), nil
}
