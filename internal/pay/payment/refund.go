package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/predicate"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// maxRefunds bounds the refund requests of one order that operators reject.
const maxRefunds = 5

// busyRetry is when a request that lost against other changes may be repeated: units of a
// refund are back at the gate after about this time.
const busyRetry = time.Second

// RefundRequest is the input of AskRefund.
type RefundRequest struct {
	Order          id.Order
	User           id.User // the principal
	Quantity       *int    // units to refund; nil = all that are left
	Reason         string
	IdempotencyKey string
}

// RefundResult is an order and its refund.
type RefundResult struct {
	Order    *order.Order // current state, also beside a refusal; nil when the user may not see it
	Refund   *Refund      // nil when refused
	Replayed bool
}

// AskRefund requests a refund of some or all units of a paid order. An operator decides on
// it. An order has at most one refund at a time that is not finished.
func (s *Service) AskRefund(ctx context.Context, in RefundRequest) (RefundResult, error) {
	if err := remark(&in.Reason, 1, "reason"); err != nil {
		return RefundResult{}, err
	}
	for range maxRaces {
		result, err := s.tryAskRefund(ctx, in)
		if err == nil || !(errors.Is(err, order.ErrMoved) || postgres.IsUnique(err)) {
			return result, err
		}
	}
	return RefundResult{}, busy("The order is being changed. Please try again.")
}

func (s *Service) tryAskRefund(ctx context.Context, in RefundRequest) (RefundResult, error) {
	o, err := s.own(ctx, in.Order, in.User)
	if o == nil {
		return RefundResult{}, err
	}
	all, err := s.RefundsOf(ctx, o.ID)
	if err != nil {
		return RefundResult{}, err
	}
	for _, r := range all[o.ID] {
		if r.IdempotencyKey != in.IdempotencyKey {
			continue
		}
		if in.Quantity != nil && *in.Quantity != r.units(o) {
			return RefundResult{Order: o}, fault.Refused{Why: fault.IdempotencyMismatch, At: []string{"idempotencyKey"}}
		}
		return RefundResult{Order: o, Refund: r, Replayed: true}, nil
	}
	conflict := fault.Refused{Why: fault.Conflict, At: []string{"orderId"}}
	if o.Status != order.Paid || rejected(all[o.ID]) >= maxRefunds {
		return RefundResult{Order: o}, conflict
	}
	units, err := UnitsOf(o, in.Quantity)
	if err != nil {
		return RefundResult{Order: o}, err
	}
	p, err := s.paidBy(ctx, o.ID)
	if err != nil {
		return RefundResult{}, err
	}
	if p == nil {
		if now, err := s.reload(ctx, o.ID); err != nil || now.Version != o.Version {
			return RefundResult{}, cmp.Or(err, order.ErrMoved) // another refund began in the meantime
		}
		return RefundResult{Order: o}, conflict
	}
	moved, r, err := s.beginRefund(ctx, o, refundDraft{
		payment: p, cause: Asked, status: RefundRequested, key: in.IdempotencyKey, reason: in.Reason, restock: true,
		units: units,
	}, order.Entry{By: order.Actor{Kind: order.Buyer, User: in.User}, Code: order.CodeRefundAsked, Note: in.Reason})
	if err != nil {
		return RefundResult{}, err
	}
	s.cfg.AfterCommit.Publish(ctx, moved)
	s.reportChange(ctx)
	return RefundResult{Order: moved, Refund: r}, nil
}

// beginRefund moves a paid order to REFUNDING and writes the refund of some of its units.
func (s *Service) beginRefund(ctx context.Context, o *order.Order, draft refundDraft,
	entry order.Entry) (moved *order.Order, r *Refund, err error) {
	left, err := s.toRefund(ctx, draft.payment)
	if err != nil {
		return nil, nil, err
	}
	draft.id, draft.amount, entry.Units = id.New[id.Refund](), amountOf(o, left, draft.units), draft.units
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		moved, err = s.apply(ctx, tx, order.Move{Order: o, To: order.Refunding, At: s.now(), Entry: entry})
		if err != nil {
			return err
		}
		return s.newRefund(ctx, tx, draft)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("begin refund of order %s: %w", o.ID, err)
	}
	r, err = s.Refund(ctx, draft.id)
	return moved, r, err
}

