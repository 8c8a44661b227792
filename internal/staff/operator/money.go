package operator

import (
	"context"
	"errors"
	"fmt"

	"seckill/ent"
	"seckill/ent/intervention"
	"seckill/internal/buy/sale"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// DefaultTwoPersonMoney is how much money one operator returns within 24 h without
// confirmation by a second operator, in minor units of each currency.
const DefaultTwoPersonMoney = 1_000_000

// moneyKinds are the acts by which an operator returns money.
var moneyKinds = []intervention.Kind{
	intervention.KindREFUND, intervention.KindSETTLE_REFUND, intervention.KindRETURN_PAYMENT,
	intervention.KindSETTLE_PAYMENT,
}

// ofMoney reports whether an act returns money up to a bound of its operator.
func (k Kind) ofMoney() bool {
	switch k {
	case Refund, SettleRefund, ReturnPayment, SettlePayment:
		return true
	case AdjustStock, VoidOrder, ExtendSale, ChangeSale, ChangeGoods, DrawValue:
	}
	return false
}

// returnsAlone reports whether one operator returns money without confirmation. sum is what
// the operator returned alone within aloneWindow, with the money of this act. A paid order is
// taken from its buyer by two, whatever it cost.
func (s *Service) returnsAlone(kind Kind, paid bool, sum int64) bool {
	if kind == VoidOrder {
		return !paid
	}
	return sum <= s.cfg.TwoPersonMoney
}

// Returned is the result of an act that returns money: the order, its refund, and the request
// for confirmation. Each may be nil.
type Returned struct {
	payment.RefundResult
	Payment      id.Payment // whose money is returned, of held money
	Intervention *Intervention
}

// ReturnInput is an act on a refund or on held money.
type ReturnInput struct {
	By     sale.Actor
	Kind   Kind
	Refund payment.Decision // of Refund and SettleRefund
	Held   id.Held          // of ReturnPayment and SettlePayment
	Note   string
}

// Return approves or settles a refund, or returns or settles held money. Above the bound of
// one person it becomes a request. Decisions that return no money, and repeated ones, are made
// at once.
func (s *Service) Return(ctx context.Context, in ReturnInput) (Returned, error) {
	if err := requireStaff(in.By); err != nil {
		return Returned{}, err
	}
	act := &Intervention{ID: id.Act(s.cfg.NewID()), Kind: in.Kind, State: Refunding, Note: in.Note, RequestedBy: in.By.ID,
		KeepUnits: in.Refund.KeepUnits}
	due, err := s.due(ctx, act, in)
	if err != nil {
		return Returned{}, err
	}
	if !due { // the payment says what is wrong, or repeats its answer
		return s.pay(ctx, act)
	}
	if before, err := s.openMoney(ctx, act); before != nil || err != nil {
		return Returned{Intervention: before}, err
	}
	if err := s.cfg.DB.WithTx(ctx, func(ctx context.Context,
		tx *ent.Tx) error {
		return s.insert(ctx, tx, act)
	}); err != nil {
		return Returned{}, unknownOutcome(err)
	}
	return s.returnMoney(ctx, act)
}

// due completes an act with its money, for a refund the amount that the operator saw, and
// reports whether it returns any.
func (s *Service) due(ctx context.Context, act *Intervention, in ReturnInput) (bool, error) {
	if in.Kind == ReturnPayment || in.Kind == SettlePayment {
		act.Subject = in.Held.UUID()
		h, err := s.cfg.Payments.HeldEvent(ctx, in.Held)
		if h == nil || err != nil {
			return false, err
		}
		act.Amount = money.Amount{Minor: h.AmountMinor, Currency: h.Currency}
		p, err := s.cfg.Payments.Payment(ctx, h.Payment)
		if p == nil || err != nil {
			return err == nil, err
		}
		act.Order = &p.Order
		return p.User != in.By.ID, s.saleOf(ctx, act)
	}
	act.Subject = in.Refund.Refund.UUID()
	r, err := s.cfg.Payments.Refund(ctx, in.Refund.Refund)
	if r == nil || err != nil {
		return false, err
	}
	amount := money.Amount{Minor: r.AmountMinor, Currency: r.Currency}
	act.Amount, act.Order = amount, &r.Order
	if in.Refund.Amount != nil {
		act.Amount = *in.Refund.Amount
	}
	p, err := s.cfg.Payments.Payment(ctx, r.Payment)
	if p == nil || err != nil {
		return false, err
	}
	waits := r.Status == payment.RefundRequested && in.Kind == Refund || r.Status == payment.RefundGivenUp &&
		in.Kind == SettleRefund
	return waits && act.Amount == amount && p.User != in.By.ID, s.saleOf(ctx, act)
}

func (s *Service) saleOf(ctx context.Context, act *Intervention) error {
	o, err := s.cfg.Orders.Reload(ctx, *act.Order)
	if o != nil {
		act.Sale = o.Sale
	}
	return err
}

// openMoney returns an act on the same refund or money that is not finished; nil = none.
func (s *Service) openMoney(ctx context.Context, act *Intervention) (*Intervention, error) {
	row, err := s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.SubjectID(act.Subject), intervention.KindIn(moneyKinds...),
		intervention.StateIn(intervention.StateREQUESTED, intervention.StateREFUNDING),
	).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find what returns %s: %w", act.Subject, err)
	}
	return fromRow(row), nil
}

