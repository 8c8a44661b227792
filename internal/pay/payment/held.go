package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/ent/predicate"
	"seckill/internal/buy/order"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Held is an event that waits for an operator: money that does not match its payment,
// or has no known payment.
type Held struct {
	ID          id.Held
	Provider    string
	Payment     id.Payment
	Transaction string
	AmountMinor int64
	Currency    string
	Why         string
	At          time.Time
}

// HeldList says which events that wait for an operator are listed.
type HeldList struct {
	Provider string  // "" = of every provider
	After    id.Held // the event before the first; zero = from the oldest
	Limit    int
}

// HeldEvents returns events that wait for an operator, oldest first.
func (s *Service) HeldEvents(ctx context.Context, in HeldList) ([]Held, error) {
	rows, err := s.cfg.DB.Ent.PaymentEvent.Query().Where(in.match()...).Where(paymentevent.IDGT(in.After)).
		Order(ent.Asc(paymentevent.FieldID)).Limit(in.Limit).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read held payment events: %w", err)
	}
	return collect.Map(rows, heldFromRow), nil
}

// CountHeld returns the number of events that wait for an operator, whatever After is.
func (s *Service) CountHeld(ctx context.Context, in HeldList) (int, error) {
	n, err := s.cfg.DB.Ent.PaymentEvent.Query().Where(in.match()...).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count held payment events: %w", err)
	}
	return n, nil
}

// HeldEvent returns an event that waits for an operator; nil when there is none with that
// id.
func (s *Service) HeldEvent(ctx context.Context, event id.Held) (*Held, error) {
	row, err := s.cfg.DB.Ent.PaymentEvent.Query().Where(HeldList{}.match()...).Where(paymentevent.ID(event)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read held payment event %s: %w", event, err)
	}
	held := heldFromRow(row)
	return &held, nil
}

func (in HeldList) match() []predicate.PaymentEvent {
	match := []predicate.PaymentEvent{paymentevent.StateEQ(paymentevent.StateHELD)}
	if in.Provider != "" {
		match = append(match, paymentevent.Provider(in.Provider))
	}
	return match
}

func heldFromRow(row *ent.PaymentEvent) Held {
	return Held{
		ID: row.ID, Provider: row.Provider, Payment: row.PaymentID, Transaction: row.Transaction,
		AmountMinor: row.AmountMinor, Currency: row.Currency, Why: row.Outcome, At: row.HappenedAt.UTC(),
	}
}

// refusedHeld refuses a decision about held money.
func refusedHeld(why fault.Reason) fault.Refused {
	return fault.Refused{Why: why, At: []string{"heldPaymentId"}}
}

// endable returns an event that is held, or was held and is handled, and its payment,
// nil if it is unknown. Refusals: NOT_FOUND, CONFLICT, and OwnOrder for money of the
// operator.
func (s *Service) endable(ctx context.Context, event id.Held, operator id.User) (*ent.PaymentEvent, *Payment, error) {
	e, err := s.cfg.DB.Ent.PaymentEvent.Get(ctx, event)
	if ent.IsNotFound(err) {
		return nil, nil, refusedHeld(fault.Unknown)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read payment event %s: %w", event, err)
	}
	p, err := s.Payment(ctx, e.PaymentID)
	switch {
	case err != nil:
		return nil, nil, err
	case p != nil && p.User == operator:
		return nil, nil, OwnOrder{refusedHeld(fault.Conflict)}
	case e.State != paymentevent.StateHELD && e.State != paymentevent.StateHANDLED:
		return nil, nil, refusedHeld(fault.Conflict)
	}
	return e, p, nil
}

// ReturnHeld refunds held money, exactly the received amount, and returns its payment.
// Repeating it changes nothing. Money of a transaction is refunded by that transaction
// and leaves payment and order unchanged: the correct amount may have been paid
// already, or may still be paid. Money without a transaction number is refunded as the
// payment's own, which must be closed. Money without a known payment is refused: it can
// only be settled directly with the provider.
func (s *Service) ReturnHeld(ctx context.Context, event id.Held, operator id.User, note string) (id.Payment, error) {
	if err := remark(&note, 1, "note"); err != nil {
		return id.Payment{}, err
	}
	e, p, err := s.endable(ctx, event, operator)
	switch {
	case err != nil:
		return id.Payment{}, err
	case e.State == paymentevent.StateHANDLED:
		return e.PaymentID, nil
	case p == nil || p.Provider != e.Provider || e.Kind != paymentevent.KindSUCCEEDED:
		return id.Payment{}, refusedHeld(fault.Conflict)
	case e.Transaction == "" && p.Status != Closed, e.Transaction != "" && e.Transaction == p.Transaction:
		return id.Payment{}, refusedHeld(fault.Conflict)
	}
	var noted *order.Order
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		noted, err = s.returnHeld(ctx, tx, e, p, refundDraft{
			payment: p, cause: Late, status: RefundSending, key: "held:" + e.ID.String(), reason: note, decider: operator,
			came: e,
		})
		return err
	})
	if postgres.IsUnique(err) { // two events about one transaction were held at the same time
		noted, err = nil, s.dropHeld(ctx, e)
	}
	if err != nil {
		return id.Payment{}, fmt.Errorf("return held money of event %s: %w", event, unlessMoved(err))
	}
	if noted != nil {
		s.cfg.AfterCommit.Publish(ctx, noted)
	}
	s.reportChange(ctx)
	return p.ID, nil
}

// dropHeld ends an event whose money another one has returned.
func (s *Service) dropHeld(ctx context.Context, e *ent.PaymentEvent) error {
	return s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.PaymentEvent.Update().Where(paymentevent.ID(e.ID), paymentevent.StateEQ(paymentevent.StateHELD)).
			SetState(paymentevent.StateHANDLED).SetOutcome("its money was sent back").SetHandledAt(s.now()).Exec(ctx)
	})
}

// unlessMoved returns a retryable error for a payment that changed meanwhile, and other
// errors unchanged.
func unlessMoved(err error) error {
	if errors.Is(err, order.ErrMoved) {
		return busy("The payment is being changed. Please try again.")
	}
	return err
}

// forestall makes a settlement of the payment that began earlier decide again: it may be
// about the money that an operator gives back.
func (s *Service) forestall(ctx context.Context, tx *ent.Tx, p *Payment) error {
	if !p.Status.IsOpen() && p.Status != Closed {
		return nil
	}
	return s.mark(ctx, tx, p, entpayment.Status(p.Status), nil)
}

// returnHeld returns the order, or nil when another operator was first.
func (s *Service) returnHeld(ctx context.Context, tx *ent.Tx, e *ent.PaymentEvent, p *Payment,
	d refundDraft) (*order.Order, error) {
	n, err := tx.PaymentEvent.Update().Where(paymentevent.ID(e.ID), paymentevent.StateEQ(paymentevent.StateHELD)).
		SetState(paymentevent.StateHANDLED).SetOutcome("sent back by an operator").SetHandledAt(s.now()).Save(ctx)
	if err != nil || n == 0 {
		return nil, err // 0 rows: another operator did it
	}
	if e.Transaction == "" {
		err = s.mark(ctx, tx, p, entpayment.StatusSUCCEEDED, e)
	} else {
		err = s.forestall(ctx, tx, p)
	}
	if err != nil {
		return nil, err
	}
	if err := s.newRefund(ctx, tx, d); err != nil {
		return nil, err
	}
	return s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodePaymentReturned, Note: d.reason})
}
