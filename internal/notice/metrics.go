package notice

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/telemetry"
)

// Outcomes of attempts to reach the operator's service.
const (
	sent    = "sent"
	failed  = "failed"   // repeated later
	givenUp = "given_up" // too late, or of no use any more
)

type metrics struct {
	written  *prometheus.CounterVec // by kind and channel
	attempts *prometheus.CounterVec // by outcome
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "notice"
	m := &metrics{
		written: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "written_total",
			Help: "Notices that were written for a channel. Labels kind, and channel: MAIL or HOOK. The e-mails of refunds are receipts and not counted.",
		}, []string{"kind", "channel"}),
		attempts: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "hook_attempts_total",
			Help: "Requests to the operator's service for notices. Label outcome: sent, failed (repeated later), given_up.",
		}, []string{"outcome"}),
	}
	for _, o := range []string{sent, failed, givenUp} {
		m.attempts.WithLabelValues(o) // exported as 0 from the start
	}
	return m
}
