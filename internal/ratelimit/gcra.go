// Package ratelimit says who may go on and who must wait, and until when.
//
// It owns the generic cell rate algorithm (GCRA), its state in Redis and in the
// process, and the identity of who is counted. It does not own the limits
// themselves: each operation brings its Policy. A rate limit bounds tries over
// time; it is neither a quota nor the purchase limit of a sale.
//
// Limiter counts across all processes, in Redis, with this process's own view in
// front, so that a flood is refused without a round trip. Local counts in this
// process only and never does I/O: it is what the hot path uses.
package ratelimit

import (
	"time"

	"seckill/internal/fault"
)

// Mode says what a policy does when nobody can count.
type Mode int

// Modes.
const (
	FailClosed Mode = iota // refuse: logging in, captchas, paths, orders
	FailOpen               // let through what this process alone would let through: reads
)

// Policy is the limit of one operation: Burst tries at once, and PerSecond more
// each second. Over any span of d seconds at most Burst + d × PerSecond pass.
type Policy struct {
	Name      string // names the operation in keys and metrics: "login_ip"
	Burst     int    // at least 1
	PerSecond float64
	Mode      Mode
}

// unlimited says whether the policy lets everything through.
func (p Policy) unlimited() bool { return p.Burst <= 0 || p.PerSecond <= 0 }

// interval is the time that one token takes to come back, in microseconds.
func (p Policy) interval() int64 { return max(1, int64(1e6/p.PerSecond)) }

// Decision is the answer to a try.
type Decision struct {
	Allowed    bool
	Limit      int           // most tokens that the bucket holds; 0 = no limit
	Remaining  int           // tokens left now
	RetryAfter time.Duration // how long to wait before trying again; 0 when allowed
	ResetAfter time.Duration // how long until the bucket is full
}

// Refusal returns nil when the try is allowed, else what to tell the caller.
func (d Decision) Refusal(path ...string) fault.Refusal {
	if d.Allowed {
		return nil
	}
	return fault.Throttled{RetryAfter: d.RetryAfter, At: path}
}

// decide is GCRA, the leaky bucket as a meter (ITU-T I.371, annex A), in whole
// microseconds, as lua/gcra.lua does it. tat is the theoretical arrival time of
// the last try, 0 for none; cost is how many tokens are asked for, 0 only looks.
// It returns the arrival time to keep.
func (p Policy) decide(tat, now, cost int64) (int64, Decision) {
	interval := p.interval()
	depth := interval * int64(p.Burst)
	tat = min(max(tat, now), now+depth) // past it: of a stricter limit, that was loosened
	next := tat + cost*interval
	if wait := next - depth - now; wait > 0 {
		return tat, p.decision(tat, now, wait)
	}
	return next, p.decision(next, now, 0)
}

// decision describes a bucket whose arrival time is tat; wait > 0 is a refusal.
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

// free is the decision where nothing is counted.
func free() Decision { return Decision{Allowed: true} }