type refundDraft struct {
	id          id.Refund // zero = a new one
	payment     *Payment
	cause       Cause
	status      RefundStatus
	key         string
	reason      string
	restock     bool
	units       int               // of the order that are refunded; 0 = none: the money paid no units
	amount      int64             // of these units; 0 = that of the payment
	decider     id.User           // for VOIDED
	transaction string            // to refund; "" = the payment's own
	came        *ent.PaymentEvent // the received money, when it differs from the payment
}

// ownKey returns the key of a refund that no buyer requested. It cannot collide with a
// buyer's key, because the API accepts no colon in keys.
func ownKey(why string, cause fmt.Stringer) string { return why + ":" + cause.String() }

// newRefund writes a refund of units, of the whole payment, or of the money of an event. A
// unique index allows one of the latter each, and one of units that is not finished.
func (s *Service) newRefund(ctx context.Context, tx *ent.Tx, d refundDraft) error {
	if d.id.IsZero() {
		d.id = id.New[id.Refund]()
	}
	now := s.now()
	row := tx.Refund.Create().SetID(d.id).SetOrderID(d.payment.Order).SetPaymentID(d.payment.ID).SetIdempotencyKey(d.key).
		SetCause(entrefund.Cause(d.cause)).SetStatus(entrefund.Status(d.status)).SetAmountMinor(d.payment.AmountMinor).
		SetCurrency(d.payment.Currency).SetReason(d.reason).SetRestock(d.restock).SetTryAt(now).SetCreatedAt(now).
		SetUpdatedAt(now)
	if d.amount > 0 {
		row.SetAmountMinor(d.amount)
	}
	row.SetQuantity(d.units).SetTransaction(d.transaction)
	if d.status != RefundRequested {
		row.SetDecidedAt(now)
	}
	if !d.decider.IsZero() {
		row.SetDecidedBy(d.decider)
	}
	if d.came != nil {
		row.SetAmountMinor(d.came.AmountMinor).SetCurrency(d.came.Currency).SetTransaction(d.came.Transaction)
	}
	if err := row.Exec(ctx); err != nil {
		return fmt.Errorf("write refund of payment %s: %w", d.payment.ID, err)
	}
	return nil
}

// paidBy returns the payment that paid an order and has money left, or nil: also while a
// refund of it is not finished.
func (s *Service) paidBy(ctx context.Context, o id.Order) (*Payment, error) {
	rows, err := s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.OrderID(o), entpayment.StatusEQ(entpayment.StatusSUCCEEDED)).Order(ent.Asc(entpayment.FieldPaidAt)).
		All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read payments of order %s: %w", o, err)
	}
	for _, row := range rows {
		going, err := s.cfg.DB.Ent.Refund.Query().
			Where(entrefund.PaymentID(row.ID), entrefund.Transaction(""), entrefund.StatusNEQ(entrefund.StatusREJECTED),
				entrefund.Not(finishedPart())).Exist(ctx)
		if err != nil {
			return nil, fmt.Errorf("read refunds of payment %s: %w", row.ID, err)
		}
		if !going {
			return fromRow(row), nil
		}
	}
	return nil, nil
}

// Decision is an operator's decision about a requested refund.
type Decision struct {
	Refund   id.Refund
	Operator id.User
	Approve  bool
	Note     string
	// Amount is the amount that the operator has confirmed; nil = that of the refund.
	Amount *money.Amount
	// KeepUnits does not return the units of an approved refund to stock.
	KeepUnits bool
}

// DecideRefund decides on a refund. Repeating the same decision changes nothing. A loop
// sends the refund to the provider until it succeeds. Approving a refund that the provider
// gave up orders another attempt.
func (s *Service) DecideRefund(ctx context.Context, d Decision) (RefundResult, error) {
	if err := remark(&d.Note, 0, "note"); err != nil {
		return RefundResult{}, err
	}
	return racing(func() (RefundResult, error) { return s.tryDecide(ctx, d) })
}

// racing retries a change of a refund that lost against a concurrent change.
func racing(try func() (RefundResult, error)) (RefundResult, error) {
	for range maxRaces {
		result, err := try()
		if !errors.Is(err, order.ErrMoved) {
			return result, err
		}
	}
	return RefundResult{}, busy("The refund is being changed. Please try again.")
}

// busy returns the fault of a request whose retries all lost against concurrent changes.
func busy(message string) error {
	return &fault.Error{Code: fault.Unavailable, Message: message, RetryAfter: busyRetry}
}

