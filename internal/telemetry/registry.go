package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Counter is a figure that only grows.
type Counter interface {
	Inc()
	Add(n float64)
}

// Gauge is a figure that goes up and down.
type Gauge interface {
	Set(value float64)
	Add(delta float64)
}

// Histogram is a distribution of observed values.
type Histogram interface {
	Observe(value float64)
}

// CounterVec is a family of counters told apart by the values of its labels.
type CounterVec interface {
	With(values ...string) Counter
}

// GaugeVec is a family of gauges told apart by the values of its labels.
type GaugeVec interface {
	With(values ...string) Gauge
}

// HistogramVec is a family of histograms told apart by the values of its labels.
type HistogramVec interface {
	With(values ...string) Histogram
}

// Desc names a metric: seckill_<package>_<name>. The name ends in its unit, the
// help lists what the labels can be. Labels never hold ids of users.
type Desc struct {
	Package string
	Name    string // noun and unit: orders_total, script_seconds
	Help    string
	Labels  []string
	Buckets []float64 // of a histogram; nil = Seconds
}

// Seconds are buckets for durations from 0.1 ms to 10 s.
func Seconds() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// Sizes are buckets for the sizes of batches, 1 to 1024.
func Sizes() []float64 { return []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024} }

// metricName is the form of all our names; prometheus.io's rules on units.
var metricName = regexp.MustCompile(`^seckill_[a-z]+_[a-z0-9_]+_(total|seconds|bytes|count|ratio|info|units|size)$`)

// Registry makes metrics and shows them. The zero value, like Nop, makes metrics
// that go nowhere.
type Registry struct {
	prom *prometheus.Registry // nil = metrics go nowhere
}

// NewRegistry returns a registry that also reports the Go runtime, the process
// and the build.
func NewRegistry() *Registry {
	r := &Registry{prom: prometheus.NewRegistry()}
	r.prom.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b := ReadBuild()
	r.GaugeVec(Desc{
		Package: "telemetry", Name: "build_info", Help: "Always 1. Labels: version, commit and Go version of the binary.",
		Labels: []string{"version", "commit", "go"},
	}).With(b.Version, b.Commit, b.Go).Set(1)
	return r
}

// Nop returns a registry whose metrics go nowhere, for tests.
func Nop() *Registry { return &Registry{} }

// Handler serves the metrics in Prometheus' text format.
func (r *Registry) Handler() http.Handler {
	if r.prom == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Counter makes a counter. Made twice, it is the same one.
func (r *Registry) Counter(d Desc) Counter {
	return r.CounterVec(d).With()
}

// CounterVec makes a family of counters.
func (r *Registry) CounterVec(d Desc) CounterVec {
	if r.prom == nil {
		return nopVec{}
	}
	return counters{register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.fullName(), Help: d.Help}, d.Labels))}
}

// Gauge makes a gauge.
func (r *Registry) Gauge(d Desc) Gauge {
	return r.GaugeVec(d).With()
}

// GaugeVec makes a family of gauges.
func (r *Registry) GaugeVec(d Desc) GaugeVec {
	if r.prom == nil {
		return nopGauges{}
	}
	return gauges{register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.fullName(), Help: d.Help}, d.Labels))}
}

// GaugeFunc makes a gauge that is read when it is shown. The function must be
// quick and safe at any time.
func (r *Registry) GaugeFunc(d Desc, read func() float64) {
	if r.prom == nil {
		return
	}
	register(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.fullName(), Help: d.Help}, read))
}

// Histogram makes a histogram.
func (r *Registry) Histogram(d Desc) Histogram {
	return r.HistogramVec(d).With()
}

// HistogramVec makes a family of histograms.
func (r *Registry) HistogramVec(d Desc) HistogramVec {
	if r.prom == nil {
		return nopHistograms{}
	}
	if d.Buckets == nil {
		d.Buckets = Seconds()
	}
	return histograms{register(r, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: d.fullName(), Help: d.Help, Buckets: d.Buckets}, d.Labels))}
}

// fullName returns the name of the metric. A wrong form is a bug and panics at
// the start of the process.
func (d Desc) fullName() string {
	name := "seckill_" + d.Package + "_" + d.Name
	if !metricName.MatchString(name) || d.Help == "" {
		panic(fmt.Sprintf("telemetry: metric %q: want seckill_<package>_<noun>_<unit> and a help", name))
	}
	return name
}

// register enters a collector, or returns the one that was entered before under
// the same name. Two different metrics of one name are a bug and panic.
func register[T prometheus.Collector](r *Registry, collector T) T {
	err := r.prom.Register(collector)
	if err == nil {
		return collector
	}
	if before, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := before.ExistingCollector.(T); ok {
			return same
		}
	}
	panic(fmt.Sprintf("telemetry: %v", err))
}

type counters struct{ vec *prometheus.CounterVec }

func (c counters) With(values ...string) Counter { return c.vec.WithLabelValues(values...) }

type gauges struct{ vec *prometheus.GaugeVec }

func (g gauges) With(values ...string) Gauge { return g.vec.WithLabelValues(values...) }

type histograms struct{ vec *prometheus.HistogramVec }

func (h histograms) With(values ...string) Histogram { return h.vec.WithLabelValues(values...) }

// nop is every kind of metric, and goes nowhere.
type nop struct{}

func (nop) Inc()            {}
func (nop) Add(float64)     {}
func (nop) Set(float64)     {}
func (nop) Observe(float64) {}

type nopVec struct{}

func (nopVec) With(...string) Counter { return nop{} }

type nopGauges struct{}

func (nopGauges) With(...string) Gauge { return nop{} }

type nopHistograms struct{}

func (nopHistograms) With(...string) Histogram { return nop{} }
