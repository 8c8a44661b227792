package ratelimit

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"

	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/telemetry"
)

//go:embed lua/gcra.lua
var gcraSource string

var gcra = redis.NewScript(gcraSource)

// Outcome is the outcome of an attempt, for metrics.
type Outcome string

// Outcomes.
const (
	Passed       Outcome = "passed"
	RefusedHere  Outcome = "refused_locally" // without a call to Redis
	RefusedThere Outcome = "refused"
	Faulted      Outcome = "fault" // Redis did not answer
)

// Config configures a Limiter.
type Config struct {
	Client redis.UniversalClient // without retries: an attempt executed twice counts twice
	Prefix string                // of every key, for example "sk:"
	Clock  clock.Clock
	Size   int  // subjects stored in the process; 0 = DefaultLocalSize
	Off    bool // allow everything: for drills and tests
	// Registerer registers the metrics; nil = they are not exported.
	Registerer prometheus.Registerer
}

// Limiter counts attempts across all processes. It is safe for concurrent use.
type Limiter struct {
	cfg   Config
	tries *prometheus.CounterVec // by policy and outcome
	local *Local[bucket]
}

// bucket identifies one subject under one policy.
type bucket struct {
	policy  string
	subject Subject
}

// New returns a Limiter.
func New(cfg Config) *Limiter {
	tries := promauto.With(cfg.Registerer).NewCounterVec(prometheus.CounterOpts{
		Namespace: telemetry.Namespace, Subsystem: "ratelimit", Name: "tries_total",
		Help: "Attempts counted against a rate limit. Label policy: its name. " +
			"Label outcome: passed, refused, refused_locally (without asking Redis), fault (Redis did not answer).",
	}, []string{"policy", "outcome"})
	return &Limiter{cfg: cfg, tries: tries, local: NewLocal[bucket](cfg.Clock, cfg.Size)}
}

func (l *Limiter) count(policy string, o Outcome) { l.tries.WithLabelValues(policy, string(o)).Inc() }

// Allow takes one token from a subject's bucket. The error is a fault UNAVAILABLE: Redis
// did not answer, and the policy fails closed.
func (l *Limiter) Allow(ctx context.Context, p Policy, subject Subject) (Decision, error) {
	return l.AllowN(ctx, p, subject, 1)
}

// AllowN takes several tokens, or none if fewer are available; with 0 it returns the
// state of the bucket and takes nothing.
func (l *Limiter) AllowN(ctx context.Context, p Policy, subject Subject, tokens int) (Decision, error) {
	if l.cfg.Off || p.unlimited() {
		return free(), nil
	}
	b, cost := bucket{p.Name, subject}, int64(tokens)
	// The local state is ahead of Redis only by attempts in transit, so Redis would
	// refuse whatever it refuses.
	if d := l.local.take(p, b, l.local.now(), cost); !d.Allowed {
		l.count(p.Name, RefusedHere)
		return d, nil
	}
	wait, ahead, err := l.ask(ctx, p, b, cost)
	if err != nil {
		return l.uncounted(p, b, cost, err)
	}
	now := l.local.now()
	d := p.decision(now+ahead, now, wait)
	if !d.Allowed {
		l.local.giveBack(p, b, cost)
	}
	l.local.raise(b, now+ahead)
	if d.Allowed {
		l.count(p.Name, Passed)
	} else {
		l.count(p.Name, RefusedThere)
	}
	return d, nil
}

// AllowAddr takes one token from each network that contains the address, the smallest
// first: for IPv6 the /64, and the /56 and /48 with two and three times the limit. It
// stops at the first network that refuses; tokens taken before are not returned. The
// decision is that of the fullest bucket.
func (l *Limiter) AllowAddr(ctx context.Context, p Policy, ip netip.Addr) (Decision, error) {
	var tightest Decision
	for i, r := range Ranges(ip) {
		d, err := l.Allow(ctx, p.times(r.Factor), r.Subject)
		if err != nil || !d.Allowed {
			return d, err
		}
		if i == 0 || d.Remaining < tightest.Remaining {
			tightest = d
		}
	}
	return tightest, nil
}

func (l *Limiter) ask(ctx context.Context, p Policy, b bucket, cost int64) (wait, ahead int64, err error) {
	key := l.cfg.Prefix + "rate:" + b.policy + ":" + string(b.subject)
	reply, err := gcra.Run(ctx, l.cfg.Client, []string{key}, p.interval(), p.Burst, cost).Int64Slice()
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 2 {
		return 0, 0, fmt.Errorf("rate limit script replied %d values", len(reply))
	}
	return reply[0], reply[1], nil
}

// uncounted decides when Redis did not answer. Under FailOpen the token taken from the
// local bucket is not returned: that bucket is the limit now.
func (l *Limiter) uncounted(p Policy, b bucket, cost int64, cause error) (Decision, error) {
	l.count(p.Name, Faulted)
	if p.Mode == FailOpen {
		now := l.local.now()
		return l.local.take(p, b, now, 0), nil
	}
	l.local.giveBack(p, b, cost)
	return Decision{}, &fault.Error{
		Code: fault.Unavailable, Message: "tries cannot be counted now; try again shortly",
		RetryAfter: time.Second, Err: fmt.Errorf("rate limit %s: %w", p.Name, cause),
	}
}
