// Package ratelimit implements rate limits with the generic cell rate algorithm (GCRA).
//
// It owns the algorithm, its state in Redis and in the process, and the identity of the
// counted subjects. It does not own the limits: each operation passes its Policy. A rate
// limit bounds attempts over time; it is neither a quota nor the purchase limit of a
// sale.
//
// Limiter counts across all processes, in Redis, with a copy in the process, so that a
// flood is refused without a network call. Local counts in this process only and never
// does I/O: the hot path uses it.
package ratelimit

import (
	"time"

	"seckill/internal/fault"
)

// Mode is the behaviour of a policy when Redis does not answer.
type Mode int

// Modes.
const (
	FailClosed Mode = iota // refuse: sign-in, captchas, paths, orders
	FailOpen               // apply the limit in this process only: reads
)

// Policy is the rate limit of one operation: Burst attempts at once, and PerSecond more
// each second. In any interval of d seconds at most Burst + d × PerSecond are allowed.
type Policy struct {
	Name      string // the operation in keys and metrics: "login_ip"
	Burst     int    // at least 1
	PerSecond float64
	Mode      Mode
}

// unlimited reports whether the policy allows everything.
func (p Policy) unlimited() bool { return p.Burst <= 0 || p.PerSecond <= 0 }

// interval returns the time in which one token is refilled, in microseconds.
func (p Policy) interval() int64 { return max(1, int64(1e6/p.PerSecond)) }

// Decision is the result of an attempt.
type Decision struct {
	Allowed    bool
	Limit      int           // capacity of the bucket in tokens; 0 = no limit
	Remaining  int           // tokens left now
	RetryAfter time.Duration // wait before the next attempt; 0 when allowed
	ResetAfter time.Duration // time until the bucket is full
}

// Refusal returns nil if the attempt is allowed, else fault.Throttled with the wait.
func (d Decision) Refusal(path ...string) error {
	if d.Allowed {
		return nil
	}
	return fault.Throttled{RetryAfter: d.RetryAfter, At: path}
}

// decide is GCRA, the leaky bucket as a meter (ITU-T I.371, annex A), in whole
// microseconds, the same as lua/gcra.lua. tat is the theoretical arrival time of the last
// attempt, 0 for none; cost is the number of tokens requested, 0 takes none. It returns
// the arrival time to store.
func (p Policy) decide(tat, now, cost int64) (int64, Decision) {
	interval := p.interval()
	depth := interval * int64(p.Burst)
	tat = min(max(tat, now), now+depth) // beyond it: stored under a stricter limit, which was raised
	next := tat + cost*interval
	if wait := next - depth - now; wait > 0 {
		return tat, p.decision(tat, now, wait)
	}
	return next, p.decision(next, now, 0)
}

// decision describes a bucket with arrival time tat; wait > 0 is a refusal.
func (p Policy) decision(tat, now, wait int64) Decision {
	interval := p.interval()
	room := interval*int64(p.Burst) - (tat - now)
	return Decision{
		Allowed:    wait <= 0,
		Limit:      p.Burst,
		Remaining:  int(max(0, room/interval)),
		RetryAfter: time.Duration(max(0, wait)) * time.Microsecond,
		ResetAfter: time.Duration(tat-now) * time.Microsecond,
	}
}

// free returns the decision for an attempt that is not counted.
func free() Decision { return Decision{Allowed: true} }
