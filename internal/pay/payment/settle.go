package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/ent/predicate"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// outcome is the result of an event.
type outcome string

// Outcomes of events.
const (
	outcomePaid      outcome = "order paid"
	outcomePaidLate  outcome = "expired order paid, units taken again"
	outcomeRefund    outcome = "refund begun: the order had ended"
	outcomeUndrawn   outcome = "refund begun: the entry was not drawn"
	outcomeDouble    outcome = "refund begun: the order was paid"
	outcomeLimit     outcome = "refund begun: the means of payment used up the limit"
	outcomeRepeated  outcome = "known already"
	outcomeClosed    outcome = "payment closed"
	outcomeMismatch  outcome = "held: amount or currency differs"
	outcomeTwoTx     outcome = "held: second transaction of one payment"
	outcomeUnmatched outcome = "held: still nothing to match it with"
	outcomePutOff    outcome = "put off"

	outcomeAuthorized    outcome = "authorized for an entry"
	outcomeAttempt       outcome = "attempt declined: the payment stays open"
	outcomeDisputed      outcome = "dispute noted"
	outcomeRefundedWhole outcome = "refunded on the provider's pages"
	outcomeRefundedPart  outcome = "held: a part was refunded on the provider's pages"
	outcomeRefundFailed  outcome = "refund failed: an operator sends it again"
)

const (
	// firstRetry and maxRetry bound the pause before a postponed event is retried; it
	// doubles.
	firstRetry = 250 * time.Millisecond
	maxRetry   = time.Minute
	// holdAfter is the age from which an event that cannot be handled is held for an
	// operator.
	holdAfter = 24 * time.Hour
	// holdUnknown is that age where the payment or its order is not known: both are written
	// before the provider hears of them, so that waiting does not help.
	holdUnknown = 30 * time.Second
)

// reacquireNamespace is the UUID namespace of LateReservation.
var reacquireNamespace = uuid.MustParse("8f2f3c52-6a1d-5f0e-9c0b-6d2a55a1e7b4")

// LateReservation returns the name under which an expired order reacquires its units when
// it is paid late. It is the same for every attempt, so that it happens once.
func LateReservation(order id.Order) id.Task {
	return id.Task(uuid.NewSHA1(reacquireNamespace, order[:]))
}

// putOffError reports that an event cannot be handled yet.
type putOffError struct {
	why  string
	hold time.Duration // age from which it is held for an operator; 0 = holdAfter
}

func (e putOffError) Error() string { return e.why }

// Settle handles a stored event once, even if it is called repeatedly or concurrently.
// An event that cannot be handled yet is postponed and retried by a loop; that is not
// an error.
func (s *Service) Settle(ctx context.Context, event id.Held) error {
	for range maxRaces {
		row, err := s.cfg.DB.Ent.PaymentEvent.Get(ctx, event)
		if err != nil {
			return fmt.Errorf("read payment event %s: %w", event, err)
		}
		if row.State != paymentevent.StateRECEIVED {
			return nil
		}
		done, err := s.settle(ctx, row)
		var wait putOffError
		switch {
		case errors.As(err, &wait):
			return s.putOff(ctx, row, wait)
		case errors.Is(err, order.ErrMoved):
			continue // another process moved the order first: decide again
		case err != nil:
			return fmt.Errorf("settle payment event %s: %w", event, err)
		}
		s.metrics.event(EventKind(row.Kind), done.what)
		s.metrics.settled(row, done.what)
		if done.what == outcomeMismatch || done.what == outcomeTwoTx {
			s.cfg.Log.ErrorContext(ctx, "payment event held", slog.String("event", event.String()),
				slog.String("outcome", string(done.what)))
		}
		if done.order != nil {
			s.cfg.AfterCommit.Publish(ctx, done.order)
		}
		if done.held || done.what == outcomeRefundFailed || done.what == outcomeDisputed {
			s.reportChange(ctx)
		}
		return nil
	}
	return s.putOffByID(ctx, event, "the order keeps moving")
}

