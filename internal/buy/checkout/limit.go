package checkout

import (
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

// Rate limit of attempts per user in a sale without its own limit, five in five seconds: the
// @rateLimit of placeOrder in the schema.
const (
	TriesAtOnce    = 5
	TriesPerSecond = 1.0
)

// Tries counts attempts per user and sale in this process. It is the coarse limit: the
// script that takes the stock counts the attempts that pass once more, over all
// processes.
type Tries struct {
	local  *ratelimit.Local[try]
	policy ratelimit.Policy // of sales without their own limit
	off    bool
}

type try struct {
	sale id.Sale
	user id.User
}

// NewTries returns an empty counter with the limit of sales without their own; a zero
// policy stands for TriesAtOnce and TriesPerSecond.
func NewTries(c clock.Clock, policy ratelimit.Policy) *Tries {
	if policy.Burst == 0 {
		policy = ratelimit.Policy{Name: "placeOrder", Burst: TriesAtOnce, PerSecond: TriesPerSecond}
	}
	return &Tries{local: ratelimit.NewLocal[try](c, 0), policy: policy}
}

// NoLimit allows every attempt, in this process and in Redis: for drills and tests.
func NoLimit() *Tries { return &Tries{local: ratelimit.NewLocalOff[try](), off: true} }

// take counts an attempt. It returns the limit for the reserve script.
func (t *Tries) take(parent *sale.Sale, user id.User) (reservation.Tries, error) {
	if t.off {
		return reservation.Tries{}, nil
	}
	burst, perSecond := parent.Switches.Limit(t.policy.Burst, t.policy.PerSecond)
	policy := ratelimit.Policy{Name: "placeOrder", Burst: burst, PerSecond: perSecond}
	d := t.local.Allow(policy, try{parent.ID, user})
	return reservation.Tries{Burst: burst, Window: policy.Window()}, d.Refusal()
}
