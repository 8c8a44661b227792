package reconcile

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/telemetry"
)

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
