package app

import (
	"context"

	"seckill/graph/guard"
	"seckill/internal/auth"
	"seckill/internal/fault"
	"seckill/internal/ratelimit"
	"seckill/internal/server"
)

// Points that callers may spend on operations in one process, by @cost and
// @listSize. An address may be a whole office, and browsing costs it nothing but
// memory, so it has more than one signed-in person.
var (
	userBudget    = ratelimit.Policy{Name: "cost", Burst: 20_000, PerSecond: 2_000}
	addressBudget = ratelimit.Policy{Name: "cost", Burst: 100_000, PerSecond: 20_000}
)

// spend takes the cost of operations from their callers' budgets, without a round
// trip. It returns nil when limits are off.
func (a *App) spend() func(ctx context.Context, cost int64) (guard.Budget, error) {
	if !a.cfg.LimitsOn() {
		return nil
	}
	spent := ratelimit.NewLocal[ratelimit.Subject](a.clock, 0)
	return func(ctx context.Context, cost int64) (guard.Budget, error) {
		policy := addressBudget
		var d ratelimit.Decision
		if p := auth.PrincipalFrom(ctx); p != nil {
			policy = userBudget
			d = spent.AllowN(policy, ratelimit.User(p.UserID), int(cost))
		} else {
			d = ratelimit.AllowAddr(spent, policy, server.ClientAddr(ctx), int(cost))
		}
		if !d.Allowed {
			return guard.Budget{}, &fault.Error{
				Code: fault.RateLimited, Message: "Your request budget is spent for now.", RetryAfter: d.RetryAfter,
			}
		}
		return guard.Budget{Burst: int64(d.Limit), Remaining: int64(d.Remaining), RestoreRate: policy.PerSecond}, nil
	}
}
