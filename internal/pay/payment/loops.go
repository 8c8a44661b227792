package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/ent/predicate"
	entrefund "seckill/ent/refund"
	entsale "seckill/ent/sale"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// perStep bounds one step of a loop.
	perStep = 100
	// parallelCalls is how many calls one loop makes concurrently at one provider.
	parallelCalls = 8
	// maxCheck bounds the pause between two queries of an open payment.
	maxCheck = 2 * time.Minute
	// idle is the longest pause of a loop that finds no refund, and no event whose message
	// was lost.
	idle = 2 * time.Second
)

// Loops returns the loops that complete payments: events whose message was lost,
// queries of payments without a call-back, and refunds. Each provider has its own
// loops, so that one that does not respond delays no other. Any number of processes may
// run them concurrently.
func (s *Service) Loops() []periodic.Loop {
	loops := []periodic.Loop{
		s.expiryLoop(),
		s.entriesLoop(),
		{Name: "order reviews", Every: reviewEvery, Timeout: reviewTimeout, Step: s.StepReviews, Log: s.cfg.Log,
			HasWork: s.cfg.DB.AnyRows(func() *sql.Selector { return order.ReviewsDueRows(s.now().Add(-order.ReviewLife)) },
				func() *sql.Selector { return postgres.Rows(entsale.Table, reviewedSales) })},
		{Name: "payment events", Every: 500 * time.Millisecond, Idle: idle, Timeout: 10 * time.Second, Step: s.RetryEvents,
			HasWork: s.cfg.DB.AnyRows(func() *sql.Selector { return postgres.Rows(paymentevent.Table, s.eventsDue()...) }),
			Log:     s.cfg.Log},
	}
	for _, provider := range append(slices.Sorted(maps.Keys(s.providers)), gone) {
		check := func(ctx context.Context) (map[string]int, error) { return s.CheckOpen(ctx, provider) }
		send := func(ctx context.Context) (map[string]int, error) { return s.SendRefunds(ctx, provider) }
		of := " of provider " + cmp.Or(provider, "unknown")
		loops = append(loops,
			periodic.Loop{Name: "payment checks" + of, Every: 5 * time.Second, Timeout: time.Minute, Step: check,
				HasWork: s.cfg.DB.AnyRows(func() *sql.Selector {
					return postgres.Rows(entpayment.Table, s.checksDue(provider)...)
				}),
				Log: s.cfg.Log},
			periodic.Loop{Name: "refunds" + of, Every: 500 * time.Millisecond, Idle: idle, Timeout: time.Minute, Step: send,
				HasWork: s.cfg.DB.AnyRows(func() *sql.Selector {
					return postgres.Rows(entrefund.Table, s.refundsDue(provider)...)
				}),
				Log: s.cfg.Log})
	}
	return loops
}

// gone is the name for all providers that are not configured in this process, see putOffGone.
const gone = ""

// at matches the payments at a provider, or at all providers that are not configured.
func (s *Service) at(provider string) predicate.Payment {
	if provider == gone {
		return entpayment.ProviderNotIn(slices.Collect(maps.Keys(s.providers))...)
	}
	return entpayment.Provider(provider)
}

// atOnce calls do for each element of a batch at one provider, with up to parallelCalls
// concurrently, and starts no more calls when ctx has ended. It counts the results by
// name; "" is not counted.
func atOnce[T any](ctx context.Context, batch []T, do func(v T) (became string, err error)) (map[string]int, error) {
	var mu sync.Mutex
	counts := map[string]int{}
	var failed []error
	var tasks errgroup.Group
	tasks.SetLimit(parallelCalls)
	for _, v := range batch {
		if ctx.Err() != nil {
			break
		}
		tasks.Go(func() error {
			became, err := func() (_ string, err error) {
				defer periodic.Recover(&err)
				return do(v)
			}()
			mu.Lock()
			defer mu.Unlock()
			if failed = append(failed, err); err == nil && became != "" {
				counts[became]++
			}
			return nil
		})
	}
	_ = tasks.Wait() // all errors are in failed
	return counts, errors.Join(failed...)
}

func (s *Service) eventsDue() []predicate.PaymentEvent {
	return []predicate.PaymentEvent{paymentevent.StateEQ(paymentevent.StateRECEIVED), paymentevent.TryAtLTE(s.now())}
}

// RetryEvents handles a batch of events that are due.
func (s *Service) RetryEvents(ctx context.Context) (map[string]int, error) {
	ids, err := s.cfg.DB.Ent.PaymentEvent.Query().
		Where(s.eventsDue()...).
		Order(ent.Asc(paymentevent.FieldTryAt)).Limit(perStep).IDs(ctx)
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

func (s *Service) checksDue(provider string) []predicate.Payment {
	return []predicate.Payment{entpayment.StatusIn(openStatuses...), entpayment.CheckAtLTE(s.now()), s.at(provider)}
}

// CheckOpen queries a provider for a batch of its open payments.
func (s *Service) CheckOpen(ctx context.Context, provider string) (map[string]int, error) {
	now := s.now()
	rows, err := s.cfg.DB.Ent.Payment.Query().
		Where(s.checksDue(provider)...).
		Order(ent.Asc(entpayment.FieldCheckAt)).Limit(perStep).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find open payments: %w", err)
	}
	if provider == gone {
		return s.putOffGone(ctx, rows, now)
	}
	return atOnce(ctx, rows, func(row *ent.Payment) (string, error) {
		if err := s.later(ctx, row, now); err != nil {
			return "", err
		}
		return s.check(ctx, fromRow(row))
	})
}

