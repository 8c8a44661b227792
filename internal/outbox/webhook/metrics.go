package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/telemetry"
)

// outcome is the result of an attempt to deliver an event.
type outcome string

// Outcomes of attempts.
const (
	delivered outcome = "delivered"
	failed    outcome = "failed"   // repeated later
	givenUp   outcome = "given_up" // failed, and not repeated
)

type metrics struct {
	attempts *prometheus.CounterVec // by outcome
	seconds  prometheus.Histogram
	lag      prometheus.Gauge
	disabled prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "webhook"
	m := &metrics{
		attempts: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "deliveries_total",
			Help: "Attempts to deliver an event to an endpoint. Label outcome: delivered, failed (repeated later), given_up.",
		}, []string{"outcome"}),
		seconds: auto.NewHistogram(prometheus.HistogramOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "delivery_seconds",
			Help:    "Duration of attempts to deliver an event.",
			Buckets: []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10},
		}),
		lag: auto.NewGauge(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "lag_seconds",
			Help: "Age of the oldest event that is not delivered to an enabled endpoint; 0 without one. The same in every worker.",
		}),
		disabled: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "endpoints_disabled_total",
			Help: "Endpoints that were disabled because deliveries failed for a day, or because they answered 410.",
		}),
	}
	for _, o := range []outcome{delivered, failed, givenUp} {
		m.attempts.WithLabelValues(string(o)) // exported as 0 from the start
	}
	return m
}

func (m *metrics) attempt(o outcome, took time.Duration) {
	m.attempts.WithLabelValues(string(o)).Inc()
	m.seconds.Observe(took.Seconds())
}
