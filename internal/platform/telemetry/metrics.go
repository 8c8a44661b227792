package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Namespace is the first part of every metric name: seckill_<package>_<noun>_<unit>.
const Namespace = "seckill"

// maxScrapes limits concurrent scrapes of /metrics.
const maxScrapes = 4

// Seconds are histogram buckets for durations from 0.1 ms to 10 s.
func Seconds() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// Sizes are histogram buckets for batch sizes from 1 to 1024.
func Sizes() []float64 { return []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024} }

// NewRegistry returns a registry with the metrics of the Go runtime, the process
// and the build.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(panics{})
	b := ReadBuild()
	promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{
		Namespace: Namespace, Subsystem: "telemetry", Name: "build_info",
		Help: "Always 1. Labels: version, commit and Go version of the binary.",
	}, []string{"version", "commit", "go"}).WithLabelValues(b.Version, b.Commit, b.Go).Set(1)
	return r
}

// Observe adds a value to a histogram, with the trace that it belongs to as its exemplar; ""
// = none.
func Observe(histogram prometheus.Observer, value float64, traceID string) {
	if with, ok := histogram.(prometheus.ExemplarObserver); ok && traceID != "" {
		with.ObserveWithExemplar(value, prometheus.Labels{"trace_id": traceID})
		return
	}
	histogram.Observe(value)
}

// MetricsHandler serves the metrics of a registry in the text format of Prometheus, or of
// OpenMetrics, with exemplars, for clients that accept it.
func MetricsHandler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, EnableOpenMetrics: true})
}
