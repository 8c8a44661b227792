package waitlist

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/telemetry"
)

// metrics counts waitlist entries and their changes.
type metrics struct {
	entries *prometheus.GaugeVec   // by status
	changes *prometheus.CounterVec // by kind of change
	late    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	of := telemetry.For(reg, "waitlist")
	m := &metrics{
		entries: of.Gauges("places",
			"Entries of all waitlists in Postgres, the same in every process. Label status: waiting, offered.", "status"),
		changes: of.Counters("turns_total",
			"Changes of entries. Label what: joined, offered, redeemed, lapsed, left, withdrawn (the units were gone), "+
				"renewed (after a pause), returned (their units).", "what"),
	}
	m.late = of.Gauge("draw_late_seconds",
		"Time for which a draw of this database has waited for its random value since that can exist; 0 = none waits.")
	telemetry.FromZero(m.changes, "joined", "offered", "redeemed", "lapsed", "left", "withdrawn", "renewed", "returned")
	return m
}

// setLate sets how long a draw has waited for its random value.
func (m *metrics) setLate(late time.Duration) { m.late.Set(late.Seconds()) }

// setEntries sets the number of waiting entries and of open offers, over all sales.
func (m *metrics) setEntries(waiting, offered int) {
	m.entries.WithLabelValues("waiting").Set(float64(waiting))
	m.entries.WithLabelValues("offered").Set(float64(offered))
}

// turned counts n changes of one kind.
func (m *metrics) turned(what string, n int) { m.changes.WithLabelValues(what).Add(float64(n)) }
