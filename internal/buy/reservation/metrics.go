package reservation

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/telemetry"
)

// metrics counts the reserve script's calls and outcomes.
type metrics struct {
	attempts  *prometheus.CounterVec // by outcome
	script    prometheus.Histogram
	batchSize prometheus.Histogram
	ambiguous prometheus.Counter
}

// newMetrics registers the metrics with reg; nil = they are counted but not exported.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "reservation"
	return &metrics{
		attempts: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "attempts_total",
			Help: "Attempts to take stock that reached Redis. Label outcome: accepted, replayed, sold_out, path_invalid and so on.",
		}, []string{"outcome"}),
		script: auto.NewHistogram(prometheus.HistogramOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "script_seconds",
			Help: "Duration of one batch script, round trip included.", Buckets: telemetry.Seconds(),
		}),
		batchSize: auto.NewHistogram(prometheus.HistogramOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "batch_size",
			Help: "Attempts in one batch script.", Buckets: telemetry.Sizes(),
		}),
		ambiguous: auto.NewCounter(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "ambiguous_total",
			Help: "Scripts whose outcome stayed unknown because the reply was lost twice.",
		}),
	}
}

// outcomeLabels are the values of the label outcome.
var outcomeLabels = map[Code]string{
	Accepted: "accepted", Replayed: "replayed",
	IdempotencyMismatch: "idempotency_mismatch", NotLoaded: "not_loaded",
	Paused: "paused", NotStarted: "not_started", Ended: "ended",
	PathInvalid: "path_invalid", AlreadyHolding: "already_holding",
	OverLimit: "over_limit", OverSaleLimit: "over_sale_limit", SoldOut: "sold_out", TooFewLeft: "too_few_left",
	TooManyTries: "too_many_tries",
}

// batch counts one script call.
func (m *metrics) batch(size int, took time.Duration, traceID string, err error) {
	m.batchSize.Observe(float64(size))
	telemetry.Observe(m.script, took.Seconds(), traceID)
	if errors.Is(err, ErrUnknown) {
		m.ambiguous.Inc()
	}
}

// outcome counts one attempt.
func (m *metrics) outcome(c Code) { m.attempts.WithLabelValues(outcomeLabels[c]).Inc() }
