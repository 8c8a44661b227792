// Package salestats owns the figures of a sale: requests, their results, rates, and the
// course by the second.
//
// Each process counts in memory and adds its counts to Redis a few times a second
// (Recorder). A batch is counted once even if a reply is lost, so that the figures of any
// number of processes are exact, without a cost per order. A Reader combines them with
// the gate, the stream and Postgres into one Stats; a Feed is the log of a sale that
// operators follow.
//
// The package only reads units, orders and money; metrics of the processes belong to
// package telemetry.
package salestats

import (
	"math"
	"sort"
	"time"

	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

const (
	// stretch is how many seconds share one hash.
	stretch = 300
	// Window is the length of the series of a Stats in seconds: one point per second.
	Window = 300
	// recentParts is the length of Stats.Recent, and recentPart that of a part in seconds.
	recentParts = 30
	recentPart  = 30
	// countersLife and seriesLife are how long figures remain in Redis after the last
	// count; permanent figures are stored in Postgres when the sale is settled
	// (Reader.Keep).
	countersLife = 7 * 24 * time.Hour
	seriesLife   = 48 * time.Hour
	// startOfCounting is how long after the opening the first count of a sale may come,
	// although none is missing.
	startOfCounting = 5 * time.Second
)

// Stats are the present figures of a sale.
type Stats struct {
	Sale id.Sale
	At   time.Time

	// CountedSince is when counting of the figures up to P99 began: after the loss of
	// Redis, later than the opening. Zero = unknown.
	CountedSince time.Time

	Captchas int64 // challenges issued
	Paths    int64 // path tokens issued
	Requests int64 // calls of placeOrder
	Accepted int64 // calls that took units
	Replayed int64 // calls answered with the task of an earlier call
	Faulted  int64 // calls that ended in an error: overload, a failed service
	Refused  []Rejection
	Gate     []Gate        // the calls of every stage, placeOrder included
	P50, P99 time.Duration // latency of placeOrder

	RequestsPerSecond float64 // in the last whole second
	OrdersPerSecond   float64

	QueueDepth int           // messages waiting for a worker in the sale's stream
	QueueAge   time.Duration // of the oldest of them

	Orders    int // written
	Paid      int // orders that are paid now
	Unpaid    int // orders that wait for payment now
	Expired   int // orders not paid in time
	Cancelled int // by the buyer or an operator
	Refunded  int // including refunds in progress
	Failed    int // tasks that ended without an order

	Units   Units
	Items   []ItemFigures // in the order of the sale
	Waiting int           // buyers on the waitlists
	GMV     money.Amount  // total of paid orders, without refunded units
	// total that came in and did not go back: paid orders, and those whose refund is not done, without refunded units
	Net       money.Amount
	RefundSum money.Amount // total that went back

	Series []Point // the last five minutes, oldest first
	Recent []int   // orders written in each part of the last 15 minutes, oldest first
}

// CountedLate returns CountedSince if counting began later than the opening of the sale,
// else nil: earlier requests are missing from the figures.
func (s *Stats) CountedLate(opening time.Time) *time.Time {
	if s.CountedSince.Before(opening.Add(startOfCounting)) {
		return nil
	}
	since := s.CountedSince
	return &since
}

// Units are the figures of a sale's units. Remaining and Total are those of the gate if
// there is one; Held and Sold are those of Postgres.
type Units struct {
	Total     int
	Remaining int // available
	Held      int // in unpaid orders
	Sold      int // in paid orders
	Offered   int // reserved for offers of the waitlist; 0 without a gate
	InFlight  int // taken at the gate, and neither on offer nor yet, or no longer, in an order
	Loaded    bool
	// Conserved reports that the figures of each store add up and that both have the same
	// total: stock + reserved = total, available + held + sold = total.
	Conserved bool
}

// Pending returns the units that are taken and not paid, Held + Offered + InFlight: Total
// is always Remaining + Pending + Sold.
func (u Units) Pending() int { return u.Total - u.Remaining - u.Sold }

// ItemFigures are the units of one item in Postgres, and its waitlist.
type ItemFigures struct {
	Item    id.Item
	Total   int
	Held    int // in unpaid orders
	Sold    int // in paid orders
	Offered int // reserved for offers of the waitlist
	Waiting int // buyers on the waitlist
}

// Rejection is the count of one refusal reason.
type Rejection struct {
	Reason fault.Reason `json:"reason"`
	Count  int64        `json:"count"`
}

// Point holds the figures of one second of a sale.
type Point struct {
	At        time.Time
	Requests  int
	Accepted  int
	Orders    int
	Remaining int // units left at its end
}

// latencies are counts of durations in buckets from 1 µs, each a fifth wider than the
// last: those of many processes can be added exactly.
type latencies map[int]int64

const (
	perOctave = 4
	buckets   = 26 * perOctave // up to about a minute
)

func bucketOf(d time.Duration) int {
	us := max(1, float64(d)/float64(time.Microsecond))
	return min(buckets-1, int(math.Log2(us)*perOctave))
}

// upper returns the longest duration in a bucket.
func upper(bucket int) time.Duration {
	return time.Duration(math.Exp2(float64(bucket+1)/perOctave) * float64(time.Microsecond))
}

// quantile returns the duration that the given share did not exceed; 0 without counts. It
// is at most a fifth too long.
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
