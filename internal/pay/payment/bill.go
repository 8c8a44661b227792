package payment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	entrefund "seckill/ent/refund"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Biller is a Provider that has a bill of each day: all money of a merchant, that of payments
// which the shop does not know included.
type Biller interface {
	Provider
	// Merchant names whose bill it is: providers with the same merchant share one.
	Merchant() string
	// Bill returns the lines of the day that has the date of a time in UTC, by the calendar of
	// the provider. A day without any has none. An error means that the bill is not there yet, or not readable.
	Bill(ctx context.Context, day time.Time) (Bill, error)
}

// Bill is what a provider has booked on a day.
type Bill struct {
	From  time.Time // beginning of the day
	Until time.Time // end of it
	Lines []BillLine
}

// BillLine is one movement of money in a bill.
type BillLine struct {
	Payment     id.Payment // zero = its number is not one of the shop's: of other software
	Number      string     // of the merchant, as in the bill
	Transaction string
	Refund      bool
	RefundRef   string        // the provider's number of a refund; "" = the bill has none
	RefundKey   id.Refund     // RefundInput.Refund of a refund; zero = not made by the shop
	Amount      money.Amount  // positive
	Fee         *money.Amount // kept, of money that came; nil = the bill does not say
	At          time.Time
}

// Billed is the result of comparing a bill.
type Billed struct {
	From, Until time.Time
	Lines       int
	Others      int // lines of other software of the same merchant
	Error       error
}

// billTimeout bounds the download of a bill.
const billTimeout = 2 * time.Minute

// reconcileBill compares the bill of a day with the shop's books. Money of payments that the
// shop does not know is held for an operator, like any other that does not match.
func (s *Service) reconcileBill(ctx context.Context, b Biller, day time.Time, result *Reconciled) error {
	limited, cancel := context.WithTimeout(ctx, billTimeout)
	bill, err := b.Bill(limited, day)
	cancel()
	result.Bill = &Billed{From: bill.From, Until: bill.Until, Lines: len(bill.Lines), Error: err}
	if err != nil {
		s.metrics.faults.WithLabelValues(stepBill).Inc()
		return nil // it is in the result: the bill may be there later
	}
	charged := map[id.Payment]bool{}
	for lines := range slices.Chunk(bill.Lines, perStep) {
		known, err := s.billed(ctx, b, lines)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if line.Payment.IsZero() {
				result.Bill.Others++
				continue
			}
			if !line.Refund {
				charged[line.Payment] = true
			}
			if err := s.compareLine(ctx, b, known[line.Payment], line, result); err != nil {
				return err
			}
		}
	}
	return s.missingInBill(ctx, b, bill, charged, result)
}

func (s *Service) billed(ctx context.Context, b Biller, lines []BillLine) (map[id.Payment]*Payment, error) {
	ids := collect.Map(lines, func(line BillLine) id.Payment { return line.Payment })
	rows, err := s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.IDIn(ids...), entpayment.ProviderIn(s.namesOf(b)...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %d payments of a bill: %w", len(ids), err)
	}
	known := make(map[id.Payment]*Payment, len(rows))
	for _, row := range rows {
		known[row.ID] = fromRow(row)
	}
	return known, nil
}

// namesOf returns the names of the providers that share a bill.
func (s *Service) namesOf(b Biller) []string {
	var names []string
	for _, p := range s.cfg.Providers {
		if other, ok := p.(Biller); ok && other.Merchant() == b.Merchant() {
			names = append(names, p.Name())
		}
	}
	return names
}

// compareLine compares a line of a bill. p is nil when the shop does not know the payment.
func (s *Service) compareLine(ctx context.Context, b Biller, p *Payment, line BillLine, result *Reconciled) error {
	found := Finding{Payment: line.Payment, Mismatch: OtherMoney, Theirs: fmt.Sprintf("PAID %s", line.Amount)}
	switch {
	case line.Refund:
		return s.compareBilledRefund(ctx, p, line, result)
	case p == nil:
		found.Mismatch = MoneyUnknown
		result.Findings = append(result.Findings, found)
		return s.hold(ctx, b.Name(), line)
	}
	found.Order, found.Ours = p.Order, string(p.Status)
	if p.Status != Succeeded && p.Status != Refunded {
		found.Mismatch = MoneyMissed
		result.Findings = append(result.Findings, found)
		return s.note(ctx, p, State{
			Phase: PhasePaid, Ref: p.ProviderRef, Transaction: line.Transaction, AmountMinor: line.Amount.Minor,
			Currency: line.Amount.Currency, At: line.At,
		})
	}
	if p.AmountMinor == line.Amount.Minor && p.Currency == line.Amount.Currency && p.Transaction == line.Transaction {
		return s.keepFee(ctx, p, line.Fee)
	}
	result.Findings = append(result.Findings, found)
	return s.note(ctx, p, State{
		Phase: PhasePaid, Transaction: line.Transaction, AmountMinor: line.Amount.Minor, Currency: line.Amount.Currency,
		At: line.At,
	})
}

