package payment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// closing is the result of closing the payments of an order.
type closing string

const (
	closedAll  closing = "CLOSED"  // no more money can arrive
	closedPaid closing = "PAID"    // one of them was paid first
	closedNot  closing = "UNKNOWN" // the provider's state is unknown
)

// Cancel cancels an unpaid order of the user, after closing its payment at the
// provider. Cancelling a cancelled order succeeds again. An order that is paid or expired
// is returned beside the refusal.
func (s *Service) Cancel(ctx context.Context, id id.Order, user id.User, reason string) (*order.Order, error) {
	if err := remark(&reason, 0, "reason"); err != nil {
		return nil, err
	}
	o, err := s.own(ctx, id, user)
	if o == nil {
		return nil, err
	}
	return s.callOff(ctx, o, order.Entry{By: order.Actor{Kind: order.Buyer, User: user}, Code: order.CodeCancelled,
		Note: reason})
}

// CancelUnpaid cancels an unpaid order by the clock, after closing its payment at the
// provider. An order that is paid or expired is returned beside the refusal.
func (s *Service) CancelUnpaid(ctx context.Context, id id.Order) (*order.Order, error) {
	o, err := s.reload(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.callOff(ctx, o, order.Entry{By: order.Actor{Kind: order.Clock}, Code: order.CodeVoided})
}

// callOff cancels an order while it is unpaid. Otherwise it returns the order beside a
// refusal.
func (s *Service) callOff(ctx context.Context, o *order.Order, entry order.Entry) (*order.Order, error) {
	for range maxRaces {
		switch o.Status {
		case order.Cancelled:
			return o, nil
		case order.PendingPayment:
		case order.Expired:
			return o, fault.Refused{Why: fault.OrderExpired, At: []string{"orderId"}}
		case order.Paid, order.Refunding, order.Refunded:
			return o, fault.Refused{Why: fault.Conflict, At: []string{"orderId"}}
		}
		how, err := s.closePayments(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		if how == closedNot {
			return nil, fault.New(fault.Unavailable, "The payment provider does not answer. Please try again.")
		}
		moved, err := s.cancelClosed(ctx, o, entry)
		if err == nil {
			s.cfg.AfterCommit.Publish(ctx, moved)
			return moved, nil
		}
		if !errors.Is(err, order.ErrMoved) {
			return nil, err
		}
		if o, err = s.reload(ctx, o.ID); err != nil {
			return nil, err
		}
	}
	return nil, busy("The order is being changed. Please try again.")
}

// cancelClosed cancels an order without an open payment.
func (s *Service) cancelClosed(ctx context.Context, o *order.Order, entry order.Entry) (moved *order.Order, err error) {
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		moved, err = s.apply(ctx, tx, order.Move{Order: o, To: order.Cancelled, At: s.now(), ReturnAfter: s.returnAfter(),
			Entry: entry})
		if err != nil {
			return err
		}
		// The order's row is locked now: a payment that began in the meantime is
		// visible.
		open, err := tx.Payment.Query().Where(entpayment.OrderID(o.ID), entpayment.StatusIn(openStatuses...)).Exist(ctx)
		if err != nil {
			return err
		}
		if open {
			return order.ErrMoved
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cancel order %s: %w", o.ID, err)
	}
	return moved, nil
}

// closePayments closes the open payments of an order at their providers.
func (s *Service) closePayments(ctx context.Context, o id.Order) (closing, error) {
	open, err := s.open(ctx, []id.Order{o})
	if err != nil {
		return closedNot, err
	}
	for _, p := range open {
		if how := s.closeOne(ctx, p); how != closedAll {
			return how, nil
		}
	}
	return closedAll, nil
}

// closeOne closes a payment at its provider, and records the provider's state.
func (s *Service) closeOne(ctx context.Context, p *Payment) closing {
	provider, err := s.provider(p.Provider)
	if err != nil {
		return closedNot
	}
	known, err := s.knownTo(ctx, p)
	if err != nil {
		return closedNot
	}
	var state State
	err = s.ask(ctx, p.Provider, "close", func(ctx context.Context) (err error) {
		state, err = provider.Close(ctx, known)
		return err
	})
	if err != nil {
		return closedNot
	}
	if state.Phase == PhaseOpen || state.Phase == PhaseAuthorized {
		return closedNot // violates the contract of Close; ask again
	}
	if state.Phase == PhaseUnknown {
		state.Phase = PhaseClosed // the provider never created it
	}
	if err := s.note(ctx, p, state); err != nil {
		return closedNot
	}
	if state.Phase == PhasePaid {
		return closedPaid
	}
	return closedAll
}

// note records a state that a provider returned, and settles it immediately.
func (s *Service) note(ctx context.Context, p *Payment, state State) error {
	event, ok := state.event(p.ID)
	if !ok {
		return nil
	}
	if err := s.namePayer(ctx, p.Provider, &event); err != nil {
		return err
	}
	// Many calls may query one payment: all but one of them find the event recorded.
	known, err := s.known(ctx, p.Provider, event.ID)
	switch {
	case err != nil:
		return fmt.Errorf("read answer about payment %s: %w", p.ID, err)
	case known != nil && known.State != paymentevent.StateRECEIVED:
		return nil
	case known != nil:
		return s.Settle(ctx, known.ID)
	}
	stored, err := s.store(ctx, p.Provider, event)
	if err != nil {
		return fmt.Errorf("store answer about payment %s: %w", p.ID, err)
	}
	return s.Settle(ctx, stored)
}

// splitByOpenPayment separates unpaid orders without an open payment (free) from
// those with one (paying).
func (s *Service) splitByOpenPayment(ctx context.Context, orders []*order.Order) (free, paying []*order.Order,
	err error) {
	open, err := s.openBy(ctx, orders)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range orders {
		if open[o.ID] == nil {
			free = append(free, o)
		} else {
			paying = append(paying, o)
		}
	}
	return free, paying, nil
}

// closings is the result of closing the payments of several orders. Neither list has orders
// that were paid, and those whose provider was not asked before the context ended, or was
// still being asked.
type closings struct {
	closed      []*order.Order // no more money can arrive
	unconfirmed []*order.Order // the provider failed; all of a provider that answered none
}

// closeFor closes the open payments of unpaid orders at their providers, in the given
// order, for at most within. Providers are called in parallel: one that does not
// respond delays no other.
func (s *Service) closeFor(ctx context.Context, orders []*order.Order, within time.Duration) (result closings,
	err error) {
	open, err := s.openBy(ctx, orders)
	if err != nil {
		return closings{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var mu sync.Mutex
	lines := map[string][]*order.Order{} // by provider
	for _, o := range orders {
		if p := open[o.ID]; p != nil {
			lines[p.Provider] = append(lines[p.Provider], o)
		} else {
			result.closed = append(result.closed, o)
		}
	}
	var all sync.WaitGroup
	var failed []error
	for _, line := range lines {
		all.Go(func() {
			some, err := s.closeLine(ctx, line, open)
			mu.Lock()
			defer mu.Unlock()
			result.closed, result.unconfirmed = append(result.closed, some.closed...),
				append(result.unconfirmed, some.unconfirmed...)
			failed = append(failed, err)
		})
	}
	all.Wait()
	return result, errors.Join(failed...)
}

// closeLine closes the payments of orders at one provider until ctx ends.
func (s *Service) closeLine(ctx context.Context, line []*order.Order, open map[id.Order]*Payment) (result closings,
	err error) {
	var mu sync.Mutex
	asked, answered := 0, false
	_, err = atOnce(ctx, line, func(o *order.Order) (string, error) {
		if s.drawnFirst(ctx, o, open[o.ID]) {
			return "", nil
		}
		how := s.closeOne(ctx, open[o.ID])
		mu.Lock()
		defer mu.Unlock()
		asked, answered = asked+1, answered || how != closedNot
		switch {
		case how == closedAll:
			result.closed = append(result.closed, o)
		case how == closedNot && ctx.Err() == nil:
			result.unconfirmed = append(result.unconfirmed, o)
		}
		return "", nil
	})
	if asked > 0 && !answered {
		result.unconfirmed = line
	}
	return result, err
}

// openBy returns the open payments by order; each order has at most one.
func (s *Service) openBy(ctx context.Context, orders []*order.Order) (map[id.Order]*Payment, error) {
	ids := collect.Map(orders, func(o *order.Order) id.Order { return o.ID })
	open, err := s.open(ctx, ids)
	if err != nil {
		return nil, err
	}
	return collect.Index(open, func(p *Payment) id.Order { return p.Order }), nil
}

// VoidInput voids an order.
type VoidInput struct {
	Order     id.Order
	Operator  id.User
	Note      string // reason, shown to the buyer
	KeepUnits bool   // do not return the units of a paid order to stock
	Act       id.Act // the operator's act: it refunds an order once
	Units     int    // of a paid order; at most those that are left are refunded. 0 = these
}

// key returns the idempotency key of the refund.
func (in VoidInput) key() string { return ownKey("void", in.Act) }

// units returns the units of a paid order to refund.
func (in VoidInput) units(o *order.Order) int {
	if in.Units == 0 {
		return o.Left()
	}
	return min(in.Units, o.Left())
}

// Void ends an order on an operator's behalf: an unpaid order is cancelled, units of a
// paid one are refunded. Voiding again changes nothing.
func (s *Service) Void(ctx context.Context, in VoidInput) (*order.Order, error) {
	at := []string{"orderId"}
	conflict := fault.Refused{Why: fault.Conflict, At: at}
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeVoided, Note: in.Note}
	for range maxRaces {
		o, err := s.reload(ctx, in.Order)
		if err != nil {
			return nil, err
		}
		if o.Status == order.PendingPayment {
			moved, err := s.callOff(ctx, o, entry)
			if _, refused := fault.AsRefusal(err); !refused {
				return moved, err
			}
			continue // paid or expired in the meantime
		}
		p, err := s.paidBy(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		begun, err := s.begun(ctx, in)
		if err != nil {
			return nil, err
		}
		switch {
		case begun || o.Status == order.Cancelled || o.Status == order.Expired || o.Status == order.Refunded:
			return o, nil // it has already ended
		case o.Status == order.Paid && p == nil:
			if now, err := s.reload(ctx, o.ID); err != nil || now.Version != o.Version {
				continue // its refund began in the meantime
			}
			return o, conflict
		case o.Status != order.Paid:
			return o, conflict
		}
		moved, _, err := s.beginRefund(ctx, o, refundDraft{
			payment: p, cause: Voided, status: RefundSending, key: in.key(), reason: in.Note,
			restock: !in.KeepUnits, decider: in.Operator, units: in.units(o),
		}, entry)
		if err == nil {
			s.cfg.AfterCommit.Publish(ctx, moved)
			return moved, nil
		}
		if !errors.Is(err, order.ErrMoved) && !postgres.IsUnique(err) {
			return nil, err
		}
	}
	return nil, busy("The order is being changed. Please try again.")
}

// begun reports whether the refund of an act exists.
func (s *Service) begun(ctx context.Context, in VoidInput) (bool, error) {
	found, err := s.cfg.DB.Ent.Refund.Query().
		Where(entrefund.OrderID(in.Order), entrefund.IdempotencyKey(in.key())).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("look for the refund of act %s: %w", in.Act, err)
	}
	return found, nil
}

// ExpireInput expires an unpaid order on an operator's behalf.
type ExpireInput struct {
	Order    id.Order
	Operator id.User
	Note     string // reason, shown to the buyer
	// Commit runs expire in a transaction, beside what the caller logs.
	Commit func(ctx context.Context, expire func(ctx context.Context, tx *ent.Tx) error) error
}

// ExpireUnpaid expires an unpaid order before the clock does. Its payment is closed first
// where the provider answers; a provider that is gone holds nothing up, because money
// that arrives later is settled like any late money. An order that has ended or is paid,
// also in the meantime, is returned beside the refusal.
func (s *Service) ExpireUnpaid(ctx context.Context, in ExpireInput) (*order.Order, error) {
	at := []string{"orderId"}
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeExpired, Note: in.Note}
	for range maxRaces {
		o, err := s.cfg.Orders.Reload(ctx, in.Order)
		switch {
		case err != nil:
			return nil, fmt.Errorf("expire order %s: %w", in.Order, err)
		case o == nil:
			return nil, fault.Refused{Why: fault.Unknown, At: at}
		case o.Status != order.PendingPayment:
			return o, fault.Refused{Why: fault.Conflict, At: at}
		}
		switch how, err := s.closePayments(ctx, o.ID); {
		case err != nil:
			return nil, err
		case how == closedPaid:
			continue // the money is settled: read the order again
		}
		var moved *order.Order
		err = in.Commit(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			moved, err = s.apply(ctx, tx, order.Move{Order: o, To: order.Expired, At: s.now(), ReturnAfter: s.returnAfter(),
				Entry: entry})
			return err
		})
		if err == nil {
			s.cfg.AfterCommit.Publish(ctx, moved)
			return moved, nil
		}
		if !errors.Is(err, order.ErrMoved) {
			return nil, err
		}
	}
	return nil, fault.New(fault.Unavailable, "The order is being changed. Please try again.")
}

// VoidUnpaid cancels an unpaid order on an operator's behalf. An order that is paid, or
// was paid in the meantime, is refused, so that only Void refunds money. Voiding again
// changes nothing.
func (s *Service) VoidUnpaid(ctx context.Context, in VoidInput) (*order.Order, error) {
	o, err := s.cfg.Orders.Reload(ctx, in.Order)
	if err != nil {
		return nil, fmt.Errorf("void order %s: %w", in.Order, err)
	}
	if o == nil {
		return nil, fault.Refused{Why: fault.Unknown, At: []string{"orderId"}}
	}
	return s.callOff(ctx, o, order.Entry{
		By: order.Actor{Kind: order.Operator, User: in.Operator}, Code: order.CodeVoided, Note: in.Note,
	})
}
