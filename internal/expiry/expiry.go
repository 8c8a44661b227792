// Package expiry lapses orders that were not paid in time. It owns the loop; what
// lapsing means to an order is internal/order's, what it means to a payment is
// internal/payment's. It runs on every process at once and needs no leader: each
// order is lapsed by a compare-and-set.
//
// A payment that is still open is closed at its provider first. If it turns out
// paid, the order is paid; if the provider does not say, the order waits for the
// next step, and does not hold up the others.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// stepTimeout bounds one step.
	stepTimeout = 30 * time.Second
)

// Closer closes open payments of orders before they lapse, and returns the orders
// that no money can come for any more: payment.Service.Close.
type Closer interface {
	Close(ctx context.Context, orders []*order.Order) ([]*order.Order, error)
}

// Config is what a Lapser is made of.
type Config struct {
	DB       *postgres.DB
	Orders   *order.Store
	Payments Closer
	Teller   *order.Teller
	Clock    clock.Clock // nil = clock.System
	Log      *slog.Logger
}

// Lapser lapses unpaid orders.
type Lapser struct{ cfg Config }

// New returns a lapser.
func New(cfg Config) *Lapser {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	return &Lapser{cfg: cfg}
}

// Loop returns the lapser as a loop.
func (l *Lapser) Loop() periodic.Loop {
	return periodic.Loop{Name: "lapse orders", Every: every, Timeout: stepTimeout, Step: l.Step, Log: l.cfg.Log}
}

// Step lapses all orders that are overdue, in batches. A batch that fails is left
// for the next step.
func (l *Lapser) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	var failed []error
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
		lapsed, err := l.lapse(ctx, overdue)
		if err != nil {
			failed = append(failed, err)
		}
		counts["lapsed"] += lapsed
		counts["waiting"] += len(overdue) - lapsed
	}
	return counts, errors.Join(failed...)
}

func (l *Lapser) lapse(ctx context.Context, overdue []*order.Order) (int, error) {
	free, err := l.cfg.Payments.Close(ctx, overdue)
	if err != nil {
		return 0, fmt.Errorf("close payments of overdue orders: %w", err)
	}
	if len(free) == 0 {
		return 0, nil
	}
	lapsed, err := order.Lapse(ctx, l.cfg.DB, free, l.cfg.Clock.Now())
	if err != nil {
		return 0, err
	}
	l.cfg.Teller.Tell(ctx, lapsed...)
	return len(lapsed), nil
}