// done is the result of settling an event.
type done struct {
	what  outcome
	order *order.Order // when it moved
	held  bool         // for an operator
}

func (s *Service) settle(ctx context.Context, e *ent.PaymentEvent) (done, error) {
	p, err := s.Payment(ctx, e.PaymentID)
	switch {
	case err != nil:
		return done{}, err
	case p == nil || p.Provider != e.Provider:
		return done{}, putOffError{why: "no such payment", hold: holdUnknown}
	}
	if e.Kind == paymentevent.KindREFUND_FAILED {
		return s.settleRefundFailed(ctx, e, p)
	}
	if e.Kind == paymentevent.KindREFUNDED {
		return s.settleRefunded(ctx, e, p)
	}
	if code, ok := disputes[EventKind(e.Kind)]; ok {
		return s.settleDispute(ctx, e, p, code)
	}
	if e.Kind == paymentevent.KindATTEMPT_DECLINED {
		return s.settleAttempt(ctx, e, p)
	}
	if e.Kind == paymentevent.KindAUTHORIZED {
		return s.settleAuthorized(ctx, e, p)
	}
	if e.Kind != paymentevent.KindSUCCEEDED {
		return s.settleClosed(ctx, e, p)
	}
	if !p.Status.IsOpen() && p.Status != Closed {
		what := outcomeRepeated
		if e.Transaction != p.Transaction && e.Transaction != "" && p.Transaction != "" {
			what = outcomeTwoTx
		}
		return s.finish(ctx, e, what, nil)
	}
	o, err := s.cfg.Orders.Reload(ctx, p.Order)
	switch {
	case err != nil:
		return done{}, err
	case o == nil && p.hasOrder():
		return done{}, putOffError{why: "no such order", hold: holdUnknown}
	}
	switch known, err := s.heldBefore(ctx, e); {
	case err != nil:
		return done{}, err
	case known:
		return s.finish(ctx, e, outcomeRepeated, nil)
	case o == nil: // captured at the provider, before its entry was drawn
		return s.sendBack(ctx, e, p, nil, Late)
	case e.AmountMinor != p.AmountMinor || e.Currency != p.Currency:
		return s.settleMismatch(ctx, e, p)
	}
	switch o.Status {
	case order.PendingPayment:
		paid, err := s.pay(ctx, e, p, order.Move{Order: o, To: order.Paid, Entry: order.Entry{Code: order.CodePaid}}, nil)
		if errors.Is(err, errPayerUsedUp) {
			return s.refusePayer(ctx, e, p, o)
		}
		return paid, err
	case order.Expired:
		return s.payLate(ctx, e, p, o)
	case order.Paid, order.Refunding, order.Refunded:
		return s.sendBack(ctx, e, p, o, Double)
	case order.Cancelled:
		return s.sendBack(ctx, e, p, o, Late)
	}
	return done{}, fmt.Errorf("order %s in state %s", o.ID, o.Status)
}

// settleClosed records that a payment ended unpaid. The state of its order is unchanged:
// the buyer may try again until the deadline.
func (s *Service) settleClosed(ctx context.Context, e *ent.PaymentEvent, p *Payment) (done, error) {
	if !p.Status.IsOpen() {
		return s.finish(ctx, e, outcomeRepeated, nil)
	}
	result, err := s.finish(ctx, e, outcomeClosed, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if err := s.mark(ctx, tx, p, entpayment.StatusCLOSED, e); err != nil {
			return nil, err
		}
		if err := s.endEntryHold(ctx, tx, p); err != nil {
			return nil, err
		}
		if e.Kind != paymentevent.KindDECLINED || !p.hasOrder() {
			return nil, nil
		}
		return s.noteNotCaptured(ctx, tx, p)
	})
	if err == nil {
		s.showEntry(ctx, p)
	}
	return result, err
}

