package waitlist

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/telemetry"
)

// metrics counts waitlist entries and their changes.
type metrics struct {
	entries *prometheus.GaugeVec   // by status
	changes *prometheus.CounterVec // by kind of change
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "waitlist"
	m := &metrics{
		entries: auto.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "places",
			Help: "Entries of all waitlists in Postgres, the same in every process. Label status: waiting, offered.",
		}, []string{"status"}),
		changes: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "turns_total",
			Help: "Changes of entries. Label what: joined, offered, redeemed, lapsed, left, withdrawn (the units were gone), " +
				"renewed (after a pause), returned (their units).",
		}, []string{"what"}),
	}
	for _, what := range []string{"joined", "offered", "redeemed", "lapsed", "left", "withdrawn", "renewed", "returned"} {
		m.changes.WithLabelValues(what) // exported as 0 from the start
	}
	return m
}

// setEntries sets the number of waiting entries and of open offers, over all sales.
func (m *metrics) setEntries(waiting, offered int) {
	m.entries.WithLabelValues("waiting").Set(float64(waiting))
	m.entries.WithLabelValues("offered").Set(float64(offered))
}

// turned counts n changes of one kind.
func (m *metrics) turned(what string, n int) { m.changes.WithLabelValues(what).Add(float64(n)) }
