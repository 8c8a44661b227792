package operator

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// VoidInput is the input of VoidOrder.
type VoidInput struct {
	By    sale.Actor
	Order id.Order
	Note  string // the reason; the buyer sees it
	Units *int   // of a paid order, from 1 to those that are left; nil = all of them
}

// Voided is the result of a void.
type Voided struct {
	Order        *order.Order // its present state
	Intervention *Intervention
}

// VoidOrder cancels an order, or units of a paid one, on behalf of the shop. An unpaid
// order is cancelled at once and its units are released; a paid one becomes a request, and
// after confirmation by a second operator, money and units go back. An order that is paid
// at the same time is refused: it needs confirmation too. The buyer of an order cannot
// void it.
func (s *Service) VoidOrder(ctx context.Context, in VoidInput) (Voided, error) {
	if err := authorise(in.By, sale.ActVoid); err != nil {
		return Voided{}, err
	}
	if err := requireNote(&in.Note); err != nil {
		return Voided{}, err
	}
	o, err := s.cfg.Orders.Reload(ctx, in.Order)
	if err != nil {
		return Voided{}, err
	}
	if o == nil {
		return Voided{}, unknown("orderId")
	}
	if o.User == in.By.ID {
		return Voided{Order: o}, selfApproval("orderId")
	}
	if o.Status != order.PendingPayment && o.Status != order.Paid {
		return Voided{Order: o}, conflict("orderId")
	}
	if err := s.endable(ctx, o, sale.ActVoid); err != nil {
		return Voided{Order: o}, err
	}
	units, err := in.units(o)
	if err != nil {
		return Voided{Order: o}, err
	}
	if before, err := s.openVoid(ctx, o.ID); err != nil || before != nil {
		return Voided{Order: o, Intervention: before}, err
	}
	act := &Intervention{
		ID: id.Act(s.cfg.NewID()), Kind: VoidOrder, State: Finishing, Sale: o.Sale, Item: o.Item, Order: &o.ID, Units: units,
		Note: in.Note, RequestedBy: in.By.ID,
	}
	if !s.returnsAlone(VoidOrder, o.Status == order.Paid, 0) {
		act.State = Requested
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.insert(ctx, tx, act) })
	if err != nil {
		return Voided{}, unknownOutcome(err)
	}
	if act.State == Requested {
		if v, err := s.cfg.Sales.ByID(ctx, act.Sale); err == nil && v != nil {
			s.publishRequest(ctx, v, act, ActRequestVoid)
		}
		return Voided{Order: o, Intervention: act}, nil
	}
	act = s.tryFinish(ctx, act)
	if o, err = s.cfg.Orders.Reload(ctx, in.Order); err != nil {
		return Voided{}, err
	}
	if act.State == Refused {
		return Voided{Order: o, Intervention: act}, conflict("orderId")
	}
	return Voided{Order: o, Intervention: act}, nil
}

// endable refuses an order whose sale's status does not allow the act.
func (s *Service) endable(ctx context.Context, o *order.Order, what sale.Act) error {
	v, err := s.cfg.Sales.ByID(ctx, o.Sale)
	if err != nil {
		return err
	}
	if v == nil || len(sale.Targets(what, v.Status)) == 0 {
		return conflict("orderId")
	}
	return nil
}

// openVoid returns the unfinished void of an order; nil if there is none.
func (s *Service) openVoid(ctx context.Context, orderID id.Order) (*Intervention, error) {
	row, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.OrderID(orderID), intervention.KindEQ(intervention.KindVOID_ORDER),
		intervention.StateIn(intervention.StateREQUESTED, intervention.StateREFUNDING, intervention.StateFINISHING),
	).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for voids of order %s: %w", orderID, err)
	}
	return fromRow(row), nil
}

// voidConfirmed voids a paid order after confirmation.
func (s *Service) voidConfirmed(ctx context.Context, request *Intervention) (*Intervention, error) {
	confirmed, err := s.move(ctx, request, Refunding)
	switch {
	case err != nil:
		return nil, unknownOutcome(err)
	case confirmed.State != Refunding:
		return confirmed, conflict("interventionId")
	}
	done := s.tryFinish(ctx, confirmed)
	if done.State == Refused {
		return done, conflict("interventionId")
	}
	return done, nil
}

// finishVoid ends the order with package payment, which is idempotent, and then writes an
// entry to the log of the sale.
func (s *Service) finishVoid(ctx context.Context, act *Intervention) (*Intervention, error) {
	void := s.cfg.Payments.VoidUnpaid
	if act.State == Refunding {
		void = s.cfg.Payments.Void
	}
	o, err := void(ctx, payment.VoidInput{Order: *act.Order, Operator: act.actor().ID, Note: act.Note, Act: act.ID,
		Units: act.Units})
	_, refused := fault.AsRefusal(err)
	switch {
	case refused && (o == nil || !s.voidedBy(ctx, act, o)):
		return s.move(ctx, act, Refused)
	case err != nil && !refused:
		return nil, err
	}
	return s.logVoid(ctx, act)
}

// voidedBy reports whether an order was ended by an act, whose process then crashed. A
// paid order may have entries of earlier acts, about some of its units.
func (s *Service) voidedBy(ctx context.Context, act *Intervention, o *order.Order) bool {
	log, err := s.cfg.Orders.Timeline(ctx, o)
	if err != nil {
		return false
	}
	for _, e := range log {
		if e.Code == order.CodeVoided && (act.State == Finishing || !e.At.Before(act.CreatedAt)) {
			return true
		}
	}
	return false
}

func (s *Service) logVoid(ctx context.Context, act *Intervention) (*Intervention, error) {
	details, err := act.details()
	if err != nil {
		return nil, err
	}
	for range maxTries {
		v, err := s.cfg.Sales.ByID(ctx, act.Sale)
		if err != nil {
			return nil, err
		}
		if v == nil || len(sale.Targets(sale.ActVoid, v.Status)) == 0 {
			return s.move(ctx, act, Done) // the order's own log has it
		}
		c := sale.Change{
			ID: s.cfg.NewID(), Sale: v.ID, From: v.Status, To: v.Status, Revision: v.Revision, Act: sale.ActVoid,
			By: act.actor(), Note: act.Note, Details: details, At: s.cfg.Clock.Now(),
		}
		err = s.write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if err := sale.Apply(ctx, tx, c, nil); err != nil {
				return err
			}
			return s.advance(ctx, tx, act, Done)
		})
		switch {
		case errors.Is(err, sale.ErrMoved):
			continue
		case errors.Is(err, errConflict):
			return s.Intervention(ctx, act.ID)
		case err != nil:
			return nil, err
		}
		s.forgetCatalog()
		s.publish(ctx, c.Line())
		return s.Intervention(ctx, act.ID)
	}
	return act, nil
}
