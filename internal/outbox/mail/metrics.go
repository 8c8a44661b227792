package mail

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/outbox/queue"
	"seckill/internal/platform/telemetry"
)

type metrics struct {
	ended       *prometheus.CounterVec // by outcome
	unreachable prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, q *queue.Queue) metrics {
	of := telemetry.For(reg, "mail")
	return metrics{
		ended: q.Attempts(of, "attempts_total", "Attempts to send an e-mail."),
		unreachable: of.Counter("server_failures_total",
			"Connections to the mail server that failed while e-mails were waiting."),
	}
}
