package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/fault"
)

// caughtPanics describes the counter of panics. All places are there from the beginning,
// because the increase of a series that appears with its first value is 0.
var caughtPanics = prometheus.NewDesc(prometheus.BuildFQName(Namespace, "fault", "panics_total"),
	"Panics that were caught; each is a bug. Labels: place (request, batch, loop, follower, handler, entry, reply) that caught it.", []string{"place"}, nil)

// panics collects the counter.
type panics struct{}

// Describe sends the description.
func (panics) Describe(ch chan<- *prometheus.Desc) { ch <- caughtPanics }

// Collect sends the values.
func (panics) Collect(ch chan<- prometheus.Metric) {
	for _, place := range fault.Places() {
		ch <- prometheus.MustNewConstMetric(caughtPanics, prometheus.CounterValue, float64(fault.Panics(place)),
			place.String())
	}
}
