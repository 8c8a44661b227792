package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
)

// retryRefund is the pause before a refund is sent again; it doubles.
const retryRefund = 500 * time.Millisecond

// send sends a refund to the provider, and records its success.
func (s *Service) send(ctx context.Context, r *Refund) error {
	p, err := s.Payment(ctx, r.Payment)
	if err != nil || p == nil {
		return errors.Join(err, fmt.Errorf("refund %s: read its payment", r.ID))
	}
	provider, err := s.provider(p.Provider)
	if err != nil {
		return err
	}
	known, err := s.knownTo(ctx, p)
	if err != nil {
		return err
	}
	err = s.ask(ctx, p.Provider, "refund", func(ctx context.Context) error {
		return provider.Refund(ctx, RefundInput{
			Refund: r.key(), Paid: known, Transaction: r.Transaction, AmountMinor: r.AmountMinor, Currency: r.Currency,
			Reason: r.Reason,
		})
	})
	if gaveUp, ok := errors.AsType[RefundFailed](err); ok {
		return s.giveUp(ctx, r, gaveUp.Why)
	}
	if err != nil {
		return err
	}
	for range maxRaces {
		var moved *order.Order
		moved, err = s.sent(ctx, r, p)
		if err == nil {
			s.metrics.result(p.Provider, resultRefunded)
			if moved != nil {
				s.cfg.Publisher.Publish(ctx, moved)
			}
			return nil
		}
		if !errors.Is(err, order.ErrMoved) {
			return err
		}
		if r, err = s.Refund(ctx, r.ID); err != nil || r.Status != RefundSending {
			return err // another process recorded it
		}
		if p, err = s.Payment(ctx, p.ID); err != nil {
			return err
		}
	}
	return err
}

// sent records that money was refunded; where the refund ends the order, the order
// moves.
func (s *Service) sent(ctx context.Context, r *Refund, p *Payment) (moved *order.Order, err error) {
	o, err := s.refundedOrder(ctx, r, p)
	if err != nil {
		return nil, err
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		moved = nil
		if r.Transaction == "" {
			to, err := afterRefund(ctx, tx, r, p)
			if err != nil {
				return err
			}
			if err := s.mark(ctx, tx, p, to, nil); err != nil {
				return err
			}
		}
		update := tx.Refund.Update().Where(entrefund.ID(r.ID), entrefund.Version(r.Version),
			entrefund.StatusEQ(entrefund.Status(r.Status))).
			SetStatus(entrefund.StatusSUCCEEDED).AddVersion(1).SetUpdatedAt(s.now())
		if r.Status != RefundSending { // made on the provider's pages
			update.SetDecision(outsideReason).SetDecidedAt(s.now())
		}
		n, err := update.Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return order.ErrMoved
		}
		moved, err = s.endRefund(ctx, tx, r, o, order.Entry{By: order.Actor{Kind: order.Provider}, Code: order.CodeRefunded,
			Units: r.Quantity})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note refund %s: %w", r.ID, err)
	}
	return moved, nil
}
