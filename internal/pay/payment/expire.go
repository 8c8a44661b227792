package payment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/internal/buy/order"
	"seckill/internal/platform/periodic"
)

const (
	// expireEvery is the pause between steps: an order expires at most this long after
	// its deadline plus expireGrace.
	expireEvery = time.Second
	// expireGrace is how long after its deadline an order expires: a payment confirmed
	// in the last second may not have been reported yet, and clocks differ.
	expireGrace = time.Second
	// expireBatch bounds one transaction. It locks the rows of its items for a few
	// milliseconds.
	expireBatch = 200
	// maxExpireBatches bounds one step: 20,000 orders. The next step continues after
	// them.
	maxExpireBatches = 100
	// maxClosing bounds the payments that one step closes.
	maxClosing = 1000
	// defaultPatience bounds how long one step waits for providers: a little more than
	// ProviderTimeout.
	defaultPatience = 6 * time.Second
	// providerGrace is how long after its deadline an order with an open payment
	// expires although its provider was asked and has not confirmed the closure: a
	// provider that is gone must not hold units forever. Money that arrives later is
	// settled like any late money.
	providerGrace = time.Hour
	// expireTimeout bounds one step.
	expireTimeout = 30 * time.Second
)

// expiryScan is how far the loop has read the overdue orders.
type expiryScan struct {
	batches int                         // of one step
	last    atomic.Pointer[order.Order] // of the previous step; nil = it read all
}

// expiryLoop returns the loop that expires unpaid orders. It needs no leader, because
// each order expires by a compare-and-set.
func (s *Service) expiryLoop() periodic.Loop {
	return periodic.Loop{Name: "expire orders", Every: expireEvery, Timeout: expireTimeout, Step: s.ExpireOverdue,
		HasWork: s.cfg.DB.AnyRows(func() *sql.Selector { return order.OverdueRows(s.cfg.Clock.Now().Add(-expireGrace)) }),
		Log:     s.cfg.Log}
}

// ExpireOverdue expires all orders past their deadline, in batches. Orders with an open
// payment come last: it is closed at its provider first. If the payment turns out to be
// paid, the order is paid; if the provider does not respond, the order waits for a
// later step, for at most providerGrace, and does not delay the others. A batch that
// fails is left for the next step. While the clocks disagree, no order expires.
func (s *Service) ExpireOverdue(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var failed []error
	var paying []*order.Order
	last, agreed := s.expiry.last.Swap(nil), false
	before := s.cfg.Clock.Now().Add(-expireGrace)
	for range s.expiry.batches {
		overdue, err := s.cfg.Orders.Overdue(ctx, before, last, expireBatch)
		if err != nil {
			return counts, errors.Join(append(failed, err)...)
		}
		if len(overdue) == 0 {
			last = nil
			break
		}
		if !agreed {
			if err := s.cfg.Shared.Agree(ctx); err != nil {
				return counts, fmt.Errorf("%d or more orders are overdue: %w", len(overdue), err)
			}
			agreed = true
		}
		last = overdue[len(overdue)-1]
		counts["waiting"] += len(overdue)
		free, more, err := s.splitByOpenPayment(ctx, overdue)
		if err != nil {
			failed = append(failed, fmt.Errorf("find payments of overdue orders: %w", err))
			continue
		}
		paying = append(paying, more...)
		failed = append(failed, s.expire(ctx, free, counts))
	}
	s.expiry.last.Store(last)
	failed = append(failed, s.closeAndExpire(ctx, paying, counts))
	return counts, errors.Join(failed...)
}

// closeAndExpire closes payments and expires their orders, in random order: otherwise
// payments at a provider that never responds would use up every step.
func (s *Service) closeAndExpire(ctx context.Context, paying []*order.Order, counts map[string]int) error {
	rand.Shuffle(len(paying), func(i, j int) { paying[i], paying[j] = paying[j], paying[i] }) //nolint:gosec // fairness, not a secret
	paying = paying[:min(len(paying), maxClosing)]
	result, err := s.closeFor(ctx, paying, s.cfg.Patience)
	var failed []error
	if err != nil {
		failed = append(failed, fmt.Errorf("close payments of overdue orders: %w", err))
	}
	over, waited := result.closed, s.cfg.Clock.Now().Add(-providerGrace)
	for _, o := range result.unconfirmed {
		if o.PaymentDeadline.Before(waited) {
			over = append(over, o)
		}
	}
	for some := range slices.Chunk(over, expireBatch) {
		failed = append(failed, s.expire(ctx, some, counts))
	}
	return errors.Join(failed...)
}

func (s *Service) expire(ctx context.Context, free []*order.Order, counts map[string]int) error {
	if len(free) == 0 {
		return nil
	}
	expired, err := order.Expire(ctx, s.cfg.DB, s.cfg.Facts, free, s.cfg.Clock.Now())
	if err != nil {
		return err
	}
	s.cfg.AfterCommit.Publish(ctx, expired...)
	counts["expired"] += len(expired)
	counts["waiting"] -= len(expired)
	return nil
}
