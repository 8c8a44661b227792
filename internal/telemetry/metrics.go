package telemetry

// ReservationMetrics are the figures of the gate.
type ReservationMetrics struct {
	Attempts   CounterVec // by outcome
	Local      CounterVec // refusals from process memory, by reason
	Script     Histogram  // seconds of one batch script, round trip included
	BatchSize  Histogram
	Overloaded Counter
	Ambiguous  Counter
}

// NewReservationMetrics makes the figures of the gate.
func NewReservationMetrics(r *Registry) *ReservationMetrics {
	const pkg = "reservation"
	return &ReservationMetrics{
		Attempts: r.CounterVec(Desc{Package: pkg, Name: "attempts_total", Labels: []string{"outcome"},
			Help: "Attempts to take stock that reached Redis. Label outcome: accepted, replayed, sold_out, path_invalid and so on."}),
		Local: r.CounterVec(Desc{Package: pkg, Name: "local_refusals_total", Labels: []string{"reason"},
			Help: "Attempts refused from process memory. Label reason: not_started, ended, paused, sold_out."}),
		Script: r.Histogram(Desc{Package: pkg, Name: "script_seconds", Help: "Time of one batch script with its round trip."}),
		BatchSize: r.Histogram(Desc{Package: pkg, Name: "batch_size", Help: "Attempts in one batch script.",
			Buckets: Sizes()}),
		Overloaded: r.Counter(Desc{Package: pkg, Name: "overloaded_total", Help: "Attempts refused because the queue in front of Redis was full."}),
		Ambiguous:  r.Counter(Desc{Package: pkg, Name: "ambiguous_total", Help: "Scripts whose reply was lost and that were asked again."}),
	}
}

// OrderMetrics are the figures of writing orders.
type OrderMetrics struct {
	Written   Counter
	Repeated  Counter
	Failed    CounterVec // by code
	BatchSize Histogram
	Write     Histogram // seconds of one transaction
	Age       Histogram // seconds from the reservation to the commit
	Released  Counter
}

// NewOrderMetrics makes the figures of writing orders.
func NewOrderMetrics(r *Registry) *OrderMetrics {
	const pkg = "order"
	return &OrderMetrics{
		Written:  r.Counter(Desc{Package: pkg, Name: "written_total", Help: "Orders written."}),
		Repeated: r.Counter(Desc{Package: pkg, Name: "repeated_total", Help: "Messages whose order was there before: delivered twice."}),
		Failed: r.CounterVec(Desc{Package: pkg, Name: "failed_total", Labels: []string{"code"},
			Help: "Order tasks that became no order. Label code: the reason told to the buyer."}),
		BatchSize: r.Histogram(Desc{Package: pkg, Name: "batch_size", Help: "Orders in one transaction.", Buckets: Sizes()}),
		Write:     r.Histogram(Desc{Package: pkg, Name: "write_seconds", Help: "Time of one transaction that writes orders."}),
		Age:       r.Histogram(Desc{Package: pkg, Name: "age_seconds", Help: "Time from taking the stock to the commit of the order."}),
		Released:  r.Counter(Desc{Package: pkg, Name: "released_total", Help: "Reservations given back in Redis."}),
	}
}

// StreamMetrics are the figures of the message streams.
type StreamMetrics struct {
	Messages CounterVec // by stream and outcome
	LastRead GaugeVec   // Unix seconds of the last good read, by stream
	Claimed  Counter
	Dead     Counter
	Trimmed  Counter
	Regroups Counter
}

// NewStreamMetrics makes the figures of the message streams.
func NewStreamMetrics(r *Registry) *StreamMetrics {
	const pkg = "stream"
	return &StreamMetrics{
		Messages: r.CounterVec(Desc{Package: pkg, Name: "messages_total", Labels: []string{"stream", "outcome"},
			Help: "Messages taken from streams. Label stream: its key. Label outcome: acked, nacked."}),
		LastRead: r.GaugeVec(Desc{Package: pkg, Name: "last_read_seconds", Labels: []string{"stream"},
			Help: "Unix time of the last good read. Label stream: its key."}),
		Claimed:  r.Counter(Desc{Package: pkg, Name: "claimed_total", Help: "Messages taken over from a silent worker."}),
		Dead:     r.Counter(Desc{Package: pkg, Name: "dead_letters_total", Help: "Messages set aside."}),
		Trimmed:  r.Counter(Desc{Package: pkg, Name: "trimmed_total", Help: "Acknowledged entries removed from streams."}),
		Regroups: r.Counter(Desc{Package: pkg, Name: "lost_groups_total", Help: "Consumer groups that were lost and made anew."}),
	}
}

// ServerMetrics are the figures of the edge.
type ServerMetrics struct {
	Requests   CounterVec   // by route and status
	Seconds    HistogramVec // by route
	Operations CounterVec   // by root field and outcome
	Sockets    Gauge
	Streams    Gauge
}

// NewServerMetrics makes the figures of the edge.
func NewServerMetrics(r *Registry) *ServerMetrics {
	const pkg = "server"
	return &ServerMetrics{
		Requests: r.CounterVec(Desc{Package: pkg, Name: "requests_total", Labels: []string{"route", "status"},
			Help: "HTTP requests. Label route: the pattern. Label status: the status code."}),
		Seconds: r.HistogramVec(Desc{Package: pkg, Name: "request_seconds", Labels: []string{"route"},
			Help: "Time of HTTP requests, subscriptions excepted. Label route: the pattern."}),
		Operations: r.CounterVec(Desc{Package: pkg, Name: "operations_total", Labels: []string{"field", "outcome"},
			Help: "GraphQL operations. Label field: the root field. Label outcome: ok, or the code of the error."}),
		Sockets: r.Gauge(Desc{Package: pkg, Name: "sockets_count", Help: "Open subscription connections."}),
		Streams: r.Gauge(Desc{Package: pkg, Name: "streams_count", Help: "Running subscriptions."}),
	}
}
