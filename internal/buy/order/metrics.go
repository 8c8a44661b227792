package order

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
	auto := promauto.With(reg)
	const subsystem = "order"
	m := &Metrics{
		written: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "written_total", Help: "Orders written.",
		}),
		failed: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "failed_total",
			Help: "Order tasks that ended without an order. Label code: the reason shown to the buyer.",
		}, []string{"code"}),
		faults: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "faults_total",
			Help: "Steps that failed and are repeated. Label step: transaction, or what follows a commit: record, announce.",
		}, []string{"step"}),
		batchSize: auto.NewHistogram(prometheus.HistogramOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "batch_size",
			Help: "Orders in one transaction.", Buckets: telemetry.Sizes(),
		}),
		write: auto.NewHistogram(prometheus.HistogramOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "write_seconds",
			Help: "Duration of one transaction that writes orders.", Buckets: telemetry.Seconds(),
		}),
		released: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "released_total",
			Help: "Reservations of ended orders released in Redis.",
		}),
	}
	for _, step := range []string{"transaction", "record", "announce"} {
		m.faults.WithLabelValues(step) // exported as 0 from the start
	}
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