// heldBefore reports whether another event about the same transaction is held, or was: a
// report and the answer to a query have different ids. An operator decides about that
// money, or has given it back.
func (s *Service) heldBefore(ctx context.Context, e *ent.PaymentEvent) (bool, error) {
	known, err := s.cfg.DB.Ent.PaymentEvent.Query().
		Where(paymentevent.PaymentID(e.PaymentID), paymentevent.Provider(e.Provider),
			paymentevent.Transaction(e.Transaction), paymentevent.KindEQ(paymentevent.KindSUCCEEDED), paymentevent.IDNEQ(e.ID),
			paymentevent.AmountMinor(e.AmountMinor), paymentevent.Currency(e.Currency),
			paymentevent.StateNEQ(paymentevent.StateRECEIVED)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("read held events of payment %s: %w", e.PaymentID, err)
	}
	return known, nil
}

// settleMismatch holds money that does not match its payment for an operator and does
// not apply it to the order. The payment is closed, so that the order expires as if it
// had not been paid; see ReturnHeld.
func (s *Service) settleMismatch(ctx context.Context, e *ent.PaymentEvent, p *Payment) (done, error) {
	return s.finish(ctx, e, outcomeMismatch, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if err := s.mark(ctx, tx, p, entpayment.StatusCLOSED, nil); err != nil {
			return nil, err
		}
		return s.noteOrder(ctx, tx, p, order.Entry{Code: order.CodePaymentHeld})
	})
}

// pay sets the payment to SUCCEEDED and the order to PAID in one transaction. guard,
// when not nil, runs first in it.
func (s *Service) pay(ctx context.Context, e *ent.PaymentEvent, p *Payment, m order.Move,
	guard func(context.Context, *ent.Tx) error) (done, error) {
	what := outcomePaid
	if m.Order.Status == order.Expired {
		what = outcomePaidLate
	}
	m.At = s.now()
	m.Entry.By = order.Actor{Kind: order.Provider}
	return s.finish(ctx, e, what, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if guard != nil {
			if err := guard(ctx, tx); err != nil {
				return nil, err
			}
		}
		if err := s.countPayer(ctx, tx, e, m.Order); err != nil {
			return nil, err
		}
		if err := s.mark(ctx, tx, p, entpayment.StatusSUCCEEDED, e); err != nil {
			return nil, err
		}
		paid, err := s.apply(ctx, tx, m)
		if err != nil {
			return nil, err
		}
		return paid, s.writePaid(ctx, tx, paid, p.Provider)
	})
}

// payLate reacquires the units of an expired order if the gate and Postgres have them;
// otherwise the money is refunded.
func (s *Service) payLate(ctx context.Context, e *ent.PaymentEvent, p *Payment, o *order.Order) (done, error) {
	reserved := o.Reservation()
	reserved.Name = LateReservation(o.ID)
	taken, epoch, err := s.cfg.Gate.Reacquire(ctx, reserved)
	if err != nil {
		return done{}, fmt.Errorf("reacquire units: %w", err)
	}
	switch taken {
	case ReacquireNotYet:
		return done{}, putOffError{why: "the units are not back yet"}
	case ReacquireNone, ReacquireOther:
		return s.sendBack(ctx, e, p, o, Late)
	case ReacquireDone, ReacquireNoGate:
	}
	move := order.Move{Order: o, To: order.Paid, NewReservation: &reserved.Name,
		Entry: order.Entry{Code: order.CodePaidLate}}
	paid, err := s.pay(ctx, e, p, move, func(ctx context.Context, tx *ent.Tx) error {
		return gateUnchanged(ctx, tx, o, taken, epoch)
	})
	if errors.Is(err, order.ErrNoUnit) || errors.Is(err, order.ErrOtherLive) || errors.Is(err, errPayerUsedUp) {
		// Postgres decides, and a gate that is being rebuilt has no reservation of an
		// expired order.
		if _, err := s.cfg.Gate.Return(ctx, reserved); err != nil {
			return done{}, fmt.Errorf("return units: %w", err)
		}
		return s.sendBack(ctx, e, p, o, Late)
	}
	return paid, err
}

