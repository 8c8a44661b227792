package ratelimit

import (
	"net/netip"
	"time"

	"seckill/internal/platform/clock"
)

// Budget counts points that subjects spend, in this process only: each has Policy.Burst of
// them, and PerSecond come back each second. It is a quota of the cost of queries, not a
// limit of attempts in a window. It is safe for concurrent use.
type Budget struct {
	clock    clock.Clock
	subjects *subjects[Subject, int64] // subject → theoretical arrival time, Unix microseconds
}

// NewBudget returns a Budget for about size subjects, 0 = DefaultLocalSize.
func NewBudget(c clock.Clock, size int) *Budget {
	return &Budget{clock: c, subjects: newSubjects[Subject, int64](size)}
}

// Spent is the result of spending points.
type Spent struct {
	Allowed    bool
	Limit      int           // points of a full budget; 0 = no limit
	Remaining  int           // points left now
	RetryAfter time.Duration // wait until enough points are there; 0 when allowed
}

// Spend takes points from the budget of a subject, or none if fewer are left. It is GCRA,
// the leaky bucket as a meter (ITU-T I.371, annex A), in whole microseconds.
func (b *Budget) Spend(p Policy, subject Subject, points int) (s Spent) {
	if p.unlimited() {
		return Spent{Allowed: true}
	}
	now, interval := b.clock.Now().UnixMicro(), max(1, int64(1e6/p.PerSecond))
	depth := interval * int64(p.Burst)
	b.subjects.with(subject, func(tat *int64) {
		*tat = min(max(*tat, now), now+depth) // beyond it: the clock was set back
		next := *tat + int64(points)*interval
		wait := next - depth - now
		if wait <= 0 {
			*tat = next
		}
		s = Spent{
			Allowed: wait <= 0, Limit: p.Burst, Remaining: int(max(0, (depth-(*tat-now))/interval)),
			RetryAfter: time.Duration(max(0, wait)) * time.Microsecond,
		}
	})
	return s
}

// SpendAddr spends points of each network of an address, as Limiter.AllowAddr counts
// attempts. The result is that of the emptiest budget.
func (b *Budget) SpendAddr(p Policy, ip netip.Addr, points int) (tightest Spent) {
	for i, r := range Ranges(ip) {
		s := b.Spend(p.times(r.Factor), r.Subject, points)
		if !s.Allowed {
			return s
		}
		if i == 0 || s.Remaining < tightest.Remaining {
			tightest = s
		}
	}
	return tightest
}
