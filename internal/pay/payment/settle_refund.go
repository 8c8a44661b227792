package payment

import (
	"context"
	"fmt"

	"seckill/ent"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

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
	s.cfg.Publisher.Publish(ctx, moved)
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
