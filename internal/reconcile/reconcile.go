// Package reconcile keeps Redis and the record telling one story while sales run.
// It looks for drift every few seconds, repairs towards Postgres, and counts and
// reports every repair: a healthy installation shows none.
//
// Drift is what remains when everything on its way has arrived: the figures of an
// item differ in two rounds in a row, and a full audit (package audit) finds the
// same. Two repairs cure all of it:
//
//   - a hold whose message is gone gets its message again, under the same task id,
//     so that the buyer still gets the order;
//   - any other difference closes the gate and builds it anew from the record and
//     the stream, under the next epoch (package preload).
//
// It owns no table and no key. What ends by itself is not repaired here: units on
// their way back, payments without an end, failed tasks have loops of their own. It
// counts what those loops have left undone for longer than they should, and tells.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/audit"
	"seckill/internal/id"
	"seckill/internal/periodic"
	"seckill/internal/sale"
)

// Every is the interval of the reconciler; roundTimeout bounds one round.
const (
	Every        = 5 * time.Second
	roundTimeout = time.Minute
)

// Source is what the reconciler compares and repairs. New uses the services; tests
// give a state of their own.
type Source interface {
	// Loaded lists the sales whose gates should be in Redis.
	Loaded(ctx context.Context) ([]*sale.Sale, error)
	// Differs reports quickly whether the stock of an item differs between Redis and
	// Postgres. It may report false while messages are on their way.
	Differs(ctx context.Context, saleID, itemID uuid.UUID) (bool, error)
	// Audit compares a whole sale and reports only differences that stay.
	Audit(ctx context.Context, saleID uuid.UUID) (*audit.Report, error)
	// Resend publishes the message of a lost reservation again.
	Resend(ctx context.Context, v *sale.Sale, lost audit.Lost) error
	// Rebuild loads the gates of a sale again.
	Rebuild(ctx context.Context, saleID uuid.UUID) error
	// Unfinished counts, by name, what other loops should have ended long ago.
	Unfinished(ctx context.Context) (map[string]int, error)
}

// Reconciler looks for drift. It is safe on every process at once: both repairs
// may be done twice.
type Reconciler struct {
	source  Source
	metrics *metrics
	log     *slog.Logger

	mu       sync.Mutex
	suspect  map[uuid.UUID]bool // guarded by mu; sales whose figures differed in the last round
	reported map[string]int     // guarded by mu; what was unfinished in the last round
}

// NewOf returns a reconciler of a source. It registers its metrics with reg, nil =
// nowhere.
func NewOf(source Source, reg prometheus.Registerer, log *slog.Logger) *Reconciler {
	return &Reconciler{source: source, metrics: newMetrics(reg), log: log, suspect: map[uuid.UUID]bool{}, reported: map[string]int{}}
}

// Loop returns the loop of the reconciler.
func (r *Reconciler) Loop() periodic.Loop {
	return periodic.Loop{Name: "reconcile", Every: Every, Timeout: roundTimeout, Step: r.Step, Log: r.log}
}

// Step looks at every loaded sale once. It is a periodic.Step.
func (r *Reconciler) Step(ctx context.Context) (map[string]int, error) {
	sales, err := r.source.Loaded(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	counts := map[string]int{}
	var errs []error
	for _, v := range sales {
		if err := r.look(ctx, v, counts); err != nil {
			errs = append(errs, fmt.Errorf("sale %s: %w", id.Format(id.Sale, v.ID), err))
		}
	}
	errs = append(errs, r.unfinished(ctx))
	return counts, errors.Join(errs...)
}

// unfinished tells what other loops left undone, in the log when it grows.
func (r *Reconciler) unfinished(ctx context.Context) error {
	counts, err := r.source.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("count what is unfinished: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, n := range counts {
		r.metrics.unfinished.WithLabelValues(what).Set(float64(n))
		if n > r.reported[what] {
			r.log.ErrorContext(ctx, "unfinished for too long", slog.String("what", what), slog.Int("count", n))
		}
		r.reported[what] = n
	}
	return nil
}

func (r *Reconciler) look(ctx context.Context, v *sale.Sale, counts map[string]int) error {
	differs := false
	for _, item := range v.Items {
		d, err := r.source.Differs(ctx, v.ID, item.ID)
		if err != nil {
			return err
		}
		differs = differs || d
	}
	if !r.again(v.ID, differs) {
		return nil
	}
	report, err := r.source.Audit(ctx, v.ID)
	if err != nil {
		return err
	}
	return r.repair(ctx, v, report, counts)
}

// again notes whether a sale differs, and tells whether it did the last time too.
func (r *Reconciler) again(saleID uuid.UUID, differs bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.suspect[saleID]
	if differs {
		r.suspect[saleID] = true
	} else {
		delete(r.suspect, saleID)
	}
	return differs && before
}

func (r *Reconciler) repair(ctx context.Context, v *sale.Sale, report *audit.Report, counts map[string]int) error {
	if report.Drift == 0 {
		return nil
	}
	for _, finding := range report.Findings {
		r.metrics.drift.Inc()
		r.log.ErrorContext(ctx, "drift", slog.String("sale", id.Format(id.Sale, v.ID)), slog.String("finding", finding))
	}
	for _, lost := range report.Lost {
		if err := r.source.Resend(ctx, v, lost); err != nil {
			return fmt.Errorf("send task %s again: %w", lost.Task, err)
		}
		counts["resent"]++
		r.metrics.repairs.WithLabelValues("resent").Inc()
	}
	if len(report.Lost) > 0 {
		return nil // what is left is seen once these have arrived
	}
	if err := r.source.Rebuild(ctx, v.ID); err != nil {
		return fmt.Errorf("build the gates anew: %w", err)
	}
	counts["rebuilt"]++
	r.metrics.repairs.WithLabelValues("rebuilt").Inc()
	return nil
}
