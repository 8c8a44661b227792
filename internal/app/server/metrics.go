package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/platform/telemetry"
)

// metrics counts the requests of the public listener.
type metrics struct {
	requests *prometheus.CounterVec   // by route and status
	seconds  *prometheus.HistogramVec // by route
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	const subsystem = "server"
	return &metrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "HTTP requests. Label route: the pattern. Label status: the status code.",
		}, []string{"route", "status"}),
		seconds: auto.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "request_seconds",
			Help: "Duration of HTTP requests. Label route: the pattern.", Buckets: telemetry.Seconds(),
		}, []string{"route"}),
	}
}

// observe counts one response.
func (m *metrics) observe(route string, status int, took time.Duration, traceID string) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	telemetry.Observe(m.seconds.WithLabelValues(route), took.Seconds(), traceID)
}
