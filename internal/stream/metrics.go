package stream

import "time"

// Event is something that happened to entries of a stream, for counting.
type Event string

// Events.
const (
	Read          Event = "read"            // entries read for the first time
	Claimed       Event = "claimed"         // pending entries taken over, a dead worker's or one's own after a restart
	Acked         Event = "acked"           // entries acknowledged
	Nacked        Event = "nacked"          // tries that failed
	MalformedSeen Event = "malformed"       // entries that could not be decoded
	ReadFailed    Event = "read_failed"     // reads that failed; one per try
	AckFailed     Event = "ack_failed"      // acknowledgements that failed; one per try, none is given up while the worker lives
	GroupLost     Event = "group_lost"      // consumer group gone: Redis was emptied, replaced, or failed over to an older copy
	DeadLettered  Event = "dead_lettered"   // entries set aside
	DeadFailed    Event = "dead_failed"     // tries to set aside that failed
	RouterStopped Event = "router_stopped"  // router ended although nobody asked it to
	Trimmed       Event = "trimmed"         // finished entries removed
	BusReset      Event = "broadcast_reset" // broadcast began anew: Redis was emptied or replaced
)

// Outcome is how one try to handle a message ended.
type Outcome string

// Outcomes.
const (
	Handled Outcome = "ok"
	Retried Outcome = "later" // a service was away; tried again, never counted
	Failed  Outcome = "error" // tried again, counted
	GivenUp Outcome = "dead"  // set aside
)

// Metrics is told what happens. Any function may be nil. They are called on the
// hot path, at once and from many goroutines.
type Metrics struct {
	// Count is told of n entries of a stream.
	Count func(event Event, topic string, n int)
	// Tried is told of one try of a handler.
	Tried func(handler string, outcome Outcome, took time.Duration)
}

func (m Metrics) count(event Event, topic string, n int) {
	if m.Count != nil && n > 0 {
		m.Count(event, topic, n)
	}
}
