package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	entrefund "seckill/ent/refund"
	"seckill/internal/periodic"
)

const (
	// batch bounds one step of a loop.
	batch = 100
	// maxCheck bounds the pause between two questions about an open payment.
	maxCheck = 2 * time.Minute
)

// Loops returns what has to run for payments to end: events whose message was
// lost, questions about payments that no call-back came for, money that is to go
// back. Any number of processes may run them at once.
func (s *Service) Loops() []periodic.Loop {
	return []periodic.Loop{
		{Name: "payment events", Every: 500 * time.Millisecond, Timeout: 10 * time.Second, Step: s.RetryEvents, Log: s.log},
		{Name: "payment checks", Every: 5 * time.Second, Timeout: time.Minute, Step: s.CheckOpen, Log: s.log},
		{Name: "refunds", Every: 500 * time.Millisecond, Timeout: time.Minute, Step: s.SendRefunds, Log: s.log},
	}
}

// RetryEvents handles a batch of events that are due.
func (s *Service) RetryEvents(ctx context.Context) (map[string]int, error) {
	ids, err := s.db.Ent.PaymentEvent.Query().
		Where(paymentevent.StateEQ(paymentevent.StateRECEIVED), paymentevent.TryAtLTE(s.now())).
		Order(ent.Asc(paymentevent.FieldTryAt)).Limit(batch).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("find payment events: %w", err)
	}
	counts := map[string]int{}
	var failed []error
	for _, event := range ids {
		if err := s.Settle(ctx, event); err != nil {
			failed = append(failed, err)
			if err := s.putOffByID(ctx, event, "an error"); err != nil {
				failed = append(failed, err)
			}
			continue
		}
		counts["handled"]++
	}
	return counts, errors.Join(failed...)
}

// CheckOpen asks the providers about a batch of open payments.
func (s *Service) CheckOpen(ctx context.Context) (map[string]int, error) {
	now := s.now()
	rows, err := s.db.Ent.Payment.Query().
		Where(entpayment.StatusIn(openStatuses...), entpayment.CheckAtLTE(now)).
		Order(ent.Asc(entpayment.FieldCheckAt)).Limit(batch).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find open payments: %w", err)
	}
	counts := map[string]int{}
	var failed []error
	for _, row := range rows {
		if err := s.later(ctx, row, now); err != nil {
			return counts, err
		}
		found, err := s.check(ctx, fromRow(row))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if found != "" { // it is as it was
			counts[found]++
		}
	}
	return counts, errors.Join(failed...)
}

// later sets the time of the next question before this one is asked, so that
// another process does not ask too.
func (s *Service) later(ctx context.Context, row *ent.Payment, now time.Time) error {
	wait := min(firstCheck<<min(row.Checks, 10), maxCheck)
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Payment.Update().Where(entpayment.ID(row.ID), entpayment.Checks(row.Checks)).
			SetCheckAt(now.Add(wait)).AddChecks(1).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("put payment %s off: %w", row.ID, err)
	}
	return nil
}

// check asks about one payment and returns what it found. A payment that the
// provider does not know is left to be created, or closed at its deadline.
func (s *Service) check(ctx context.Context, p *Payment) (string, error) {
	provider, err := s.provider(p.Provider)
	if err != nil {
		return "", err
	}
	var state State
	err = s.ask(ctx, "query", func(ctx context.Context) (err error) {
		state, err = provider.Query(ctx, p.ID)
		return err
	})
	if err != nil {
		return "", err
	}
	if state.Phase == PhaseUnknown && s.now().After(p.ExpiresAt) {
		if how := s.closeOne(ctx, p); how == closedNot {
			return "", fmt.Errorf("payment %s is neither known nor closed", p.ID)
		}
		return "closed", nil
	}
	if err := s.note(ctx, p, state); err != nil {
		return "", err
	}
	if state.Phase == PhaseOpen || state.Phase == PhaseUnknown {
		return "", nil
	}
	return "found", nil
}

// SendRefunds gives a batch of money back.
func (s *Service) SendRefunds(ctx context.Context) (map[string]int, error) {
	now := s.now()
	rows, err := s.db.Ent.Refund.Query().
		Where(entrefund.StatusEQ(entrefund.StatusSENDING), entrefund.TryAtLTE(now)).
		Order(ent.Asc(entrefund.FieldTryAt)).Limit(batch).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find refunds to send: %w", err)
	}
	counts := map[string]int{}
	var failed []error
	for _, row := range rows {
		if err := s.send(ctx, refundFromRow(row)); err != nil {
			failed = append(failed, err)
			if err := s.retryLater(ctx, row, now); err != nil {
				failed = append(failed, err)
			}
			continue
		}
		counts["sent"]++
	}
	return counts, errors.Join(failed...)
}

// retryLater sets when a refund is sent again. After many tries an operator
// hears of it each time.
func (s *Service) retryLater(ctx context.Context, row *ent.Refund, now time.Time) error {
	wait := min(retryRefund<<min(row.Tries, 10), maxRetry)
	if row.Tries >= 10 {
		s.log.ErrorContext(ctx, "refund does not go through", slog.String("refund", row.ID.String()), slog.Int("tries", row.Tries))
	}
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Refund.Update().Where(entrefund.ID(row.ID), entrefund.StatusEQ(entrefund.StatusSENDING)).
			SetTryAt(now.Add(wait)).AddTries(1).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("put refund %s off: %w", row.ID, err)
	}
	return nil
}
