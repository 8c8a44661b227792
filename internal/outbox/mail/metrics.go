package mail

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/telemetry"
)

// Outcomes of attempts to send an e-mail.
const (
	sent    = "sent"
	failed  = "failed"   // repeated later
	givenUp = "given_up" // refused, too late, or its reason has ended
)

type metrics struct {
	ended       *prometheus.CounterVec // by outcome
	unreachable prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "mail"
	m := &metrics{
		ended: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "attempts_total",
			Help: "Attempts to send an e-mail. Label outcome: sent, failed (repeated later), given_up.",
		}, []string{"outcome"}),
		unreachable: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "server_failures_total",
			Help: "Connections to the mail server that failed while e-mails were waiting.",
		}),
	}
	for _, o := range []string{sent, failed, givenUp} {
		m.ended.WithLabelValues(o) // exported as 0 from the start
	}
	return m
}
