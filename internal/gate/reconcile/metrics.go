package reconcile

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/telemetry"
)

// metrics counts drift and repairs, and exports the number of overdue items of work.
type metrics struct {
	drift      prometheus.Counter
	repairs    *prometheus.CounterVec // by kind of repair
	unfinished *prometheus.GaugeVec   // by kind of work
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "reconcile"
	m := &metrics{
		drift: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "findings_total",
			Help: "Differences between Redis and Postgres that did not resolve by themselves.",
		}),
		repairs: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "repairs_total",
			Help: "Repairs towards Postgres. Label how: resent (a lost message), rebuilt (the gates of a sale).",
		}, []string{"how"}),
		unfinished: auto.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "unfinished",
			Help: "Overdue work of other loops, some seconds ago. Label what: unpaid_orders, returns, failures, payments, " +
				"payment_events, refunds, failed_refunds, held_payments, dead_letters.",
		}, []string{"what"}),
	}
	for _, how := range []string{"resent", "rebuilt"} {
		m.repairs.WithLabelValues(how) // exported as 0 from the start
	}
	return m
}
