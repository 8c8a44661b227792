package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/sale"
)

// RefundInput is money to give back because an order is voided.
type RefundInput struct {
	Order *order.Order // as it was read; PAID or REFUNDING
	By    uuid.UUID    // who confirmed
	Key   string       // the same for the same void
	Note  string
}

// Refund gives the money of a voided order back: it moves the order to REFUNDING,
// and at last to REFUNDED with its units, by itself. It is called until it returns
// done, and does nothing more for a key that it has seen.
type Refund func(ctx context.Context, in RefundInput) (done bool, err error)

// VoidInput names an order to void.
type VoidInput struct {
	By    sale.Actor
	Order uuid.UUID
	Note  string
}

// Voided is what came of a void.
type Voided struct {
	Order        *order.Order // as it stands now
	Intervention *Intervention
}

// VoidOrder calls an order off in the name of the house. An unpaid one is
// cancelled at once and its units go back; a paid one becomes a request, and once
// a second person has confirmed it, money and units go back.
func (s *Service) VoidOrder(ctx context.Context, in VoidInput) (Voided, fault.Refusal, error) {
	if err := authorise(in.By, sale.ActVoid); err != nil {
		return Voided{}, nil, err
	}
	if refusal := needed(&in.Note, maxNote, "note"); refusal != nil {
		return Voided{}, refusal, nil
	}
	for range maxTries {
		o, err := s.cfg.Orders.Reload(ctx, in.Order)
		if err != nil {
			return Voided{}, nil, err
		}
		if o == nil {
			return Voided{}, unknown("orderId"), nil
		}
		switch o.Status {
		case order.PendingPayment:
			voided, refusal, err := s.voidUnpaid(ctx, in, o)
			if errors.Is(err, order.ErrMoved) || errors.Is(err, sale.ErrMoved) {
				continue // paid, lapsed or cancelled meanwhile; or the sale was changed
			}
			return voided, refusal, unclear(err)
		case order.Paid:
			return s.requestVoid(ctx, in, o)
		case order.Cancelled, order.Expired, order.Refunding, order.Refunded:
			return Voided{Order: o}, conflict("orderId"), nil
		}
		return Voided{}, nil, fmt.Errorf("void order %s: status %q", o.ID, o.Status)
	}
	return Voided{}, conflict("orderId"), nil
}

func (in VoidInput) intervention(o *order.Order, actID uuid.UUID) *Intervention {
	return &Intervention{
		ID: actID, Kind: VoidOrder, Sale: o.Sale, Item: o.Item, Order: &o.ID, Units: o.Quantity,
		Note: in.Note, RequestedBy: in.By.ID,
	}
}

// voidUnpaid cancels an unpaid order. Its row says that Redis is to get the units
// back, which package order sees to.
func (s *Service) voidUnpaid(ctx context.Context, in VoidInput, o *order.Order) (Voided, fault.Refusal, error) {
	done := in.intervention(o, s.cfg.NewID())
	done.State = Done
	var cancelled *order.Order
	refusal, err := s.withOrder(ctx, in.By, done, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		if cancelled, err = order.Apply(ctx, tx, s.voiding(o, order.Cancelled, in.By.ID, in.Note)); err != nil {
			return err
		}
		return s.insert(ctx, tx, done)
	})
	if err != nil || refusal != nil {
		return Voided{Order: o}, refusal, err
	}
	s.cfg.Tell(ctx, cancelled)
	return Voided{Order: cancelled, Intervention: done}, nil, nil
}

func (s *Service) voiding(o *order.Order, to order.Status, by uuid.UUID, note string) order.Move {
	return order.Move{
		Order: o, To: to, At: s.cfg.Clock.Now(),
		Entry: order.Entry{By: order.Actor{Kind: order.Operator, User: by}, Code: order.CodeVoided, Note: note},
	}
}

