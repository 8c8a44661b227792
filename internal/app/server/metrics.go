package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/telemetry"
)

// metrics counts the requests of the public listener.
type metrics struct {
	requests *prometheus.CounterVec   // by route and status
	seconds  *prometheus.HistogramVec // by route
}

func newMetrics(reg prometheus.Registerer) *metrics {
	of := telemetry.For(reg, "server")
	return &metrics{
		requests: of.Counters("requests_total",
			"HTTP requests. Label route: the pattern. Label status: the status code.", "route", "status"),
		seconds: of.Histograms("request_seconds",
			"Duration of HTTP requests. Label route: the pattern.", telemetry.Seconds(), "route"),
	}
}

// observe counts one response.
func (m *metrics) observe(route string, status int, took time.Duration, traceID string) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	telemetry.Observe(m.seconds.WithLabelValues(route), took.Seconds(), traceID)
}
