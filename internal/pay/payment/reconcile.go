package payment

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Mismatch is the kind of a Finding.
type Mismatch string

// Kinds of findings.
const (
	MoneyMissed  Mismatch = "MONEY_MISSED"  // paid at the provider, and its report was lost; it is settled now
	MoneyMissing Mismatch = "MONEY_MISSING" // paid here, and not at the provider
	OtherMoney   Mismatch = "OTHER_MONEY"   // another amount, currency or transaction
	Unanswered   Mismatch = "UNANSWERED"    // the provider did not answer

	// In the provider's bill, and not here: the former waits for an operator.
	MoneyUnknown  Mismatch = "MONEY_UNKNOWN"
	RefundUnknown Mismatch = "REFUND_UNKNOWN"
)

// Finding is a payment that is not the same here and at its provider.
type Finding struct {
	Payment  id.Payment
	Order    id.Order
	Mismatch Mismatch
	Ours     string
	Theirs   string
}

// Reconciled compares the payments of one day and provider with those that the provider reports.
type Reconciled struct {
	Payments int              // that were compared
	Paid     map[string]int64 // by currency, in minor units, at the provider, before refunds
	Findings []Finding
	// FeesUnread counts the payments whose fee could not be read; FeeError is the
	// last reason.
	FeesUnread int
	FeeError   error
	Bill       *Billed // nil = the provider has none
}

// Reconcile queries a provider for all payments that were begun on a day, in UTC, and
// compares them. Money that was not reported is settled as if it had been: it ends in a
// paid order, a refund, or the list of held money. Where the provider has bills, that of the day
// is compared too: it alone shows money of payments that the shop does not know. The error is that
// of the database; calls that failed are findings.
func (s *Service) Reconcile(ctx context.Context, provider string, day time.Time) (Reconciled, error) {
	at, err := s.provider(provider)
	if err != nil {
		return Reconciled{}, err
	}
	result := Reconciled{Paid: map[string]int64{}}
	if err := s.reconcilePayments(ctx, provider, day, &result); err != nil {
		return result, err
	}
	if b, ok := at.(Biller); ok {
		return result, s.reconcileBill(ctx, b, day, &result)
	}
	return result, nil
}

// reconcilePayments queries a provider for all payments that were begun on a day.
func (s *Service) reconcilePayments(ctx context.Context, provider string, day time.Time, result *Reconciled) error {
	from, after := day.UTC().Truncate(24*time.Hour), id.Payment{}
	for {
		rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.Provider(provider), entpayment.CreatedAtGTE(from),
			entpayment.CreatedAtLT(from.AddDate(0, 0, 1)), entpayment.IDGT(after)).Order(ent.Asc(entpayment.FieldID)).
			Limit(perStep).All(ctx)
		if err != nil {
			return fmt.Errorf("read payments of %s at %s: %w", from.Format(time.DateOnly), provider, err)
		}
		if len(rows) == 0 {
			return nil
		}
		after = rows[len(rows)-1].ID
		states := make([]State, len(rows))
		failed := make([]error, len(rows))
		numbers := make([]int, len(rows))
		for i := range numbers {
			numbers[i] = i
		}
		_, err = atOnce(ctx, numbers, func(i int) (string, error) {
			states[i], failed[i] = s.query(ctx, fromRow(rows[i]))
			return "", nil
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("query payments at %s: %w", provider, err)
		}
		for i, row := range rows {
			if err := s.compare(ctx, fromRow(row), states[i], failed[i], result); err != nil {
				return err
			}
		}
	}
}

// query queries a payment at its provider.
func (s *Service) query(ctx context.Context, p *Payment) (state State, err error) {
	provider, err := s.provider(p.Provider)
	if err != nil {
		return State{}, err
	}
	known, err := s.knownTo(ctx, p)
	if err != nil {
		return State{}, err
	}
	err = s.ask(ctx, p.Provider, "query", func(ctx context.Context) (err error) {
		state, err = provider.Query(ctx, known)
		return err
	})
	return state, err
}

// compare adds what a provider answered about a payment to the result.
func (s *Service) compare(ctx context.Context, p *Payment, theirs State, failed error, result *Reconciled) error {
	result.Payments++
	found := Finding{Payment: p.ID, Order: p.Order, Ours: string(p.Status), Theirs: string(theirs.Phase)}
	paid := p.Status == Succeeded || p.Status == Refunded
	if theirs.Phase == PhasePaid {
		result.Paid[theirs.Currency] += theirs.AmountMinor
		found.Theirs = fmt.Sprintf("%s %s", theirs.Phase, money.Amount{Minor: theirs.AmountMinor, Currency: theirs.Currency})
		if theirs.FeeError != nil {
			s.metrics.faults.WithLabelValues(stepFee).Inc()
			s.cfg.Log.WarnContext(ctx, "fee of payment not read", slog.String("payment", p.ID.String()),
				slog.Any("error", theirs.FeeError))
			result.FeesUnread, result.FeeError = result.FeesUnread+1, theirs.FeeError
		}
		if err := s.keepFee(ctx, p, theirs.Fee); err != nil {
			return err
		}
	}
	switch {
	case failed != nil:
		found.Mismatch, found.Theirs = Unanswered, failed.Error()
	case theirs.Phase == PhasePaid && !paid:
		if err := s.note(ctx, p, theirs); err != nil {
			return err
		}
		found.Mismatch = MoneyMissed
		if theirs.AmountMinor != p.AmountMinor || theirs.Currency != p.Currency {
			found.Mismatch = OtherMoney
		}
	case theirs.Phase == PhasePaid && (theirs.AmountMinor != p.AmountMinor || theirs.Currency != p.Currency ||
		theirs.Transaction != p.Transaction):
		found.Mismatch = OtherMoney
	case theirs.Phase != PhasePaid && p.Status == Succeeded:
		found.Mismatch = MoneyMissing
	case theirs.Phase == PhasePaid && theirs.Refunded > 0:
		unknown, err := s.noteRefunded(ctx, p, Event{
			ID: fmt.Sprintf("asked:REFUNDED:%s:%d", p.ID, theirs.Refunded), Ref: p.ProviderRef, AmountMinor: theirs.Refunded,
			Currency: theirs.Currency, At: s.now(),
		})
		if err != nil || !unknown {
			return err
		}
		found.Mismatch, found.Theirs = RefundUnknown,
			fmt.Sprintf("REFUNDED %s", money.Amount{Minor: theirs.Refunded, Currency: theirs.Currency})
	default:
		return nil
	}
	result.Findings = append(result.Findings, found)
	return nil
}
