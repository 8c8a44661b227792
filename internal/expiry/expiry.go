// Package expiry lapses orders that were not paid in time. It owns the loop; what
// lapsing means to an order is internal/order's, what it means to a payment is
// internal/payment's. It runs on every process at once and needs no leader: each
// order is lapsed by a compare-and-set.
//
// A payment that is still open is closed at its provider first, after all orders
// that have none. If it turns out paid, the order is paid; if the provider does not
// say in time, the order waits for a later step, and does not hold up the others.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"seckill/internal/clock"
	"seckill/internal/order"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
)

const (
	// every is the pause between steps: an order lapses at most about this long
	// after its deadline, plus grace.
	every = time.Second
	// grace is how long after the deadline an order lapses: a payment confirmed
	// in the last moment is on its way, and clocks differ.
	grace = time.Second
	// batch bounds one transaction; it holds the rows of its items for a few
	// milliseconds.
	batch = 200
	// maxBatches bounds one step: 20,000 orders. More wait for the next.
	maxBatches = 100
	// maxClosing bounds the payments that one step closes.
	maxClosing = 1000
	// defaultPatience is a little more than one call to a provider may take.
	defaultPatience = 6 * time.Second
	// stepTimeout bounds one step.
	stepTimeout = 30 * time.Second
)

// Payments is what the lapser needs of package payment: payment.Service.
type Payments interface {
	// Split parts unpaid orders that no money can come for from those with an open
	// payment.
	Split(ctx context.Context, orders []*order.Order) (free, paying []*order.Order, err error)
	// Close closes open payments of orders, in the order given and for as long as within
	// at the most, and returns the orders that no money can come for any more.
	Close(ctx context.Context, orders []*order.Order, within time.Duration) ([]*order.Order, error)
}

// Config is what a Lapser is made of.
type Config struct {
	DB        *postgres.DB
	Orders    *order.Store
	Payments  Payments
	Patience  time.Duration // how long a step waits for the providers; 0 = 6 s
	Publisher *order.Publisher
	Clock     clock.Clock // nil = clock.System
	Log       *slog.Logger
}

// Lapser lapses unpaid orders.
type Lapser struct{ cfg Config }

// New returns a lapser.
func New(cfg Config) *Lapser {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	return &Lapser{cfg: cfg}
}

// Loop returns the lapser as a loop.
func (l *Lapser) Loop() periodic.Loop {
	return periodic.Loop{Name: "lapse orders", Every: every, Timeout: stepTimeout, Step: l.Step, Log: l.cfg.Log}
}

// Step lapses all orders that are overdue, in batches: those with an open payment
// last, as their providers answer. A batch that fails is left for the next step.
func (l *Lapser) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var failed []error
	var paying []*order.Order
	var last *order.Order
	before := l.cfg.Clock.Now().Add(-grace)
	for range maxBatches {
		overdue, err := l.cfg.Orders.Overdue(ctx, before, last, batch)
		if err != nil {
			return counts, errors.Join(append(failed, err)...)
		}
		if len(overdue) == 0 {
			break
		}
		last = overdue[len(overdue)-1]
		counts["waiting"] += len(overdue)
		free, more, err := l.cfg.Payments.Split(ctx, overdue)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for payments of overdue orders: %w", err))
			continue
		}
		paying = append(paying, more...)
		failed = append(failed, l.lapse(ctx, free, counts))
	}
	failed = append(failed, l.close(ctx, paying, counts))
	return counts, errors.Join(failed...)
}

// close closes payments and lapses their orders. Chance decides which come first:
// those that are never answered would come first each time.
func (l *Lapser) close(ctx context.Context, paying []*order.Order, counts map[string]int) error {
	rand.Shuffle(len(paying), func(i, j int) { paying[i], paying[j] = paying[j], paying[i] }) //nolint:gosec // fairness, not a secret
	closed, err := l.cfg.Payments.Close(ctx, paying[:min(len(paying), maxClosing)], l.cfg.Patience)
	if err != nil {
		return fmt.Errorf("close payments of overdue orders: %w", err)
	}
	var failed []error
	for some := range slices.Chunk(closed, batch) {
		failed = append(failed, l.lapse(ctx, some, counts))
	}
	return errors.Join(failed...)
}

func (l *Lapser) lapse(ctx context.Context, free []*order.Order, counts map[string]int) error {
	if len(free) == 0 {
		return nil
	}
	lapsed, err := order.Expire(ctx, l.cfg.DB, free, l.cfg.Clock.Now())
	if err != nil {
		return err
	}
	l.cfg.Publisher.Publish(ctx, lapsed...)
	counts["lapsed"] += len(lapsed)
	counts["waiting"] -= len(lapsed)
	return nil
}
