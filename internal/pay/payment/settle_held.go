package payment

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/ent/paymentevent"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// SettleHeld ends held money that was settled outside of the shop, such as money without a
// known payment, which only its provider can return. It returns the payment; Nil when there
// is none. Repeating it changes nothing.
func (s *Service) SettleHeld(ctx context.Context, event id.Held, operator id.User, note string) (id.Payment, error) {
	if err := remark(&note, 1, "note"); err != nil {
		return id.Payment{}, err
	}
	e, p, err := s.endable(ctx, event, operator)
	if err != nil {
		return id.Payment{}, err
	}
	paid := id.Payment{}
	if p != nil {
		paid = p.ID
	}
	if e.State == paymentevent.StateHANDLED {
		return paid, nil
	}
	ended, noted, err := s.settleHeld(ctx, e, p, note)
	if err != nil {
		return id.Payment{}, fmt.Errorf("settle held money of event %s: %w", event, unlessMoved(err))
	}
	if !ended {
		return paid, nil
	}
	if noted != nil {
		s.cfg.Publisher.Publish(ctx, noted)
	}
	if s.forged.security != nil {
		amount := money.Amount{Minor: e.AmountMinor, Currency: e.Currency}
		s.forged.security.HeldSettled(ctx, operator, fmt.Sprintf("%s: %s of %s at %s. %s",
			e.ID.Public(), amount, e.Transaction, e.Provider, note))
	}
	s.reportChange(ctx)
	return paid, nil
}

// settleHeld ends an event. ended is false when another operator did it; noted is the order
// of a known payment.
func (s *Service) settleHeld(ctx context.Context, e *ent.PaymentEvent, p *Payment, note string) (ended bool,
	noted *order.Order, err error) {
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.PaymentEvent.Update().Where(paymentevent.ID(e.ID), paymentevent.StateEQ(paymentevent.StateHELD)).
			SetState(paymentevent.StateHANDLED).SetOutcome("settled by an operator: " + note).SetHandledAt(s.now()).Save(ctx)
		if ended = n > 0; err != nil || !ended || p == nil {
			return err
		}
		if err := s.forestall(ctx, tx, p); err != nil {
			return err
		}
		noted, err = s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodeRefundSettled, Note: note})
		return err
	})
	return ended, noted, err
}