// returnMoney continues an act in state REFUNDING: it asks for a second person, or returns the
// money. The act was committed before the sum is read, so that of two acts at a time at least
// one sees the other.
func (s *Service) returnMoney(ctx context.Context, act *Intervention) (Returned, error) {
	if act.DecidedBy == nil {
		sum, err := s.returned(ctx, act)
		if err != nil {
			return Returned{Intervention: act}, err
		}
		if !s.returnsAlone(act.Kind, true, sum) {
			asked, err := s.move(ctx, act, Requested)
			if err != nil {
				return Returned{}, unknownOutcome(err)
			}
			s.reportChange(ctx)
			return Returned{Intervention: asked}, nil
		}
	}
	done, failed := s.pay(ctx, act)
	to := Done
	if _, refused := fault.AsRefusal(failed); refused {
		to = Refused
	} else if failed != nil {
		return done, failed // Step repeats it
	}
	now, err := s.move(ctx, act, to)
	s.reportChange(ctx)
	done.Intervention = now
	return done, errors.Join(failed, err)
}

// returned returns what the operator of an act returned alone within aloneWindow, with the act.
func (s *Service) returned(ctx context.Context, act *Intervention) (sum int64, err error) {
	var before []int64
	err = s.cfg.DB.Ent.Intervention.Query().Where(
		intervention.RequestedBy(act.RequestedBy), intervention.KindIn(moneyKinds...),
		intervention.Currency(act.Amount.Currency),
		intervention.DecidedByIsNil(), intervention.StateIn(intervention.StateREFUNDING, intervention.StateDONE),
		intervention.IDNEQ(act.ID),
		intervention.CreatedAtGT(s.cfg.Clock.Now().Add(-aloneWindow)),
	).Select(intervention.FieldAmountMinor).Scan(ctx, &before)
	if err != nil {
		return 0, fmt.Errorf("sum what %s returned: %w", act.RequestedBy, err)
	}
	sum = act.Amount.Minor
	for _, minor := range before {
		sum += minor
	}
	return sum, nil
}

// pay makes the act with package payment, which is idempotent.
func (s *Service) pay(ctx context.Context, act *Intervention) (done Returned, err error) {
	by := act.actor().ID
	switch act.Kind {
	case Refund:
		done.RefundResult, err = s.cfg.Payments.DecideRefund(ctx, payment.Decision{
			Refund: id.Refund(act.Subject), Operator: by, Approve: true, Note: act.Note, KeepUnits: act.KeepUnits,
			Amount: &act.Amount,
		})
	case SettleRefund:
		done.RefundResult, err = s.cfg.Payments.SettleRefund(ctx, payment.Settlement{Refund: id.Refund(act.Subject),
			Operator: by, Reason: act.Note})
	case ReturnPayment:
		done.Payment, err = s.cfg.Payments.ReturnHeld(ctx, id.Held(act.Subject), by, act.Note)
	case SettlePayment:
		done.Payment, err = s.cfg.Payments.SettleHeld(ctx, id.Held(act.Subject), by, act.Note)
	case AdjustStock, VoidOrder, ExtendSale, ChangeSale, ChangeGoods, DrawValue:
	}
	return done, err
}

// returnConfirmed returns the money of a confirmed request.
func (s *Service) returnConfirmed(ctx context.Context, request *Intervention) (*Intervention, error) {
	confirmed, err := s.move(ctx, request, Refunding)
	switch {
	case err != nil:
		return nil, unknownOutcome(err)
	case confirmed.State != Refunding:
		return confirmed, conflict("interventionId")
	}
	done, err := s.returnMoney(ctx, confirmed)
	if _, refused := fault.AsRefusal(err); refused {
		return done.Intervention, conflict("interventionId")
	}
	if err != nil {
		return confirmed, nil //nolint:nilerr // it was confirmed, and Step goes on
	}
	return done.Intervention, nil
}
