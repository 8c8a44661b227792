package payment

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/order"
)

// eventKinds are the kinds that providers may report.
var eventKinds = []EventKind{
	EventSucceeded, EventDeclined, EventClosed, EventRefundFailed, EventDisputed, EventDisputeWon, EventDisputeLost,
}

// disputes maps the kinds of events about disputes to the entries of the order's log.
var disputes = map[EventKind]order.Code{
	EventDisputed: order.CodePaymentDisputed, EventDisputeWon: order.CodeDisputeWon, EventDisputeLost: order.CodeDisputeLost,
}

// match completes an event that names its payment by the transaction alone. It reports
// false for a transaction that is not one of the shop's.
func (s *Service) match(ctx context.Context, provider string, e *Event) (bool, error) {
	if e.Payment != uuid.Nil || e.Transaction == "" {
		return true, nil
	}
	p, err := one(s.db.Ent.Payment.Query().Where(entpayment.Provider(provider), entpayment.Transaction(e.Transaction)).First(ctx))
	if err != nil || p == nil {
		return false, err
	}
	e.Payment = p.ID
	return true, nil
}

// settleDispute notes a dispute in the log of its order, which operators and the buyer see.
// The order stays as it is: a dispute is argued in the provider's dashboard.
func (s *Service) settleDispute(ctx context.Context, e *ent.PaymentEvent, p *Payment, code order.Code) (done, error) {
	result, err := s.finish(ctx, e, outcomeDisputed, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		return s.noteOrder(ctx, tx, p.Order, order.Entry{Code: code})
	})
	if err != nil {
		return done{}, fmt.Errorf("note dispute of payment %s: %w", p.ID, err)
	}
	s.log.WarnContext(ctx, "payment disputed", slog.String("payment", p.ID.String()), slog.String("state", string(e.Kind)))
	return result, nil
}