// compareBilledRefund compares a refund of a bill. One that was made at the provider is a
// finding: the buyer has the money, and the order does not say so.
func (s *Service) compareBilledRefund(ctx context.Context, p *Payment, line BillLine, result *Reconciled) error {
	found := Finding{Payment: line.Payment, Mismatch: RefundUnknown, Theirs: fmt.Sprintf("REFUNDED %s", line.Amount)}
	if p != nil {
		found.Order, found.Ours = p.Order, string(p.Status)
		rows, err := s.cfg.DB.Ent.Refund.Query().Where(entrefund.PaymentID(p.ID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read refunds of payment %s: %w", p.ID, err)
		}
		for _, row := range rows {
			r := refundFromRow(row)
			if r.made(line.RefundKey) {
				if r.AmountMinor == line.Amount.Minor && r.Currency == line.Amount.Currency {
					return nil
				}
				found.Mismatch, found.Ours = OtherMoney,
					fmt.Sprintf("%s %s", r.Status, money.Amount{Minor: r.AmountMinor, Currency: r.Currency})
			}
		}
		if found.Mismatch == RefundUnknown {
			event := Event{ID: line.refundID(), Payment: p.ID, Kind: EventRefundedPart, AmountMinor: line.Amount.Minor,
				Currency: line.Amount.Currency, At: line.At}
			if fresh, err := s.fresh(ctx, p.Provider, &event); err != nil || !fresh {
				return err
			}
			if unknown, err := s.noteRefunded(ctx, p, event); err != nil || !unknown {
				return err
			}
		}
	}
	result.Findings = append(result.Findings, found)
	return nil
}

func (line BillLine) refundID() string {
	name := line.RefundRef
	if name == "" {
		name = line.Transaction + ":" + line.At.UTC().Format(time.RFC3339) + ":" + strconv.FormatInt(line.Amount.Minor, 10)
	}
	return RefundEventID(name)
}

// made reports whether one of the refund's attempts has an idempotency key.
func (r *Refund) made(key id.Refund) bool {
	attempt := *r
	for attempt.Attempts = 1; attempt.Attempts <= r.Attempts; attempt.Attempts++ {
		if attempt.key() == key {
			return true
		}
	}
	return false
}

// missingInBill finds payments that the provider reported as paid on the day, and that are not
// in its bill.
func (s *Service) missingInBill(ctx context.Context, b Biller, bill Bill, charged map[id.Payment]bool,
	result *Reconciled) error {
	events, err := s.cfg.DB.Ent.PaymentEvent.Query().
		Where(paymentevent.ProviderIn(s.namesOf(b)...), paymentevent.KindEQ(paymentevent.KindSUCCEEDED),
			paymentevent.HappenedAtGTE(bill.From), paymentevent.HappenedAtLT(bill.Until)).
		Select(paymentevent.FieldID, paymentevent.FieldPaymentID).All(ctx)
	if err != nil {
		return fmt.Errorf("read payments of the day of a bill: %w", err)
	}
	var missing []id.Payment
	for _, e := range events {
		if !charged[e.PaymentID] {
			charged[e.PaymentID] = true // several events may report it
			missing = append(missing, e.PaymentID)
		}
	}
	rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.IDIn(missing...),
		entpayment.StatusIn(entpayment.StatusSUCCEEDED, entpayment.StatusREFUNDED)).All(ctx)
	if err != nil {
		return fmt.Errorf("read payments that a bill lacks: %w", err)
	}
	for _, row := range rows {
		result.Findings = append(result.Findings, Finding{
			Payment: row.ID, Order: row.OrderID, Mismatch: MoneyMissing,
			Ours:   fmt.Sprintf("%s %s", row.Status, money.Amount{Minor: row.AmountMinor, Currency: row.Currency}),
			Theirs: "not in the bill",
		})
	}
	return nil
}

// hold stores money of a payment that the shop does not know, for an operator.
func (s *Service) hold(ctx context.Context, provider string, line BillLine) error {
	event, err := s.store(ctx, provider, Event{
		ID: "billed:" + line.Transaction, Payment: line.Payment, Kind: EventSucceeded, Transaction: line.Transaction,
		AmountMinor: line.Amount.Minor, Currency: line.Amount.Currency, At: line.At,
	})
	if err != nil {
		return fmt.Errorf("store money of a bill: %w", err)
	}
	row, err := s.cfg.DB.Ent.PaymentEvent.Get(ctx, event)
	if err != nil || row.State != paymentevent.StateRECEIVED {
		return err
	}
	s.metrics.event(EventSucceeded, outcomeUnmatched)
	s.metrics.result(provider, resultHeld)
	_, err = s.finish(ctx, row, outcomeUnmatched, nil)
	s.reportChange(ctx)
	return err
}
