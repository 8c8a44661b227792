// Package reconcile keeps Redis consistent with Postgres while sales run. It looks for
// drift every five seconds, repairs Redis from Postgres, and counts and logs every
// repair: a healthy installation shows none.
//
// Drift is a difference that remains after everything in transit has arrived: the
// figures of an item differ in two consecutive rounds, and a full audit (package audit)
// confirms it. There are two repairs:
//
//   - a reservation whose message was lost gets its message again, under the same task
//     id, so that the buyer still gets the order;
//   - any other difference closes the gate and rebuilds it from Postgres and the stream,
//     under the next epoch (package preload).
//
// The package owns no table and no key. Work with its own retry loop is not repaired
// here: units to be released, unfinished payments, failed tasks. It counts and logs
// such work when it is overdue.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/buy/sale"
	"seckill/internal/gate/audit"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/telemetry"
)

// Every is the interval of the reconciler; roundTimeout is the timeout of one round.
const (
	Every        = 5 * time.Second
	roundTimeout = time.Minute
)

// Source provides the states to compare and the repairs. New uses the services; tests
// use their own state.
type Source interface {
	// Loaded lists the sales whose gates should be in Redis.
	Loaded(ctx context.Context) ([]*sale.Sale, error)
	// Differs is a fast check of whether the stock of an item differs between Redis and
	// Postgres. It may return false while messages are in transit.
	Differs(ctx context.Context, saleID id.Sale, itemID id.Item) (bool, error)
	// Audit compares a whole sale and reports only lasting differences.
	Audit(ctx context.Context, saleID id.Sale) (*audit.Report, error)
	// Resend publishes the message of a lost reservation again.
	Resend(ctx context.Context, v *sale.Sale, lost audit.Lost) error
	// Rebuild builds the gates of a sale under the next epoch. It returns false if they
	// no longer have the given epoch: another process has rebuilt them.
	Rebuild(ctx context.Context, saleID id.Sale, epoch int64) (bool, error)
	// Unfinished counts, by name, the overdue work of other loops.
	Unfinished(ctx context.Context) (map[string]int, error)
}

// Reconciler looks for drift. It may run on all processes at once: both repairs are
// idempotent.
type Reconciler struct {
	source  Source
	metrics *metrics
	log     *slog.Logger

	mu       sync.Mutex
	suspect  map[id.Sale]bool // guarded by mu; sales that differed in the last round
	reported map[string]int   // guarded by mu; unfinished work in the last round
}

// NewOf returns a reconciler of a source. It registers its metrics with reg; nil =
// metrics are not exported.
func NewOf(source Source, reg prometheus.Registerer, log *slog.Logger) *Reconciler {
	return &Reconciler{source: source, metrics: newMetrics(reg), log: log, suspect: map[id.Sale]bool{},
		reported: map[string]int{}}
}

// Loop returns the loop of the reconciler.
func (r *Reconciler) Loop() periodic.Loop {
	return periodic.Loop{Name: "reconcile", Every: Every, Timeout: roundTimeout, Step: r.Step, Log: r.log}
}

// Step checks every loaded sale once. It is a periodic.Step.
func (r *Reconciler) Step(ctx context.Context) (map[string]int, error) {
	sales, err := r.source.Loaded(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	counts := map[string]int{}
	var errs []error
	for _, v := range sales {
		if err := r.check(ctx, v, counts); err != nil {
			errs = append(errs, fmt.Errorf("sale %s: %w", v.ID.Public(), err))
		}
	}
	errs = append(errs, r.unfinished(ctx))
	return counts, errors.Join(errs...)
}

// unfinished exports the overdue work of other loops, and logs it when it grows.
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

func (r *Reconciler) check(ctx context.Context, v *sale.Sale, counts map[string]int) error {
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

// again records whether a sale differs, and reports whether it also did in the last
// round.
func (r *Reconciler) again(saleID id.Sale, differs bool) bool {
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
		r.log.ErrorContext(ctx, "drift", slog.String("sale", v.ID.Public()), slog.String("finding", finding))
	}
	for _, lost := range report.Lost {
		if err := r.source.Resend(ctx, v, lost); err != nil {
			return fmt.Errorf("send task %s again: %w", lost.Task, err)
		}
		counts["resent"]++
		r.metrics.repairs.WithLabelValues("resent").Inc()
	}
	if len(report.Lost) > 0 {
		return nil // other differences are handled once these messages have arrived
	}
	rebuilt, err := r.source.Rebuild(ctx, v.ID, report.Epoch)
	if err != nil {
		return fmt.Errorf("rebuild the gates: %w", err)
	}
	if !rebuilt {
		return nil
	}
	counts["rebuilt"]++
	r.metrics.repairs.WithLabelValues("rebuilt").Inc()
	return nil
}

// metrics counts drift and repairs, and exports the number of overdue items of work.
type metrics struct {
	drift      prometheus.Counter
	repairs    *prometheus.CounterVec // by kind of repair
	unfinished *prometheus.GaugeVec   // by kind of work
}

func newMetrics(reg prometheus.Registerer) *metrics {
	of := telemetry.For(reg, "reconcile")
	m := &metrics{
		drift: of.Counter("findings_total",
			"Differences between Redis and Postgres that did not resolve by themselves."),
		repairs: of.Counters("repairs_total",
			"Repairs towards Postgres. Label how: resent (a lost message), rebuilt (the gates of a sale).", "how"),
		unfinished: of.Gauges("unfinished",
			"Overdue work of other loops, some seconds ago. Label what: unpaid_orders, returns, failures, payments, "+
				"payment_events, refunds, failed_refunds, held_payments, dead_letters.", "what"),
	}
	telemetry.FromZero(m.repairs, "resent", "rebuilt")
	return m
}
