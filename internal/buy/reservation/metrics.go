package reservation

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	of := telemetry.For(reg, "reservation")
	return &metrics{
		attempts: of.Counters("attempts_total",
			"Attempts to take stock that reached Redis. Label outcome: accepted, replayed, sold_out, path_invalid and so on.",
			"outcome"),
		script: of.Histogram("script_seconds",
			"Duration of one batch script, round trip included.", telemetry.Seconds()),
		batchSize: of.Histogram("batch_size", "Attempts in one batch script.", telemetry.Sizes()),
		ambiguous: of.Counter("ambiguous_total",
			"Scripts whose outcome stayed unknown because the reply was lost twice."),
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