// later sets the time of the next query before this one is made, so that another
// process does not repeat it.
func (s *Service) later(ctx context.Context, row *ent.Payment, now time.Time) error {
	wait := min(firstCheck<<min(row.Checks, 10), maxCheck)
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Payment.Update().Where(entpayment.ID(row.ID), entpayment.Checks(row.Checks)).
			SetCheckAt(now.Add(wait)).AddChecks(1).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("put payment %s off: %w", row.ID, err)
	}
	return nil
}

// check queries one payment and returns the result, "" when it is unchanged. After its
// deadline it is closed at the provider, also when its order is not unpaid any more: some
// providers would take the money days later.
func (s *Service) check(ctx context.Context, p *Payment) (string, error) {
	if !p.Entry.IsZero() {
		return s.checkHold(ctx, p)
	}
	return s.checkOpen(ctx, p)
}

// checkOpen is check for a payment that waits for its buyer.
func (s *Service) checkOpen(ctx context.Context, p *Payment) (string, error) {
	state, err := s.query(ctx, p)
	if err != nil {
		return "", err
	}
	unpaid := state.Phase == PhaseOpen || state.Phase == PhaseUnknown
	if unpaid && s.now().After(p.ExpiresAt.Add(expireGrace)) {
		if how := s.closeOne(ctx, p); how == closedNot {
			return "", fmt.Errorf("payment %s is overdue and cannot be closed", p.ID)
		}
		return "closed", nil
	}
	if err := s.note(ctx, p, state); err != nil {
		return "", err
	}
	if unpaid {
		return "", nil
	}
	return "found", nil
}

func (s *Service) refundsDue(provider string) []predicate.Refund {
	return []predicate.Refund{entrefund.StatusEQ(entrefund.StatusSENDING), entrefund.TryAtLTE(s.now()), hasNoUnitsBefore,
		func(refunds *sql.Selector) {
			payments := sql.Table(entpayment.Table)
			paid := sql.Select(payments.C(entpayment.FieldID)).From(payments)
			here := s.at(provider)
			here(paid)
			refunds.Where(sql.In(refunds.C(entrefund.FieldPaymentID), paid))
		}}
}

// SendRefunds sends a batch of refunds to a provider.
func (s *Service) SendRefunds(ctx context.Context, provider string) (map[string]int, error) {
	now := s.now()
	rows, err := s.cfg.DB.Ent.Refund.Query().
		Where(s.refundsDue(provider)...).
		Order(ent.Asc(entrefund.FieldTryAt)).Limit(perStep).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("find refunds to send: %w", err)
	}
	if provider == gone {
		return nil, s.putOffGoneRefunds(ctx, rows, now)
	}
	return atOnce(ctx, rows, func(row *ent.Refund) (string, error) {
		if err := s.send(ctx, refundFromRow(row)); err != nil {
			return "", errors.Join(err, s.retryLater(ctx, row, now))
		}
		return "sent", nil
	})
}

// hasNoUnitsBefore matches refunds that are not of units, or of orders that have no units
// of an earlier refund on their way back to the gate: an order names one such refund.
func hasNoUnitsBefore(refunds *sql.Selector) {
	orders := sql.Table(entorder.Table)
	due := sql.Select(orders.C(entorder.FieldID)).From(orders).Where(sql.EQ(orders.C(entorder.FieldReturnDue), true))
	refunds.Where(sql.Or(sql.EQ(refunds.C(entrefund.FieldQuantity), 0), sql.NotIn(refunds.C(entrefund.FieldOrderID), due)))
}

// retryLater schedules the next attempt of a refund. After many attempts it logs an
// error for operators each time.
func (s *Service) retryLater(ctx context.Context, row *ent.Refund, now time.Time) error {
	if row.Tries >= 10 {
		s.cfg.Log.ErrorContext(ctx, "refund does not go through", slog.String("refund", row.ID.String()),
			slog.Int("tries", row.Tries))
	}
	return s.putOffRefund(ctx, row, now)
}

func (s *Service) putOffRefund(ctx context.Context, row *ent.Refund, now time.Time) error {
	wait := min(retryRefund<<min(row.Tries, 10), maxRetry)
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Refund.Update().Where(entrefund.ID(row.ID), entrefund.StatusEQ(entrefund.StatusSENDING)).
			SetTryAt(now.Add(wait)).AddTries(1).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("put refund %s off: %w", row.ID, err)
	}
	return nil
}

func (s *Service) putOffByID(ctx context.Context, event id.Held, why string) error {
	row, err := s.cfg.DB.Ent.PaymentEvent.Get(ctx, event)
	if err != nil {
		return fmt.Errorf("read payment event %s: %w", event, err)
	}
	return s.putOff(ctx, row, putOffError{why: why})
}

// Unfinished counts overdue work: payments past their deadline before the given time,
// unhandled events, and unsent refunds. The loops finish it once the provider responds.
// Held money and failed refunds wait for an operator and are counted regardless of their
// age.
func (s *Service) Unfinished(ctx context.Context, before time.Time) (map[string]int, error) {
	return s.cfg.DB.Counts(ctx, map[string]*sql.Selector{
		"payments": postgres.Rows(entpayment.Table, entpayment.StatusIn(openStatuses...), entpayment.ExpiresAtLT(before)),
		"payment_events": postgres.Rows(paymentevent.Table, paymentevent.StateEQ(paymentevent.StateRECEIVED),
			paymentevent.CreatedAtLT(before)),
		"refunds": postgres.Rows(entrefund.Table, entrefund.StatusEQ(entrefund.StatusSENDING),
			entrefund.UpdatedAtLT(before)),
		"failed_refunds": postgres.Rows(entrefund.Table, entrefund.StatusEQ(entrefund.StatusFAILED)),
		"held_payments":  postgres.Rows(paymentevent.Table, paymentevent.StateEQ(paymentevent.StateHELD)),
	})
}
