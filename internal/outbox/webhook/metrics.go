package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/outbox/queue"
	"seckill/internal/platform/telemetry"
)

type metrics struct {
	attempts *prometheus.CounterVec // by outcome
	seconds  prometheus.Histogram
	lag      prometheus.Gauge
	disabled prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, q *queue.Queue) metrics {
	of := telemetry.For(reg, "webhook")
	return metrics{
		attempts: q.Attempts(of, "deliveries_total", "Attempts to deliver an event to an endpoint."),
		seconds: of.Histogram("delivery_seconds", "Duration of attempts to deliver an event.",
			[]float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10}),
		lag: of.Gauge("lag_seconds",
			"Age of the oldest event that is not delivered to an enabled endpoint; 0 without one. The same in every worker."),
		disabled: of.Counter("endpoints_disabled_total",
			"Endpoints that were disabled because deliveries failed for a day, or because they answered 410."),
	}
}