// gateUnchanged locks the sale's row and postpones the event when the sale's gate has
// changed since Reacquire. A rebuild writes its epoch in that row before it reads the
// orders: either it sees this transaction, or this transaction sees the epoch. Without
// a gate Postgres alone decides, about the limit of the sale as well, which is correct only
// while the sale needs none.
func gateUnchanged(ctx context.Context, tx *ent.Tx, o *order.Order, outcome ReacquireOutcome, epoch int64) error {
	if err := tx.Sale.Update().Where(entsale.ID(o.Sale)).AddEpoch(0).Exec(ctx); err != nil {
		return fmt.Errorf("lock sale %s: %w", o.Sale, err)
	}
	row, err := tx.Sale.Get(ctx, o.Sale)
	if err != nil {
		return fmt.Errorf("read sale %s: %w", o.Sale, err)
	}
	switch {
	case outcome == ReacquireNoGate && sale.Status(row.Status).Loaded():
		return putOffError{why: "the gate is not loaded yet"}
	case outcome == ReacquireDone && row.Epoch != epoch:
		return putOffError{why: "the gate is being rebuilt"}
	case outcome == ReacquireNoGate:
		return withinLimit(ctx, tx, row, o)
	}
	return nil
}

// withinLimit returns order.ErrOtherLive if an order would bring its buyer, or the accounts of its
// buyer's person, above the limit of the sale.
func withinLimit(ctx context.Context, tx *ent.Tx, row *ent.Sale, o *order.Order) error {
	limit := sale.LimitOf(row)
	subjects := []predicate.Order{}
	if limit > 0 {
		subjects = append(subjects, entorder.UserID(o.User))
	}
	for _, key := range []person.Key{o.Persons.Contact, o.Persons.Address} {
		if key != "" {
			subjects = append(subjects, entorder.PersonKeysContains(string(key)))
		}
	}
	for _, subject := range subjects {
		live := tx.Order.Query().Where(entorder.SaleID(o.Sale), subject, entorder.IDNEQ(o.ID),
			entorder.StatusIn(entorder.StatusPENDING_PAYMENT, entorder.StatusPAID, entorder.StatusREFUNDING))
		most := limit
		if limit == 0 { // of a person in an item
			item, err := tx.SaleItem.Get(ctx, o.Item)
			if err != nil {
				return fmt.Errorf("read item %s: %w", o.Item, err)
			}
			most = sale.ItemLimitOf(row, item)
			live.Where(entorder.ItemID(o.Item))
		}
		rows, err := live.All(ctx)
		if err != nil {
			return fmt.Errorf("read live orders of the buyer: %w", err)
		}
		units := o.Quantity
		for _, other := range rows {
			units += order.FromRow(other).Left()
		}
		if units > most {
			return order.ErrOtherLive
		}
	}
	return nil
}

// sendBack records money that the order cannot use, or that has no order, and begins its refund, in
// one transaction. An entry whose money goes back has no authorized card any more.
func (s *Service) sendBack(ctx context.Context, e *ent.PaymentEvent, p *Payment, o *order.Order, cause Cause) (done,
	error) {
	what := outcomeRefund
	switch {
	case o == nil:
		what = outcomeUndrawn
	case cause == Double:
		what = outcomeDouble
	}
	defer s.showEntry(ctx, p)
	return s.finish(ctx, e, what, func(ctx context.Context, tx *ent.Tx) (*order.Order, error) {
		if err := s.mark(ctx, tx, p, entpayment.StatusSUCCEEDED, e); err != nil {
			return nil, err
		}
		if err := s.endEntryHold(ctx, tx, p); err != nil {
			return nil, err
		}
		noted, err := order.Note(ctx, tx, o, s.now(), order.Entry{
			By: order.Actor{Kind: order.Provider}, Code: order.CodePaymentReturned,
		})
		if err != nil {
			return nil, err
		}
		return noted, s.newRefund(ctx, tx, refundDraft{
			payment: p, cause: cause, status: RefundSending, key: ownKey("auto", p.ID), reason: string(what),
			amount: e.AmountMinor,
		})
	})
}