// refundIDField is the input field that names a refund.
// maxRemark bounds what a buyer or an operator says about money, in characters.
const maxRemark = 200

// remark puts a remark into the form in which it is stored, and checks it.
func remark(text *string, least int, field string) error {
	return checkText(text, least, maxRemark, field)
}

// checkText cleans and checks a text that may have several lines.
func checkText(text *string, least, most int, field string) error {
	*text = typed.Text(*text)
	if rule := fault.Lines(*text, least, most); rule != (fault.Rule{}) {
		return fault.BadField{At: []string{field}, Rule: rule}
	}
	return nil
}

var refundIDField = []string{"refundId"}

// errUnknownRefund also refuses a refund whose payment or order is gone: Postgres may go back
// between two reads.
var errUnknownRefund = fault.Refused{Why: fault.Unknown, At: refundIDField}

// refundOf returns a refund, its payment, and its order, which is nil for an entry that was not drawn.
// A refund that is unknown is refused.
func (s *Service) refundOf(ctx context.Context, refund id.Refund) (r *Refund, p *Payment, o *order.Order, err error) {
	if r, err = s.Refund(ctx, refund); err != nil {
		return nil, nil, nil, err
	}
	if r == nil {
		return nil, nil, nil, errUnknownRefund
	}
	p, err = s.Payment(ctx, r.Payment)
	if err == nil && p == nil {
		err = errUnknownRefund
	}
	if err != nil {
		return nil, nil, nil, err
	}
	o, err = s.refundedOrder(ctx, r, p)
	return r, p, o, err
}

// refundedOrder returns the order of a refund; nil for an entry that was not drawn.
func (s *Service) refundedOrder(ctx context.Context, r *Refund, p *Payment) (*order.Order, error) {
	if !p.hasOrder() {
		return nil, nil
	}
	o, err := s.cfg.Orders.Reload(ctx, r.Order)
	if err == nil && o == nil {
		err = errUnknownRefund
	}
	return o, err
}

func (s *Service) tryDecide(ctx context.Context, d Decision) (RefundResult, error) {
	r, p, o, err := s.refundOf(ctx, d.Refund)
	if err != nil {
		return RefundResult{}, err
	}
	if d.Approve && d.Amount != nil && *d.Amount != (money.Amount{Minor: r.AmountMinor, Currency: r.Currency}) {
		return RefundResult{}, fault.BadField{At: []string{"amount"}, Rule: fault.Rule{Code: "the amount of the refund"}}
	}
	if r.Status != RefundRequested && !(r.Status == RefundGivenUp && d.Approve && r.Attempts < maxAttempts) {
		approved := r.Status != RefundRejected
		if approved != d.Approve || r.DecidedBy == nil || r.Status == RefundGivenUp {
			return RefundResult{Order: o, Refund: r}, fault.Refused{Why: fault.Conflict, At: refundIDField}
		}
		return RefundResult{Order: o, Refund: r, Replayed: true}, nil
	}
	if p.User == d.Operator {
		return RefundResult{Order: o, Refund: r}, OwnOrder{fault.Refused{Why: fault.Conflict, At: refundIDField}}
	}
	decide := s.decide
	if r.Status == RefundGivenUp {
		decide = s.sendAgain
	}
	moved, err := decide(ctx, r, o, d)
	if postgres.IsUnique(err) { // another refund of the payment is not finished
		return RefundResult{Order: o, Refund: r}, fault.Refused{Why: fault.Conflict, At: refundIDField}
	}
	if err != nil {
		return RefundResult{}, err
	}
	s.cfg.AfterCommit.Publish(ctx, moved)
	s.reportChange(ctx)
	r, err = s.Refund(ctx, r.ID)
	return RefundResult{Order: moved, Refund: r}, err
}

// OwnOrder refuses a decision of an operator about the money of their own order.
type OwnOrder struct{ fault.Refused }

