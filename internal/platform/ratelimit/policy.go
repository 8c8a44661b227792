package ratelimit

import (
	"time"

	"seckill/internal/platform/fault"
)

// Mode is the behaviour of a policy when Redis does not answer.
type Mode int

// Modes.
const (
	FailClosed Mode = iota // refuse: sign-in, captchas, paths, orders
	FailOpen               // apply the limit in this process only: reads
)

// Policy is the rate limit of one operation: at most Burst attempts in any window of
// Burst / PerSecond seconds. All of them may come at once.
type Policy struct {
	Name      string // the operation in keys and metrics: "login_ip"
	Burst     int    // at least 1
	PerSecond float64
	Mode      Mode
}

// unlimited reports whether the policy allows everything.
func (p Policy) unlimited() bool { return p.Burst <= 0 || p.PerSecond <= 0 }

// Window returns the length of the window.
func (p Policy) Window() time.Duration { return time.Duration(p.window()) * time.Microsecond }

// window returns the length of the window in microseconds.
func (p Policy) window() int64 { return max(1, int64(float64(p.Burst)*1e6/p.PerSecond)) }

// Decision is the result of an attempt.
type Decision struct {
	Allowed    bool
	RetryAfter time.Duration // wait before the next attempt; 0 when allowed
}

// Refusal returns nil if the attempt is allowed, else fault.Throttled with the wait.
func (d Decision) Refusal(path ...string) error {
	if d.Allowed {
		return nil
	}
	return fault.Throttled{RetryAfter: d.RetryAfter, At: path}
}

// decision returns the decision of a wait in microseconds; 0 = allowed.
func decision(wait int64) Decision {
	return Decision{Allowed: wait <= 0, RetryAfter: time.Duration(max(0, wait)) * time.Microsecond}
}
