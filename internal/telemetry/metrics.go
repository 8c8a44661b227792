package telemetry

// ReservationMetrics are the figures of the gate.
type ReservationMetrics struct {
	Attempts  CounterVec // by outcome
	Script    Histogram  // seconds of one batch script, round trip included
	BatchSize Histogram
	Ambiguous Counter
}

// NewReservationMetrics makes the figures of the gate.
func NewReservationMetrics(r *Registry) *ReservationMetrics {
	const pkg = "reservation"
	return &ReservationMetrics{
		Attempts: r.CounterVec(Desc{Package: pkg, Name: "attempts_total", Labels: []string{"outcome"},
			Help: "Attempts to take stock that reached Redis. Label outcome: accepted, replayed, sold_out, path_invalid and so on."}),
		Script: r.Histogram(Desc{Package: pkg, Name: "script_seconds", Help: "Time of one batch script with its round trip."}),
		BatchSize: r.Histogram(Desc{Package: pkg, Name: "batch_size", Help: "Attempts in one batch script.",
			Buckets: Sizes()}),
		Ambiguous: r.Counter(Desc{Package: pkg, Name: "ambiguous_total", Help: "Scripts whose reply was lost and that were asked again."}),
	}
}

// OrderMetrics are the figures of writing orders.
type OrderMetrics struct {
	Written   Counter
	Failed    CounterVec // by code
	Faults    CounterVec // by step
	BatchSize Histogram
	Write     Histogram // seconds of one transaction
	Released  Counter
}

// NewOrderMetrics makes the figures of writing orders.
func NewOrderMetrics(r *Registry) *OrderMetrics {
	const pkg = "order"
	return &OrderMetrics{
		Written: r.Counter(Desc{Package: pkg, Name: "written_total", Help: "Orders written."}),
		Failed: r.CounterVec(Desc{Package: pkg, Name: "failed_total", Labels: []string{"code"},
			Help: "Order tasks that became no order. Label code: the reason told to the buyer."}),
		Faults: r.CounterVec(Desc{Package: pkg, Name: "faults_total", Labels: []string{"step"},
			Help: "Steps that went wrong and are done again. Label step: transaction, or what follows a commit: record, announce."}),
		BatchSize: r.Histogram(Desc{Package: pkg, Name: "batch_size", Help: "Orders in one transaction.", Buckets: Sizes()}),
		Write:     r.Histogram(Desc{Package: pkg, Name: "write_seconds", Help: "Time of one transaction that writes orders."}),
		Released:  r.Counter(Desc{Package: pkg, Name: "released_total", Help: "Reservations given back in Redis."}),
	}
}

// StreamMetrics are the figures of the message streams.
type StreamMetrics struct {
	Messages CounterVec // by stream and event
	Unread   GaugeVec   // by stream
	Pending  GaugeVec   // by stream
	Oldest   GaugeVec   // seconds that the oldest unfinished message waits, by stream
	Claimed  Counter
	Dead     Counter
	Trimmed  Counter
	Regroups Counter
}

// NewStreamMetrics makes the figures of the message streams.
func NewStreamMetrics(r *Registry) *StreamMetrics {
	const pkg = "stream"
	return &StreamMetrics{
		Messages: r.CounterVec(Desc{Package: pkg, Name: "messages_total", Labels: []string{"stream", "event"},
			Help: "What became of messages. Label stream: its key. Label event: read, acknowledged, claimed and so on."}),
		Unread: r.GaugeVec(Desc{Package: pkg, Name: "unread_count", Labels: []string{"stream"},
			Help: "Messages that no worker has read, some seconds ago. Label stream: its key."}),
		Pending: r.GaugeVec(Desc{Package: pkg, Name: "pending_count", Labels: []string{"stream"},
			Help: "Messages that were read and not acknowledged, some seconds ago. Label stream: its key."}),
		Oldest: r.GaugeVec(Desc{Package: pkg, Name: "oldest_seconds", Labels: []string{"stream"},
			Help: "How long the oldest unfinished message has waited, some seconds ago. Label stream: its key."}),
		Claimed:  r.Counter(Desc{Package: pkg, Name: "claimed_total", Help: "Messages taken over from a silent worker."}),
		Dead:     r.Counter(Desc{Package: pkg, Name: "dead_letters_total", Help: "Messages set aside."}),
		Trimmed:  r.Counter(Desc{Package: pkg, Name: "trimmed_total", Help: "Acknowledged entries removed from streams."}),
		Regroups: r.Counter(Desc{Package: pkg, Name: "lost_groups_total", Help: "Consumer groups that were lost and made anew."}),
	}
}

// ServerMetrics are the figures of the edge.
type ServerMetrics struct {
	Requests CounterVec   // by route and status
	Seconds  HistogramVec // by route
}

// NewServerMetrics makes the figures of the edge.
func NewServerMetrics(r *Registry) *ServerMetrics {
	const pkg = "server"
	return &ServerMetrics{
		Requests: r.CounterVec(Desc{Package: pkg, Name: "requests_total", Labels: []string{"route", "status"},
			Help: "HTTP requests. Label route: the pattern. Label status: the status code."}),
		Seconds: r.HistogramVec(Desc{Package: pkg, Name: "request_seconds", Labels: []string{"route"},
			Help: "Time of HTTP requests. Label route: the pattern."}),
	}
}

// ReconcileMetrics are the figures of the reconciler.
type ReconcileMetrics struct {
	Drift      Counter
	Repairs    CounterVec // by how
	Unfinished GaugeVec   // by what
}

// NewReconcileMetrics makes the figures of the reconciler.
func NewReconcileMetrics(r *Registry) *ReconcileMetrics {
	const pkg = "reconcile"
	return &ReconcileMetrics{
		Drift: r.Counter(Desc{Package: pkg, Name: "findings_total", Help: "Differences between Redis and the record that did not pass by themselves."}),
		Repairs: r.CounterVec(Desc{Package: pkg, Name: "repairs_total", Labels: []string{"how"},
			Help: "Repairs towards the record. Label how: resent a lost message, rebuilt the gates of a sale."}),
		Unfinished: r.GaugeVec(Desc{Package: pkg, Name: "unfinished_count", Labels: []string{"what"},
			Help: "What should have ended by itself, some seconds ago. Label what: unpaid_orders, returns, failures, payments, payment_events, refunds, held_payments, dead_letters."}),
	}
}

// WaitlistMetrics are the figures of the line for units that come back.
type WaitlistMetrics struct {
	Places GaugeVec   // by status
	Turns  CounterVec // by what
}

// NewWaitlistMetrics makes the figures of the line.
func NewWaitlistMetrics(r *Registry) *WaitlistMetrics {
	const pkg = "waitlist"
	return &WaitlistMetrics{
		Places: r.GaugeVec(Desc{Package: pkg, Name: "places_count", Labels: []string{"status"},
			Help: "Places in line in all sales by the record, the same in every process. Label status: waiting, offered."}),
		Turns: r.CounterVec(Desc{Package: pkg, Name: "turns_total", Labels: []string{"what"},
			Help: "What became of places. Label what: joined, offered, redeemed, lapsed, left, withdrawn, renewed, returned."}),
	}
}