// withOrder moves an order and writes the act in the sale's log, in one
// transaction. Locks are taken in the order sale, order, item.
func (s *Service) withOrder(ctx context.Context, by sale.Actor, act *Intervention, fn func(ctx context.Context, tx *ent.Tx) error) (fault.Refusal, error) {
	v, err := s.cfg.Sales.ByID(ctx, act.Sale)
	if err != nil {
		return nil, err
	}
	if v == nil || len(sale.Targets(sale.ActVoid, v.Status)) == 0 {
		return conflict("orderId"), nil
	}
	line, err := s.try(ctx, actOf(by, act, fn), v, v.Status)
	if err != nil {
		return nil, err
	}
	s.cfg.Forget()
	s.cfg.Note(ctx, line)
	return nil, nil
}

func actOf(by sale.Actor, in *Intervention, fn func(ctx context.Context, tx *ent.Tx) error) act {
	return act{
		by: by, sale: in.Sale, what: sale.ActVoid, note: in.Note,
		details: map[string]any{"order": id.Format(id.Order, *in.Order), "units": in.Units},
		within:  func(ctx context.Context, tx *ent.Tx, _ *sale.Sale) error { return fn(ctx, tx) },
	}
}

// requestVoid asks a second person; an order has one request at a time.
func (s *Service) requestVoid(ctx context.Context, in VoidInput, o *order.Order) (Voided, fault.Refusal, error) {
	open, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.OrderID(o.ID), intervention.StateIn(intervention.StateREQUESTED, intervention.StateREFUNDING),
	).First(ctx)
	if err == nil {
		return Voided{Order: o, Intervention: fromRow(open)}, nil, nil
	}
	if !ent.IsNotFound(err) {
		return Voided{}, nil, fmt.Errorf("look for a request to void %s: %w", o.ID, err)
	}
	request := in.intervention(o, s.cfg.NewID())
	request.State = Requested
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.insert(ctx, tx, request) })
	if err != nil {
		return Voided{}, nil, unclear(fmt.Errorf("request to void %s: %w", o.ID, err))
	}
	return Voided{Order: o, Intervention: request}, nil, nil
}

// voidConfirmed voids a paid order that two persons agreed on.
func (s *Service) voidConfirmed(ctx context.Context, by sale.Actor, request *Intervention) (*Intervention, fault.Refusal, error) {
	for range maxTries {
		o, err := s.cfg.Orders.Reload(ctx, *request.Order)
		if err != nil {
			return nil, nil, err
		}
		if o == nil || o.Status != order.Paid {
			return request, conflict("interventionId"), nil
		}
		refusal, err := s.withOrder(ctx, by, request, func(ctx context.Context, tx *ent.Tx) error {
			return s.advance(ctx, tx, request, Refunding)
		})
		switch {
		case errors.Is(err, sale.ErrMoved):
			continue
		case errors.Is(err, errOvertaken):
			return request, conflict("interventionId"), nil
		case err != nil:
			return nil, nil, unclear(err)
		case refusal != nil:
			return request, refusal, nil
		}
		request.State = Refunding
		return s.finishOrLater(ctx, request), nil, nil
	}
	return request, conflict("interventionId"), nil
}

// finishRefund has the money given back, and the units with it.
func (s *Service) finishRefund(ctx context.Context, act *Intervention) (*Intervention, error) {
	o, err := s.cfg.Orders.Reload(ctx, *act.Order)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, fmt.Errorf("order %s is gone", *act.Order)
	}
	switch o.Status {
	case order.Paid, order.Refunding:
		done, err := s.refund(ctx, act, o)
		if err != nil || !done {
			return act, err
		}
	case order.Refunded, order.Cancelled, order.Expired, order.PendingPayment: // nothing is left to give back
	}
	return s.move(ctx, act, Done)
}

func (s *Service) refund(ctx context.Context, act *Intervention, o *order.Order) (bool, error) {
	if s.cfg.Refund != nil {
		return s.cfg.Refund(ctx, RefundInput{Order: o, By: act.actor().ID, Key: act.ID.String(), Note: act.Note})
	}
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		var err error
		if o.Status == order.Paid {
			if o, err = order.Apply(ctx, tx, s.voiding(o, order.Refunding, act.actor().ID, act.Note)); err != nil {
				return err
			}
		}
		o, err = order.Apply(ctx, tx, s.voiding(o, order.Refunded, act.actor().ID, act.Note))
		return err
	})
	if err != nil {
		return false, err
	}
	s.cfg.Tell(ctx, o)
	return true, nil
}
