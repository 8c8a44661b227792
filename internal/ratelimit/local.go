package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seckill/internal/clock"
)

const (
	localShards = 16 // locks; more than the cores of one process
	// DefaultLocalSize is the maximum number of subjects in a Local, about 150 bytes
	// each.
	DefaultLocalSize = 1 << 17
)

// Local counts the attempts of one operation in this process only. When full, it evicts
// the least recently used subject. It is safe for concurrent use, does no I/O and
// allocates only for a new subject.
type Local[K comparable] struct {
	clock  clock.Clock
	seed   maphash.Seed
	off    bool
	shards [localShards]localShard[K]
}

type localShard[K comparable] struct {
	mu   sync.Mutex
	tats *simplelru.LRU[K, int64] // guarded by mu; subject → theoretical arrival time, Unix microseconds
}

// NewLocal returns a Local for about size subjects, 0 = DefaultLocalSize.
func NewLocal[K comparable](c clock.Clock, size int) *Local[K] {
	if size <= 0 {
		size = DefaultLocalSize
	}
	l := &Local[K]{clock: c, seed: maphash.MakeSeed()}
	for i := range l.shards {
		tats, err := simplelru.NewLRU[K, int64]((size+localShards-1)/localShards, nil)
		if err != nil {
			panic(err) // only for a size below 1
		}
		l.shards[i].tats = tats
	}
	return l
}

// NewLocalOff returns a Local that allows everything: for drills and tests.
func NewLocalOff[K comparable]() *Local[K] { return &Local[K]{off: true} }

// Allow takes one token from the subject's bucket.
func (l *Local[K]) Allow(p Policy, subject K) Decision {
	if l.off || p.unlimited() {
		return free()
	}
	return l.take(p, subject, l.now(), 1)
}

// AllowN takes several tokens, or none if fewer are available.
func (l *Local[K]) AllowN(p Policy, subject K, tokens int) Decision {
	if l.off || p.unlimited() {
		return free()
	}
	return l.take(p, subject, l.now(), int64(tokens))
}

// AllowAddr is Limiter.AllowAddr with several tokens, counted in this process only.
func AllowAddr(l *Local[Subject], p Policy, ip netip.Addr, tokens int) Decision {
	var tightest Decision
	for i, r := range Ranges(ip) {
		d := l.AllowN(p.times(r.Factor), r.Subject, tokens)
		if !d.Allowed {
			return d
		}
		if i == 0 || d.Remaining < tightest.Remaining {
			tightest = d
		}
	}
	return tightest
}

func (l *Local[K]) now() int64 { return l.clock.Now().UnixMicro() }

func (l *Local[K]) take(p Policy, subject K, now, cost int64) Decision {
	s := l.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	tat, _ := s.tats.Get(subject)
	next, d := p.decide(tat, now, cost)
	s.tats.Add(subject, next)
	return d
}

// giveBack reverts a take.
func (l *Local[K]) giveBack(p Policy, subject K, cost int64) {
	s := l.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if tat, ok := s.tats.Get(subject); ok {
		s.tats.Add(subject, tat-cost*p.interval())
	}
}

// raise stores an arrival time that is later than the local one.
func (l *Local[K]) raise(subject K, tat int64) {
	s := l.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if own, _ := s.tats.Get(subject); tat > own {
		s.tats.Add(subject, tat)
	}
}

func (l *Local[K]) shard(subject K) *localShard[K] {
	return &l.shards[maphash.Comparable(l.seed, subject)%localShards]
}
