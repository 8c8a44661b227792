package ratelimit

import (
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seckill/internal/platform/clock"
)

const (
	localShards = 16 // locks; more than the cores of one process
	// DefaultLocalSize is the maximum number of subjects in a Local, about 250 bytes
	// each, and 16 for each attempt of a limit above 4.
	DefaultLocalSize = 1 << 17
)

// Local counts the attempts of one operation in this process only. When full, it evicts
// the least recently used subject. It is safe for concurrent use, does no I/O and
// allocates only for a new subject, and until it has the attempts of one window.
type Local[K comparable] struct {
	clock    clock.Clock
	off      bool
	subjects *subjects[K, history]
}

// NewLocal returns a Local for about size subjects, 0 = DefaultLocalSize.
func NewLocal[K comparable](c clock.Clock, size int) *Local[K] {
	return &Local[K]{clock: c, subjects: newSubjects[K, history](size)}
}

// NewLocalOff returns a Local that allows everything: for drills and tests.
func NewLocalOff[K comparable]() *Local[K] { return &Local[K]{off: true} }

// Allow counts one attempt of a subject, if it is allowed.
func (l *Local[K]) Allow(p Policy, subject K) Decision {
	if l.off || p.unlimited() {
		return decision(0)
	}
	return l.take(p, subject, l.now())
}

func (l *Local[K]) now() int64 { return l.clock.Now().UnixMicro() }

func (l *Local[K]) take(p Policy, subject K, now int64) (d Decision) {
	l.subjects.with(subject, func(h *history) {
		wait := h.wait(p.limit(), now)
		if wait == 0 {
			h.take(p.limit(), now)
		}
		d = decision(wait)
	})
	return d
}

// takeUnsent is take, and returns the attempts of the window that have to be sent to Redis: all
// that were not, unless this one is the first.
func (l *Local[K]) takeUnsent(p Policy, subject K, now int64) (d Decision, unsent int) {
	l.subjects.with(subject, func(h *history) {
		wait := h.wait(p.limit(), now)
		if wait == 0 {
			h.take(p.limit(), now)
			unsent = h.send(p.limit(), now)
		}
		d = decision(wait)
	})
	return d, unsent
}

// giveBack reverts a take at a time.
func (l *Local[K]) giveBack(subject K, at int64) {
	l.subjects.with(subject, func(h *history) { h.giveBack(at) })
}

// refuse refuses attempts until a time, as Redis does.
func (l *Local[K]) refuse(p Policy, subject K, until int64) {
	l.subjects.with(subject, func(h *history) { h.refused, h.until = p.limit(), until })
}

// subjects holds a state for each of a bounded number of subjects.
type subjects[K comparable, S any] struct {
	seed   maphash.Seed
	shards [localShards]subjectShard[K, S]
}

type subjectShard[K comparable, S any] struct {
	mu     sync.Mutex
	states *simplelru.LRU[K, *S] // guarded by mu
}

func newSubjects[K comparable, S any](size int) *subjects[K, S] {
	if size <= 0 {
		size = DefaultLocalSize
	}
	s := &subjects[K, S]{seed: maphash.MakeSeed()}
	for i := range s.shards {
		states, err := simplelru.NewLRU[K, *S]((size+localShards-1)/localShards, nil)
		if err != nil {
			panic(err) // only for a size below 1
		}
		s.shards[i].states = states
	}
	return s
}

// with calls change with the state of a subject, zero for a new one.
func (s *subjects[K, S]) with(subject K, change func(*S)) {
	shard := &s.shards[maphash.Comparable(s.seed, subject)%localShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	state, ok := shard.states.Get(subject)
	if !ok {
		state = new(S)
		shard.states.Add(subject, state)
	}
	change(state)
}

// history is the attempts of a subject that were allowed, and what Redis has refused. The
// times are Unix microseconds.
type history struct {
	at []int64 // of the newest attempts, oldest first: those that the limit needs, and as many again

	refused policyWindow // Redis has refused attempts under this limit
	until   int64        // up to this time

	unsent int // newest attempts that Redis has to count later
}

// policyWindow is the limit of a policy.
type policyWindow struct {
	most   int
	window int64
}

func (p Policy) limit() policyWindow { return policyWindow{p.Burst, p.window()} }

// wait returns how long an attempt has to wait, 0 = it is allowed. It is what
// lua/window.lua answers for the same history.
func (h *history) wait(p policyWindow, now int64) (wait int64) {
	if h.refused == p && h.until > now && h.until <= now+p.window {
		wait = h.until - now
	}
	if len(h.at) < p.most {
		return wait
	}
	oldest := h.at[len(h.at)-p.most]
	if oldest > now+p.window { // the clock was set back
		h.at = h.at[:0]
		return wait
	}
	return max(wait, min(p.window, oldest+p.window-now))
}

// take records an attempt that is allowed.
func (h *history) take(p policyWindow, now int64) {
	if len(h.at) >= 2*p.most {
		h.at = h.at[:copy(h.at, h.at[len(h.at)-p.most:])]
	}
	h.at = append(h.at, now)
}

// send counts the attempt just taken among the unsent, and returns and clears their number; 0 while
// it is the only one of the window.
func (h *history) send(p policyWindow, now int64) (unsent int) {
	if n := len(h.at); n == 1 || h.at[n-2] <= now-p.window {
		h.unsent = 1
		return 0
	}
	unsent, h.unsent = h.unsent+1, 0
	return unsent
}

// giveBack removes an attempt.
func (h *history) giveBack(at int64) {
	for i := len(h.at) - 1; i >= 0; i-- {
		if h.at[i] == at {
			h.at = append(h.at[:i], h.at[i+1:]...)
			return
		}
	}
}
