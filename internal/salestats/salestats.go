// Package salestats owns the figures of a sale: what was asked for, what came of
// it, how fast, and how it went by the second.
//
// Each process counts in memory and adds its counts to Redis a few times a second
// (Recorder), once per batch even when an answer is lost, so that the figures of
// any number of processes are exact and no order pays for them. A Reader joins
// them with the gate, the stream and the record into one Stats; a Feed is the log
// of a sale that operators follow.
//
// It does not own units, orders or money, which it only reads; metrics of the
// processes are package telemetry's.
package salestats

import (
	"math"
	"sort"
	"time"

	"github.com/google/uuid"

	"seckill/internal/fault"
	"seckill/internal/money"
)

const (
	// stretch is how many seconds share one hash.
	stretch = 300
	// Window is how far back the series of a Stats goes: one point per second.
	Window = 300
	// countersLife and seriesLife are how long figures outlive the last count; what
	// is to stay is kept in the record when the sale is settled (Reader.Keep).
	countersLife = 7 * 24 * time.Hour
	seriesLife   = 48 * time.Hour
)

// Stats is how a sale stands and how it went.
type Stats struct {
	Sale uuid.UUID
	At   time.Time

	Captchas int64 // challenges that buyers were given
	Paths    int64 // rights to try that buyers were given
	Requests int64 // calls of placeOrder
	Accepted int64 // that took units
	Replayed int64 // that were answered with an earlier one's task
	Faulted  int64 // that ended in an error: overload, a service away
	Refused  []Rejection
	P50, P99 time.Duration // of answering placeOrder

	RequestsPerSecond float64 // in the last whole second
	OrdersPerSecond   float64

	QueueDepth int           // messages that wait for a worker in the sale's stream
	QueueAge   time.Duration // of the oldest of them

	Orders    int // written
	Paid      int // orders that are paid now
	Unpaid    int // orders that wait for payment now
	Lapsed    int // orders that were not paid in time
	Cancelled int // by the buyer or an operator
	Refunded  int // or on the way to it
	Failed    int // tasks that ended without an order

	Units Units
	GMV   money.Amount // what paid orders come to

	Series []Point // the last five minutes, oldest first
}

// Units is where the units of a sale are. Remaining and Total are the gate's
// while there is one; Held and Sold are the record's.
type Units struct {
	Total     int
	Remaining int // nobody has them
	Held      int // in unpaid orders
	Sold      int // in paid orders
	InFlight  int // taken at the gate, and not yet, or no longer, in an order
	Loaded    bool
	// Conserved says that each store adds up in itself and that they agree on the
	// total: stock + reserved = total, available + held + sold = total.
	Conserved bool
}

// Pending is the units that somebody has who has not paid: Total is always
// Remaining + Pending + Sold.
func (u Units) Pending() int { return u.Total - u.Remaining - u.Sold }

// Rejection is how often a reason came up.
type Rejection struct {
	Reason fault.Reason `json:"reason"`
	Count  int64        `json:"count"`
}

// Point is one second of a sale.
type Point struct {
	At        time.Time
	Requests  int
	Accepted  int
	Orders    int
	Remaining int // units left at its end
}

// latencies are counts of durations in buckets a fifth wider each, from 1 µs:
// those of many processes add up exactly.
type latencies map[int]int64

const (
	perOctave = 4
	buckets   = 26 * perOctave // up to about a minute
)

func bucketOf(d time.Duration) int {
	us := max(1, float64(d)/float64(time.Microsecond))
	return min(buckets-1, int(math.Log2(us)*perOctave))
}

// upper is the longest duration in a bucket.
func upper(bucket int) time.Duration {
	return time.Duration(math.Exp2(float64(bucket+1)/perOctave) * float64(time.Microsecond))
}

// quantile returns the duration that a share of all did not exceed; 0 when there
// are none. It is at most a fifth too long.
func (l latencies) quantile(share float64) time.Duration {
	filled := make([]int, 0, len(l))
	var all int64
	for b, n := range l {
		filled = append(filled, b)
		all += n
	}
	sort.Ints(filled)
	rank := int64(math.Ceil(share * float64(all)))
	var seen int64
	for _, b := range filled {
		if seen += l[b]; seen >= rank && seen > 0 {
			return upper(b)
		}
	}
	return 0
}