func (s *Service) decide(ctx context.Context, r *Refund, o *order.Order, d Decision) (moved *order.Order, err error) {
	status, code := entrefund.StatusREJECTED, order.CodeRefundRejected
	if d.Approve {
		status, code = entrefund.StatusSENDING, order.CodeRefundApproved
	}
	entry := order.Entry{By: order.Actor{Kind: order.Operator, User: d.Operator}, Code: code, Note: d.Note,
		Units: r.Quantity}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := s.now()
		n, err := tx.Refund.Update().Where(entrefund.ID(r.ID), entrefund.Version(r.Version)).
			SetStatus(status).SetDecidedBy(d.Operator).SetDecidedAt(now).SetDecision(d.Note).SetRestock(!d.KeepUnits).
			SetTryAt(now).SetUpdatedAt(now).AddVersion(1).Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return order.ErrMoved
		}
		if !d.Approve {
			moved, err = s.apply(ctx, tx, order.Move{Order: o, To: order.Paid, At: now, Entry: entry})
			return err
		}
		moved, err = order.Note(ctx, tx, o, now, entry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("decide on refund %s: %w", r.ID, err)
	}
	return moved, nil
}

// noteOrder writes to the log of the order of a payment, whose state does not change; see order.Note.
func (s *Service) noteOrder(ctx context.Context, tx *ent.Tx, p *Payment, entry order.Entry) (*order.Order, error) {
	if !p.hasOrder() {
		return nil, nil
	}
	row, err := tx.Order.Get(ctx, p.Order)
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", p.Order, err)
	}
	entry.By = order.Actor{Kind: order.Provider}
	return order.Note(ctx, tx, order.FromRow(row), s.now(), entry)
}

// UnitsOf returns the units of an order to refund: those that were asked for, or all that
// are left.
func UnitsOf(o *order.Order, asked *int) (int, error) {
	left := o.Left()
	switch {
	case asked == nil:
		return left, nil
	case *asked < 1 || *asked > left:
		return 0, fault.BadField{At: []string{"quantity"}, Rule: fault.Rule{Code: fmt.Sprintf("1 to %d", left)}}
	}
	return *asked, nil
}

// amountOf returns what is refunded for units of an order of whose payment an amount is left. The
// last units take all of it, and others no more than it.
func amountOf(o *order.Order, left int64, units int) int64 {
	if units == o.Left() {
		return left
	}
	return min(left, o.UnitPriceMinor*int64(units))
}

// units returns the units of the refund. Rows of the first releases have none: they are of
// all units.
func (r *Refund) units(o *order.Order) int {
	if r.Quantity == 0 && r.Cause.moves() {
		return o.Quantity
	}
	return r.Quantity
}

// move returns the move of an order that the refund ends, wholly or in part.
func (r *Refund) move(o *order.Order) order.Move {
	m := order.Move{Order: o, To: order.Refunded, KeepUnits: !r.Restock}
	units := r.units(o)
	if units < o.Quantity {
		m.Part = &order.Part{Refund: r.ID, Units: units}
	}
	if units < o.Left() {
		m.To = order.Paid
	}
	return m
}

// rejected counts the refunds that operators rejected.
func rejected(refunds []*Refund) (n int) {
	for _, r := range refunds {
		if r.Status == RefundRejected {
			n++
		}
	}
	return n
}

// finishedPart matches refunds of units whose money is back with the buyer.
func finishedPart() predicate.Refund {
	return entrefund.And(entrefund.QuantityGT(0), entrefund.StatusIn(entrefund.StatusSUCCEEDED, entrefund.StatusSETTLED))
}

// afterRefund returns the state of a payment once a refund of it has succeeded: REFUNDED
// when its provider keeps no money of it. The caller changes the payment with a
// compare-and-set, so that of two refunds at the same time the second one counts the first.
func afterRefund(ctx context.Context, tx *ent.Tx, r *Refund, p *Payment) (entpayment.Status, error) {
	if r.Quantity == 0 {
		return entpayment.StatusREFUNDED, nil
	}
	others, err := tx.Refund.Query().Where(ownMoney(p)...).
		Where(entrefund.IDNEQ(r.ID), entrefund.StatusEQ(entrefund.StatusSUCCEEDED)).All(ctx)
	if err != nil {
		return "", fmt.Errorf("read refunds of payment %s: %w", p.ID, err)
	}
	back := r.AmountMinor
	for _, other := range others {
		back += other.AmountMinor
	}
	if back < p.AmountMinor {
		return entpayment.StatusSUCCEEDED, nil
	}
	return entpayment.StatusREFUNDED, nil
}

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
				s.cfg.AfterCommit.Publish(ctx, moved)
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
	s.cfg.AfterCommit.Publish(ctx, noted)
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
