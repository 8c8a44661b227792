package payment

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/telemetry"
)

type metrics struct {
	events *prometheus.CounterVec // by kind and outcome
	faults *prometheus.CounterVec // by step
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "payment"
	m := &metrics{
		events: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "events_total",
			Help: "Events of payment providers that were handled. Label kind: of the event. Label outcome: of its handling.",
		}, []string{"kind", "outcome"}),
		faults: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "faults_total",
			Help: "Failed calls to a payment provider. Label step: create, query, close, refund.",
		}, []string{"step"}),
	}
	for _, step := range []string{"create", "query", "close", "refund"} {
		m.faults.WithLabelValues(step) // exported as 0 from the start
	}
	return m
}

var outcomeLabels = map[outcome]string{
	outcomePaid: "paid", outcomePaidLate: "paid_late", outcomeRefund: "refund_order_ended", outcomeDouble: "refund_paid_twice",
	outcomeRepeated: "repeated", outcomeClosed: "closed", outcomeMismatch: "held_mismatch",
	outcomeTwoTx: "held_second_transaction", outcomeUnmatched: "held_unmatched", outcomePutOff: "put_off",
	outcomeRefundFailed: "refund_failed",
}

func (m *metrics) event(kind EventKind, o outcome) {
	m.events.WithLabelValues(string(kind), outcomeLabels[o]).Inc()
}

// fault counts one failed call to a provider.
func (m *metrics) fault(step string) { m.faults.WithLabelValues(step).Inc() }
