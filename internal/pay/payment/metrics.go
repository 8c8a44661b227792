package payment

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	"seckill/internal/platform/telemetry"
)

type metrics struct {
	events *prometheus.CounterVec // by kind and outcome
	faults *prometheus.CounterVec // by step
	// By provider, which is the name of a configured one:
	results  *prometheus.CounterVec   // and result
	declines *prometheus.CounterVec   // and code
	calls    *prometheus.HistogramVec // and step and outcome
	lags     *prometheus.HistogramVec
	away     *prometheus.GaugeVec
}

// Values of the label step for reads of what a provider keeps.
const (
	stepFee  = "fee"
	stepBill = "bill"
)

// Values of the label result.
const (
	resultCreated  = "created"
	resultPaid     = "paid"
	resultDeclined = "declined"
	resultClosed   = "closed"
	resultRefunded = "refunded"
	resultHeld     = "held"
	resultDisputed = "disputed" // opened, won or lost
)

func newMetrics(reg prometheus.Registerer) *metrics {
	of := telemetry.For(reg, "payment")
	m := &metrics{
		events: of.Counters("events_total",
			"Events of payment providers that were handled. Label kind: of the event. Label outcome: of its handling.", "kind",
			"outcome"),
		faults: of.Counters("faults_total",
			"Failed calls to a payment provider. Label step: create, query, close, refund, fee, bill.", "step"),
		results: of.Counters("results_total",
			"Payments and refunds by what became of them. Label provider: its name. Label result: created, paid, declined, closed, refunded, held, disputed.",
			"provider", "result"),
		declines: of.Counters("declines_total",
			"Declined attempts to pay, by reason. Label provider: its name. Label code: as PaymentFailureCode of the API.",
			"provider", "code"),
		calls: of.Histograms("call_seconds",
			"Duration of a call of a payment provider. Label provider: its name. Label step: create, query, close, refund. Label outcome: ok, failed.",
			telemetry.Seconds(), "provider", "step", "outcome"),
		lags: of.Histograms("report_lag_seconds",
			"Time from what happened at a payment provider to its report. Label provider: its name.",
			[]float64{0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000}, "provider"),
		away: of.Gauges("provider_away",
			"1 while a payment provider is not offered, because calls of this process fail. Label provider: its name.",
			"provider"),
	}
	telemetry.FromZero(m.faults, "create", "query", "close", "refund", stepFee, stepBill)
	return m
}

var outcomeLabels = map[outcome]string{
	outcomePaid: "paid", outcomePaidLate: "paid_late", outcomeRefund: "refund_order_ended", outcomeUndrawn: "refund_undrawn",
	outcomeDouble: "refund_paid_twice", outcomeLimit: "refund_limit",
	outcomeRepeated: "repeated", outcomeClosed: "closed", outcomeMismatch: "held_mismatch",
	outcomeTwoTx: "held_second_transaction", outcomeUnmatched: "held_unmatched", outcomePutOff: "put_off",
	outcomeRefundFailed: "refund_failed", outcomeRefundedWhole: "refunded_outside",
	outcomeRefundedPart: "held_refunded_part", outcomeDisputed: "disputed", outcomeAttempt: "attempt_declined",
	outcomeAuthorized: "authorized",
}

func (m *metrics) event(kind EventKind, o outcome) {
	m.events.WithLabelValues(string(kind), outcomeLabels[o]).Inc()
}

// start exports the metrics of a provider as 0 from the start.
func (m *metrics) start(provider string) {
	for _, result := range []string{resultCreated, resultPaid, resultDeclined, resultClosed, resultRefunded, resultHeld,
		resultDisputed} {
		m.results.WithLabelValues(provider, result)
	}
	for _, d := range Declines {
		m.declines.WithLabelValues(provider, string(d))
	}
	m.lags.WithLabelValues(provider)
	m.setAway(provider, false)
}

func (m *metrics) result(provider, result string) { m.results.WithLabelValues(provider, result).Inc() }

// settled counts what an event made of its payment. Repeated events count once.
func (m *metrics) settled(e *ent.PaymentEvent, o outcome) {
	provider, kind := e.Provider, EventKind(e.Kind)
	if kind.declines() && (o == outcomeClosed || o == outcomeAttempt) {
		m.declines.WithLabelValues(provider, string(DeclineOf(e.Reason))).Inc()
	}
	switch o {
	case outcomePaid, outcomePaidLate, outcomeRefund, outcomeUndrawn, outcomeDouble, outcomeLimit:
		m.result(provider, resultPaid)
	case outcomeMismatch, outcomeTwoTx, outcomeUnmatched:
		m.result(provider, resultHeld)
	case outcomeClosed:
		if kind == EventDeclined {
			m.result(provider, resultDeclined)
		} else {
			m.result(provider, resultClosed)
		}
	case outcomeRefundedWhole:
		m.result(provider, resultRefunded)
	case outcomeRefundedPart:
		m.result(provider, resultRefunded)
		m.result(provider, resultHeld)
	case outcomeDisputed:
		m.result(provider, resultDisputed)
	case outcomeRepeated, outcomePutOff, outcomeRefundFailed, outcomeAttempt, outcomeAuthorized:
	}
}

func (m *metrics) called(provider, step string, err error, took time.Duration) {
	how := "ok"
	if err != nil {
		how = "failed"
		m.faults.WithLabelValues(step).Inc()
	}
	m.calls.WithLabelValues(provider, step, how).Observe(took.Seconds())
}

// lag records how late a report is. Providers round times to seconds, so that it may be
// before what it reports.
func (m *metrics) lag(provider string, late time.Duration) {
	m.lags.WithLabelValues(provider).Observe(max(late, 0).Seconds())
}

func (m *metrics) setAway(provider string, away bool) {
	value := 0.0
	if away {
		value = 1
	}
	m.away.WithLabelValues(provider).Set(value)
}