// finish commits the changes of an event and its result in one transaction.
func (s *Service) finish(ctx context.Context, e *ent.PaymentEvent, what outcome,
	effect func(context.Context, *ent.Tx) (*order.Order, error)) (done, error) {
	state := paymentevent.StateHANDLED
	if what == outcomeMismatch || what == outcomeTwoTx || what == outcomeUnmatched || what == outcomeRefundedPart {
		state = paymentevent.StateHELD
	}
	result := done{what: what, held: state == paymentevent.StateHELD}
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := s.now()
		n, err := tx.PaymentEvent.Update().Where(paymentevent.ID(e.ID), paymentevent.StateEQ(paymentevent.StateRECEIVED)).
			SetState(state).SetOutcome(string(what)).SetHandledAt(now).ClearPayer().Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return order.ErrMoved // handled by another process: the next attempt reads the result
		}
		if state == paymentevent.StateHELD {
			if err := s.writeUnmatched(ctx, tx, e, what, now); err != nil {
				return err
			}
		}
		if effect != nil {
			result.order, err = effect(ctx, tx)
		}
		return err
	})
	return result, err
}

// mark changes a payment's state with a compare-and-set; with an event it also records
// the money, or that the provider declined.
func (s *Service) mark(ctx context.Context, tx *ent.Tx, p *Payment, to entpayment.Status, e *ent.PaymentEvent) error {
	now := s.now()
	update := tx.Payment.Update().Where(entpayment.ID(p.ID), entpayment.Version(p.Version)).
		SetStatus(to).AddVersion(1).SetUpdatedAt(now)
	switch {
	case e != nil && e.Kind == paymentevent.KindSUCCEEDED:
		update.SetTransaction(e.Transaction).SetPaidAt(now)
		if e.ProviderRef != "" {
			update.SetProviderRef(e.ProviderRef)
		}
	case e != nil && EventKind(e.Kind).declines():
		update.SetDeclined(e.Kind == paymentevent.KindDECLINED).SetFailureCode(string(DeclineOf(e.Reason)))
	}
	n, err := update.Save(ctx)
	if err != nil {
		return fmt.Errorf("mark payment %s as %s: %w", p.ID, to, err)
	}
	if n == 0 {
		return order.ErrMoved
	}
	return nil
}

// putOff postpones an event, longer each time, and holds it for an operator once it is too
// old.
func (s *Service) putOff(ctx context.Context, e *ent.PaymentEvent, wait putOffError) error {
	now := s.now()
	if now.Sub(e.CreatedAt) >= cmp.Or(wait.hold, holdAfter) {
		s.cfg.Log.ErrorContext(ctx, "payment event held", slog.String("event", e.ID.String()), slog.String("outcome",
			wait.why))
		s.metrics.event(EventKind(e.Kind), outcomeUnmatched)
		_, err := s.finish(ctx, e, outcomeUnmatched, nil)
		s.reportChange(ctx)
		return err
	}
	pause := min(firstRetry<<min(e.Tries, 10), maxRetry)
	s.metrics.event(EventKind(e.Kind), outcomePutOff)
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.PaymentEvent.Update().Where(paymentevent.ID(e.ID), paymentevent.StateEQ(paymentevent.StateRECEIVED)).
			SetTryAt(now.Add(pause)).AddTries(1).SetOutcome(wait.why).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("put payment event %s off: %w", e.ID, err)
	}
	return nil
}

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
		s.cfg.AfterCommit.Publish(ctx, noted)
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
