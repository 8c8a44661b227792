package notice

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	"seckill/internal/outbox/queue"
	"seckill/internal/platform/telemetry"
)

type metrics struct {
	written  *prometheus.CounterVec // by kind and channel
	attempts *prometheus.CounterVec // by outcome, to the operator's service
	pushes   *prometheus.CounterVec // by outcome, to push services
	lost     prometheus.Counter     // admissions
}

func newMetrics(reg prometheus.Registerer, q *queue.Queue) metrics {
	of := telemetry.For(reg, "notice")
	return metrics{
		written: of.Counters("written_total",
			"Notices that were written for a channel. Labels kind, and channel: MAIL, HOOK or PUSH. The e-mails of refunds are receipts and not counted.", "kind", "channel"),
		attempts: q.Attempts(of, "hook_attempts_total", "Requests to the operator's service for notices."),
		pushes:   q.Attempts(of, "push_attempts_total", "Requests to push services for notices, one for each browser."),
		lost: of.Counter("admissions_lost_total",
			"Admissions from waiting rooms for which no notice was written: Postgres did not answer, or 20,000 others waited."),
	}
}

// of returns the attempts by the channel of a delivery.
func (m metrics) of(d *ent.NoticeDelivery) *prometheus.CounterVec {
	if d.SubscriptionID != nil {
		return m.pushes
	}
	return m.attempts
}
