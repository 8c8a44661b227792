package notice

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/ent"
	"seckill/internal/platform/telemetry"
)

// Outcomes of attempts to reach the operator's service or a push service.
const (
	sent    = "sent"
	failed  = "failed"   // repeated later
	givenUp = "given_up" // too late, or its reason has ended
)

type metrics struct {
	written  *prometheus.CounterVec // by kind and channel
	attempts *prometheus.CounterVec // by outcome, to the operator's service
	pushes   *prometheus.CounterVec // by outcome, to push services
	lost     prometheus.Counter     // admissions
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "notice"
	m := &metrics{
		written: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "written_total",
			Help: "Notices that were written for a channel. Labels kind, and channel: MAIL, HOOK or PUSH. The e-mails of refunds are receipts and not counted.",
		}, []string{"kind", "channel"}),
		attempts: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "hook_attempts_total",
			Help: "Requests to the operator's service for notices. Label outcome: sent, failed (repeated later), given_up.",
		}, []string{"outcome"}),
		pushes: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "push_attempts_total",
			Help: "Requests to push services for notices, one for each browser. Label outcome: sent, failed (repeated later), given_up.",
		}, []string{"outcome"}),
		lost: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "admissions_lost_total",
			Help: "Admissions from waiting rooms for which no notice was written: Postgres did not answer, or 20,000 others waited.",
		}),
	}
	for _, o := range []string{sent, failed, givenUp} {
		m.attempts.WithLabelValues(o) // exported as 0 from the start
		m.pushes.WithLabelValues(o)
	}
	return m
}

// of returns the attempts by the channel of a delivery.
func (m *metrics) of(d *ent.NoticeDelivery) *prometheus.CounterVec {
	if d.SubscriptionID != nil {
		return m.pushes
	}
	return m.attempts
}
