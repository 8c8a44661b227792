package ratelimit

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/batch"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/redisconn"
	"seckill/internal/platform/telemetry"
)

// TriesLua defines Lua functions that count attempts of many subjects in one call of a script;
// lua/tries.lua documents them.
//
//go:embed lua/tries.lua
var TriesLua string

//go:embed lua/window.lua
var windowLua string

//go:embed lua/allow.lua
var allowSource string

var allow = redis.NewScript(windowLua + allowSource)

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

	shares *shares // of networks, for signed-in users
	notes  *batch.Batcher[note, int64]
}

// bucket identifies one subject under one policy.
type bucket struct {
	policy  string
	subject Subject
}

// New returns a Limiter.
func New(cfg Config) *Limiter {
	tries := telemetry.For(cfg.Registerer, "ratelimit").
		Counters("tries_total", "Attempts counted against a rate limit. Label policy: its name. "+
			"Label outcome: passed, refused, refused_locally (without asking Redis), fault (Redis did not answer).", "policy",
			"outcome")
	l := &Limiter{cfg: cfg, tries: tries, local: NewLocal[bucket](cfg.Clock, cfg.Size), shares: newShares()}
	l.notes = newNotes(l.sendNotes)
	return l
}

func (l *Limiter) count(policy string, o Outcome) { l.tries.WithLabelValues(policy, string(o)).Inc() }

// Allow counts one attempt of a subject, if it is allowed. The error is a fault
// UNAVAILABLE: Redis did not answer, and the policy fails closed.
func (l *Limiter) Allow(ctx context.Context, p Policy, subject Subject) (Decision, error) {
	if l.cfg.Off || p.unlimited() {
		return decision(0), nil
	}
	b, now := bucket{p.Name, subject}, l.local.now()
	// The process has counted the attempts that Redis allowed, and those in transit, so
	// Redis would refuse whatever it refuses.
	if d := l.local.take(p, b, now); !d.Allowed {
		l.count(p.Name, RefusedHere)
		return d, nil
	}
	wait, err := l.ask(ctx, p, b)
	if err != nil {
		return l.uncounted(p, b, now, err)
	}
	if wait > 0 {
		l.local.giveBack(b, now)
		l.local.refuse(p, b, l.local.now()+wait)
		l.count(p.Name, RefusedThere)
		return decision(wait), nil
	}
	l.count(p.Name, Passed)
	return decision(0), nil
}

// AllowAddr counts one attempt of each network that contains the address, the smallest
// first: for IPv6 the /64, and wider ones with multiples of the limit. It
// stops at the first network that refuses; what the smaller ones have counted stays.
func (l *Limiter) AllowAddr(ctx context.Context, p Policy, ip netip.Addr) (d Decision, err error) {
	for _, r := range Ranges(ip) {
		if d, err = l.Allow(ctx, p.times(r.Factor), r.Subject); err != nil || !d.Allowed {
			return d, err
		}
	}
	return d, nil
}

func (l *Limiter) ask(ctx context.Context, p Policy, b bucket) (wait int64, err error) {
	return allow.Run(ctx, l.cfg.Client, l.keys(b), p.Burst, p.window()).Int64()
}

// keys returns the keys of lua/allow.lua.
func (l *Limiter) keys(b bucket) []string {
	return []string{l.cfg.Prefix + "window:" + b.policy + ":" + string(b.subject)}
}

// uncounted decides when Redis did not answer. Under FailOpen the attempt stays counted in
// this process: its limit is the limit now.
func (l *Limiter) uncounted(p Policy, b bucket, at int64, cause error) (Decision, error) {
	l.count(p.Name, Faulted)
	if p.Mode == FailOpen {
		return decision(0), nil
	}
	l.local.giveBack(b, at)
	return Decision{}, &fault.Error{
		Code: fault.Unavailable, Message: "tries cannot be counted now; try again shortly",
		RetryAfter: time.Second, Err: fmt.Errorf("rate limit %s: %w", p.Name, cause),
	}
}

const (
	maxNotes        = 256  // of one pipeline, about 2 ms of Redis
	maxNotesWaiting = 4096 // more are dropped: their attempts count in this process only
	noteTimeout     = 2 * time.Second
)

// note is attempts that a process allowed and Redis does not know.
type note struct {
	policy   Policy
	bucket   bucket
	attempts int
}

func newNotes(send func(context.Context, []note) []batch.Result[int64]) *batch.Batcher[note, int64] {
	return batch.New(batch.Config[note, int64]{
		Process: send, MaxBatch: maxNotes, MaxInFlight: 1, MaxWaiting: maxNotesWaiting, Timeout: noteTimeout,
	})
}

// AllowLater is Allow for what a crowd calls: it never waits for Redis. A process decides by
// its own count, and by what Redis refused before. Redis counts a subject from the second
// attempt of a window in one process, in batches after the answer, and its refusal counts from
// then on. So a client that spreads over n processes has n attempts more, and while a reply is
// awaited the limit in each; buyers who call once cost Redis nothing.
func (l *Limiter) AllowLater(p Policy, subject Subject) Decision {
	if l.cfg.Off || p.unlimited() {
		return decision(0)
	}
	b := bucket{p.Name, subject}
	d, unsent := l.local.takeUnsent(p, b, l.local.now())
	if !d.Allowed {
		l.count(p.Name, RefusedHere)
		return d
	}
	if unsent > 0 {
		go l.sent(note{p, b, unsent})
	}
	l.count(p.Name, Passed)
	return d
}

// sent sends a note in a batch, and refuses what Redis refuses. Without a reply the process
// counts alone.
func (l *Limiter) sent(n note) {
	wait, err := l.notes.Do(context.Background(), n)
	switch {
	case err != nil:
		l.count(n.policy.Name, Faulted)
	case wait > 0:
		l.local.refuse(n.policy, n.bucket, l.local.now()+wait)
	}
}

// sendNotes counts attempts in Redis, and returns the wait of the last one of each note.
func (l *Limiter) sendNotes(ctx context.Context, notes []note) []batch.Result[int64] {
	var runs []redisconn.Run
	for _, n := range notes {
		run := redisconn.Run{Keys: l.keys(n.bucket), Args: []any{n.policy.Burst, n.policy.window()}}
		runs = append(runs, slices.Repeat([]redisconn.Run{run}, n.attempts)...)
	}
	replies := redisconn.RunEach(ctx, l.cfg.Client, allow, runs)
	results := make([]batch.Result[int64], len(notes))
	for i, n := range notes {
		results[i].Value, results[i].Err = replies[n.attempts-1].Int64()
		replies = replies[n.attempts:]
	}
	return results
}
