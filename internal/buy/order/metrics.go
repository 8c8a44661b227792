package order

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/telemetry"
	"seckill/internal/platform/tracing"
)

// Metrics counts the work of the writers and publishers of a process. A nil *Metrics
// counts nothing.
type Metrics struct {
	written   prometheus.Counter
	failed    *prometheus.CounterVec // by code
	faults    *prometheus.CounterVec // by step
	batchSize prometheus.Histogram
	write     prometheus.Histogram
	released  prometheus.Counter
}

// NewMetrics registers the metrics of the package.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	of := telemetry.For(reg, "order")
	m := &Metrics{
		written: of.Counter("written_total", "Orders written."),
		failed: of.Counters("failed_total",
			"Order tasks that ended without an order. Label code: the reason shown to the buyer.", "code"),
		faults: of.Counters("faults_total",
			"Steps that failed and are repeated. Label step: transaction, or what follows a commit: record, announce.", "step"),
		batchSize: of.Histogram("batch_size", "Orders in one transaction.", telemetry.Sizes()),
		write:     of.Histogram("write_seconds", "Duration of one transaction that writes orders.", telemetry.Seconds()),
		released:  of.Counter("released_total", "Reservations of ended orders released in Redis."),
	}
	telemetry.FromZero(m.faults, "transaction", "record", "announce")
	return m
}

// Released counts one reservation released in Redis.
func (m *Metrics) Released() {
	if m != nil {
		m.released.Inc()
	}
}

func (m *Metrics) batch(size int, took time.Duration, trace tracing.Ref, err error) {
	if m == nil {
		return
	}
	if err != nil {
		m.faults.WithLabelValues("transaction").Inc()
		return
	}
	m.batchSize.Observe(float64(size))
	telemetry.Observe(m.write, took.Seconds(), tracing.TraceIDOf(trace))
}

// ended counts one task that ended for the first time in this process; the reason is
// empty for an order.
func (m *Metrics) ended(status TaskStatus, reason string) {
	switch {
	case m == nil:
	case status == Succeeded:
		m.written.Inc()
	default:
		m.failed.WithLabelValues(reason).Inc()
	}
}

// fault counts a failed step after a commit: "record", "announce".
func (m *Metrics) fault(step string) {
	if m != nil {
		m.faults.WithLabelValues(step).Inc()
	}
}
