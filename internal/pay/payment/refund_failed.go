package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/google/uuid"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	// maxAttempts bounds the attempts of one refund.
	maxAttempts = 20
	// maxReason bounds the stored words of a provider, in bytes.
	maxReason = 200
)

// key returns the provider's idempotency key of the present attempt: a provider answers a
// repeated key with the failure that it answered before.
func (r *Refund) key() id.Refund {
	if r.Attempts <= 1 {
		return r.ID
	}
	return id.Refund(uuid.NewSHA1(r.ID.UUID(), []byte(strconv.Itoa(r.Attempts))))
}

// settleRefundFailed records that a refund failed, maybe after it had succeeded. Reports
// about former attempts change nothing.
func (s *Service) settleRefundFailed(ctx context.Context, e *ent.PaymentEvent, p *Payment) (done, error) {
	rows, err := s.cfg.DB.Ent.Refund.Query().Where(entrefund.PaymentID(p.ID)).All(ctx)
	if err != nil {
		return done{}, fmt.Errorf("read refunds of payment %s: %w", p.ID, err)
	}
	for _, row := range rows {
		r := refundFromRow(row)
		if e.RefundKey == nil || r.key() != *e.RefundKey || r.Status != RefundSending && r.Status != RefundSucceeded {
			continue
		}
		return s.finish(ctx, e, outcomeRefundFailed, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
			return s.failRefund(ctx, tx, r, p, e.Reason)
		})
	}
	return s.finish(ctx, e, outcomeRepeated, nil)
}

// giveUp records that a provider refused a refund for good.
func (s *Service) giveUp(ctx context.Context, r *Refund, why string) error {
	p, err := s.Payment(ctx, r.Payment)
	if err != nil || p == nil {
		return errors.Join(err, fmt.Errorf("refund %s: read its payment", r.ID))
	}
	var noted *order.Order
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		noted, err = s.failRefund(ctx, tx, r, p, why)
		return err
	})
	if errors.Is(err, order.ErrMoved) {
		return nil // another process recorded it
	}
	if err != nil {
		return fmt.Errorf("note failed refund %s: %w", r.ID, err)
	}
	s.cfg.Publisher.Publish(ctx, noted)
	s.reportChange(ctx)
	return nil
}

// failRefund sets a refund to FAILED, with a compare-and-set. The shop has the money again.
// Units that were refunded stay it: they may be sold.
func (s *Service) failRefund(ctx context.Context, tx *ent.Tx, r *Refund, p *Payment, why string) (*order.Order, error) {
	n, err := tx.Refund.Update().
		Where(entrefund.ID(r.ID), entrefund.Version(r.Version),
			entrefund.StatusIn(entrefund.StatusSENDING, entrefund.StatusSUCCEEDED)).
		SetStatus(entrefund.StatusFAILED).SetFailure(fault.Shorten(why, maxReason)).SetUpdatedAt(s.now()).AddVersion(1).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("mark refund %s as failed: %w", r.ID, err)
	}
	if n == 0 {
		return nil, order.ErrMoved
	}
	if r.Status == RefundSucceeded && r.Transaction == "" {
		if err := s.mark(ctx, tx, p, entpayment.StatusSUCCEEDED, nil); err != nil {
			return nil, err
		}
	}
	s.cfg.Log.ErrorContext(ctx, "refund failed", slog.String("refund", r.ID.String()),
		slog.String("reason", fault.Shorten(why, maxReason)))
	return s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodeRefundFailed, Units: r.Quantity})
}

// sendAgain orders another attempt of a refund that failed.
func (s *Service) sendAgain(ctx context.Context, r *Refund, o *order.Order, d Decision) (noted *order.Order,
	err error) {
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: d.Operator}, Code: order.CodeRefundApproved,
		Note: d.Note, Units: r.Quantity}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := s.now()
		n, err := tx.Refund.Update().Where(entrefund.ID(r.ID), entrefund.Version(r.Version)).
			SetStatus(entrefund.StatusSENDING).SetDecidedBy(d.Operator).SetDecidedAt(now).SetDecision(d.Note).
			SetTries(0).SetTryAt(now).SetUpdatedAt(now).AddAttempts(1).AddVersion(1).Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return order.ErrMoved
		}
		noted, err = order.Note(ctx, tx, o, now, entry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("send refund %s again: %w", r.ID, err)
	}
	return noted, nil
}
