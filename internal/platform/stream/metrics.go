package stream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/telemetry"
)

// Event is an event of stream entries, a label of a counter.
type Event string

// Events.
const (
	Read          Event = "read"            // entries read for the first time
	Claimed       Event = "claimed"         // pending entries taken over: a dead worker's, or its own after a restart
	Acked         Event = "acked"           // entries acknowledged
	Nacked        Event = "nacked"          // failed attempts
	MalformedSeen Event = "malformed"       // entries that could not be decoded
	ReadFailed    Event = "read_failed"     // failed reads; one per attempt
	AckFailed     Event = "ack_failed"      // failed acknowledgements; one per attempt
	GroupLost     Event = "group_lost"      // group lost: Redis was emptied, replaced, or failed over to an older copy
	DeadLettered  Event = "dead_lettered"   // entries moved to the dead letters
	Divided       Event = "split"           // entries replaced by their parts
	DeadFailed    Event = "dead_failed"     // failed attempts to move an entry to the dead letters
	RouterStopped Event = "router_stopped"  // router ended before its context did
	Trimmed       Event = "trimmed"         // finished entries removed
	BusReset      Event = "broadcast_reset" // broadcast restarted: Redis was emptied or replaced
)

// Outcome is the result of one attempt to handle a message.
type Outcome string

// Outcomes.
const (
	Handled Outcome = "ok"
	Retried Outcome = "later" // a service was unavailable; retried, never counted as a failure
	Failed  Outcome = "error" // retried, counted
	GivenUp Outcome = "dead"  // moved to the dead letters
)

// Metrics counts the events of all streams of a process. It is called on the hot path
// from many goroutines. A nil *Metrics counts nothing.
type Metrics struct {
	of telemetry.Factory

	messages *prometheus.CounterVec   // by stream and event
	tries    *prometheus.HistogramVec // by handler and outcome
	totals   map[Event]prometheus.Counter

	unread, pending, oldest *prometheus.GaugeVec // by stream
}

// NewMetrics registers the metrics of the package.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	of := telemetry.For(reg, "stream")
	byStream := func(name, help string) *prometheus.GaugeVec {
		return of.Gauges(name, help+" Label stream: its key.", "stream")
	}
	return &Metrics{
		of: of,
		messages: of.Counters("messages_total",
			"Messages by what happened to them. Label stream: its key. Label event: read, acked, claimed and so on.", "stream",
			"event"),
		tries: of.Histograms("handle_seconds", "Duration of one attempt to handle a message. Label handler: its name. "+
			"Label outcome: ok, later (a service was unavailable), error (retried), dead (a dead letter).",
			telemetry.Seconds(), "handler", "outcome"),
		totals: map[Event]prometheus.Counter{
			Claimed:      of.Counter("claimed_total", "Messages taken over from another or an earlier worker."),
			DeadLettered: of.Counter("dead_letters_total", "Messages moved to the dead letters."),
			Trimmed:      of.Counter("trimmed_total", "Acknowledged entries removed from streams."),
			GroupLost:    of.Counter("lost_groups_total", "Consumer groups that were lost and created again."),
		},
		unread:  byStream("unread_orders", "Orders that no worker has read, some seconds ago."),
		pending: byStream("pending_orders", "Orders that were read and not acknowledged, some seconds ago."),
		oldest:  byStream("oldest_seconds", "Age of the oldest unfinished message, some seconds ago."),
	}
}

// ShowSilence registers a gauge of the time since a router's last successful read, 0
// before the first. Call it once per process.
func (m *Metrics) ShowSilence(r *Router, c clock.Clock) {
	m.of.GaugeOf("silent_seconds", "Time since the worker's last successful read.", func() float64 {
		last := r.LastRead()
		if last.IsZero() {
			return 0
		}
		return c.Now().Sub(last).Seconds()
	})
}

func (m *Metrics) count(event Event, topic string, n int) {
	if m == nil || n <= 0 {
		return
	}
	m.messages.WithLabelValues(topic, string(event)).Add(float64(n))
	if total := m.totals[event]; total != nil {
		total.Add(float64(n))
	}
}

// tried counts one attempt of a handler.
func (m *Metrics) tried(handler string, outcome Outcome, took time.Duration) {
	if m != nil {
		m.tries.WithLabelValues(handler, string(outcome)).Observe(took.Seconds())
	}
}

func (m *Metrics) depth(topic string, s Stats) {
	m.unread.WithLabelValues(topic).Set(float64(s.Unread))
	m.pending.WithLabelValues(topic).Set(float64(s.Pending))
	m.oldest.WithLabelValues(topic).Set(s.OldestAge.Seconds())
}
