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

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/audit"
	"seckill/internal/id"
	"seckill/internal/sale"
)

// Config says what a reconciler needs.
type Config struct {
	// Loaded lists the sales whose gates should be in Redis.
	Loaded func(ctx context.Context) ([]*sale.Sale, error)
	// Differ tells quickly whether an item's figures differ between Redis and the
	// record. It may be wrong while something is on its way.
	Differ func(ctx context.Context, saleID, itemID uuid.UUID) (bool, error)
	// Audit compares a sale whole, and reports only what stays.
	Audit func(ctx context.Context, saleID uuid.UUID) (*audit.Report, error)
	// Resend puts the message of a lost hold into the stream again.
	Resend func(ctx context.Context, v *sale.Sale, lost audit.Lost) error
	// Rebuild builds the gates of a sale anew.
	Rebuild func(ctx context.Context, saleID uuid.UUID) error
	// Unfinished counts, by name, what other loops should have ended long ago.
	Unfinished func(ctx context.Context) (map[string]int, error)
	Registerer prometheus.Registerer // gets the metrics; nil = they are shown nowhere
	Log        *slog.Logger
}

// Reconciler looks for drift. It is safe on every process at once: both repairs
// may be done twice.
type Reconciler struct {
	cfg     Config
	metrics *metrics

	mu      sync.Mutex
	suspect map[uuid.UUID]bool // guarded by mu; sales whose figures differed in the last round
	told    map[string]int     // guarded by mu; what was unfinished in the last round
}

// New returns a reconciler.
func New(cfg Config) *Reconciler {
	return &Reconciler{cfg: cfg, metrics: newMetrics(cfg.Registerer), suspect: map[uuid.UUID]bool{}, told: map[string]int{}}
}

// Step looks at every loaded sale once. It is a periodic.Step.
func (r *Reconciler) Step(ctx context.Context) (map[string]int, error) {
	sales, err := r.cfg.Loaded(ctx)
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
	counts, err := r.cfg.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("count what is unfinished: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, n := range counts {
		r.metrics.unfinished.WithLabelValues(what).Set(float64(n))
		if n > r.told[what] {
			r.cfg.Log.ErrorContext(ctx, "unfinished for too long", slog.String("what", what), slog.Int("count", n))
		}
		r.told[what] = n
	}
	return nil
}

func (r *Reconciler) look(ctx context.Context, v *sale.Sale, counts map[string]int) error {
	differs := false
	for _, item := range v.Items {
		d, err := r.cfg.Differ(ctx, v.ID, item.ID)
		if err != nil {
			return err
		}
		differs = differs || d
	}
	if !r.again(v.ID, differs) {
		return nil
	}
	report, err := r.cfg.Audit(ctx, v.ID)
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
		r.cfg.Log.ErrorContext(ctx, "drift", slog.String("sale", id.Format(id.Sale, v.ID)), slog.String("finding", finding))
	}
	for _, lost := range report.Lost {
		if err := r.cfg.Resend(ctx, v, lost); err != nil {
			return fmt.Errorf("send task %s again: %w", lost.Task, err)
		}
		counts["resent"]++
		r.metrics.repairs.WithLabelValues("resent").Inc()
	}
	if len(report.Lost) > 0 {
		return nil // what is left is seen once these have arrived
	}
	if err := r.cfg.Rebuild(ctx, v.ID); err != nil {
		return fmt.Errorf("build the gates anew: %w", err)
	}
	counts["rebuilt"]++
	r.metrics.repairs.WithLabelValues("rebuilt").Inc()
	return nil
}
