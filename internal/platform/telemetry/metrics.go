package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seckill/internal/platform/fault"
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

// Factory registers the metrics of a package, whose names begin with seckill_<package>_. Help
// says what each label means.
type Factory struct {
	auto      promauto.Factory
	subsystem string
}

// For returns the Factory of a package; with a nil registerer metrics are not exported.
func For(reg prometheus.Registerer, subsystem string) Factory {
	return Factory{promauto.With(reg), subsystem}
}

func (f Factory) opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: Namespace, Subsystem: f.subsystem, Name: name, Help: help}
}

// Counter returns a counter.
func (f Factory) Counter(name, help string) prometheus.Counter {
	return f.auto.NewCounter(prometheus.CounterOpts(f.opts(name, help)))
}

// Counters returns a counter for each value of the labels.
func (f Factory) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.auto.NewCounterVec(prometheus.CounterOpts(f.opts(name, help)), labels)
}

// Gauge returns a gauge.
func (f Factory) Gauge(name, help string) prometheus.Gauge {
	return f.auto.NewGauge(prometheus.GaugeOpts(f.opts(name, help)))
}

// Gauges returns a gauge for each value of the labels.
func (f Factory) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.auto.NewGaugeVec(prometheus.GaugeOpts(f.opts(name, help)), labels)
}

// GaugeOf registers a gauge whose value is read at each scrape.
func (f Factory) GaugeOf(name, help string, value func() float64) {
	f.auto.NewGaugeFunc(prometheus.GaugeOpts(f.opts(name, help)), value)
}

// Histogram returns a histogram with upper bounds of its buckets.
func (f Factory) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return f.auto.NewHistogram(f.histogram(name, help, buckets))
}

// Histograms returns a histogram for each value of the labels.
func (f Factory) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.auto.NewHistogramVec(f.histogram(name, help, buckets), labels)
}

func (f Factory) histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: Namespace, Subsystem: f.subsystem, Name: name, Help: help, Buckets: buckets}
}

// FromZero exports counters with one label as 0 before they are counted the first time.
func FromZero[V ~string](counters *prometheus.CounterVec, values ...V) *prometheus.CounterVec {
	for _, value := range values {
		counters.WithLabelValues(string(value))
	}
	return counters
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
