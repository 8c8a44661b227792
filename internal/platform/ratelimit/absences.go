package ratelimit

import (
	"context"
	"time"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
)

// Limits of ids that nothing has, as one process grants them: well above what a page with
// dead links or a client that polls for an order before it is written asks for. Many
// visitors share an address.
var (
	userAbsences    = Policy{Name: "absent", Burst: 60, PerSecond: 2}
	addressAbsences = Policy{Name: "absent", Burst: 120, PerSecond: 4}
)

// Caller is the sender of a look-up: a user, or the networks of an address.
type Caller struct {
	User   Subject // "" = not signed in
	Ranges []Range // of the address; none = the look-up is limited by nothing
}

// Absences bounds the look-ups of ids that nothing has. Each of them costs a statement,
// and no copy can know them all: every id is a new one. So a caller has a budget of them,
// in this process only, and is refused without a statement once it is spent. Look-ups that
// find something cost nothing, and signed-in users have budgets of their own, so that
// users of one address do not spend each other's. Calls that run at once may exceed it
// by their number. A nil Absences limits nothing. It is safe for concurrent use.
type Absences struct {
	budget *Budget
	caller func(ctx context.Context) Caller
}

// NewAbsences returns Absences for callers that the function finds in a context.
func NewAbsences(c clock.Clock, caller func(ctx context.Context) Caller) *Absences {
	return &Absences{budget: NewBudget(c, 0), caller: caller}
}

// Find reads an object by its id; nil = nothing has it. It returns RATE_LIMITED instead
// of reading while the caller has looked up too many ids that nothing has.
func Find[T any](ctx context.Context, a *Absences, read func(ctx context.Context) (*T, error)) (*T, error) {
	if left := a.spend(ctx, 0); left.Limit > 0 && left.Remaining == 0 {
		return nil, &fault.Error{
			Code: fault.RateLimited, Message: "Too many requests for what does not exist. Please wait a moment.",
			RetryAfter: left.RetryAfter,
		}
	}
	found, err := read(ctx)
	if found == nil && (err == nil || fault.CodeOf(err) == fault.NotFound) {
		a.spend(ctx, 1)
	}
	return found, err
}

// spend takes points of the caller, and returns the emptiest budget; RetryAfter is the
// wait for one point.
func (a *Absences) spend(ctx context.Context, points int) (tightest Spent) {
	if a == nil {
		return Spent{}
	}
	c := a.caller(ctx)
	policy, ranges := addressAbsences, c.Ranges
	if c.User != "" {
		policy, ranges = userAbsences, []Range{{c.User, 1}}
	}
	for i, r := range ranges {
		s := a.budget.Spend(policy.times(r.Factor), r.Subject, points)
		if i == 0 || s.Remaining < tightest.Remaining {
			tightest = s
		}
	}
	tightest.RetryAfter = time.Duration(float64(time.Second) / policy.PerSecond)
	return tightest
}
