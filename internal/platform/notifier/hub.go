package notifier

import (
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/platform/telemetry"
)

// Limits of a hub.
const (
	shards        = 64     // number of locks; followers of different keys rarely share one
	defaultPerKey = 50_000 // followers of one key, for example of one sale
	defaultTotal  = 200_000
	defaultReread = 5 * time.Second
)

// ErrFull means that a hub has its maximum number of followers.
var ErrFull = errors.New("too many followers")

// Event reports a new state of a key. Revisions of a key start at 1 and grow with every
// change.
type Event struct {
	Key      string
	Revision int64
	Terminal bool // no later state follows
	// Value is the new state, so that followers need not load it: a value of the
	// follower's type, or its JSON as json.RawMessage. Nil means: load it. It is shared
	// by all followers and must not be changed.
	Value any
	// Trace is the traceparent of the change, so that its push is in the same trace; "" =
	// none.
	Trace string
}

// Hub holds the followers in this process. It is safe for concurrent use.
type Hub struct {
	opts   Options
	seed   maphash.Seed
	shards [shards]shard
	total  atomic.Int64
}

// Options are the limits of a hub. Zero means the default.
type Options struct {
	PerKey int           // followers of one key [50,000]
	Total  int           // followers of all keys [200,000]
	Reread time.Duration // maximum interval between loads of a follower [5 s]

	Log *slog.Logger // nil = failed loads after the first one, which are retried, are not logged
	// Registerer registers the metrics; nil = metrics are not exported.
	Registerer prometheus.Registerer
}

type shard struct {
	mu   sync.RWMutex
	keys map[string][]*Subscription // guarded by mu
}

// NewHub returns a hub without followers.
func NewHub(opts Options) *Hub {
	if opts.PerKey <= 0 {
		opts.PerKey = defaultPerKey
	}
	if opts.Total <= 0 {
		opts.Total = defaultTotal
	}
	if opts.Reread <= 0 {
		opts.Reread = defaultReread
	}
	h := &Hub{opts: opts, seed: maphash.MakeSeed()}
	for i := range h.shards {
		h.shards[i].keys = map[string][]*Subscription{}
	}
	telemetry.For(opts.Registerer, "notifier").GaugeOf("followers", "Subscriptions that wait for events of this process.",
		func() float64 { return float64(h.Followers()) })
	return h
}

// Followers returns the number of open subscriptions.
func (h *Hub) Followers() int { return int(h.total.Load()) }

// Publish sends an event to all followers of its key. It never blocks: each follower
// has one slot, which holds the highest revision.
func (h *Hub) Publish(e Event) {
	s := h.shard(e.Key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, sub := range s.keys[e.Key] {
		sub.offer(e)
	}
}

// Followed reports whether a key has a follower.
func (h *Hub) Followed(key string) bool {
	s := h.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.keys[key]) > 0
}

// Subscribe follows a key from now on. The caller must close the subscription. The
// error is ErrFull.
func (h *Hub) Subscribe(key string) (*Subscription, error) {
	if h.total.Add(1) > int64(h.opts.Total) {
		h.total.Add(-1)
		return nil, ErrFull
	}
	s := h.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys[key]) >= h.opts.PerKey {
		h.total.Add(-1)
		return nil, ErrFull
	}
	sub := &Subscription{hub: h, key: key, ready: make(chan struct{}, 1), place: len(s.keys[key])}
	s.keys[key] = append(s.keys[key], sub)
	return sub, nil
}

func (h *Hub) shard(key string) *shard {
	return &h.shards[maphash.String(h.seed, key)%shards]
}

// Subscription is one follower of one key, with a slot for the latest event.
type Subscription struct {
	hub   *Hub
	key   string
	ready chan struct{} // has a token when the slot may be filled
	once  sync.Once
	place int // index among the followers of the key; guarded by the mu of its shard

	mu     sync.Mutex
	latest Event // guarded by mu
	filled bool  // guarded by mu
}

// Ready receives a token when the slot may be filled.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take empties the slot and reports whether it was filled.
func (s *Subscription) Take() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, filled := s.latest, s.filled
	s.latest, s.filled = Event{}, false
	return e, filled
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.once.Do(func() {
		shard := s.hub.shard(s.key)
		shard.mu.Lock()
		defer shard.mu.Unlock()
		all := shard.keys[s.key]
		last := len(all) - 1
		all[s.place] = all[last] // the last one moves here: constant time
		all[s.place].place = s.place
		all[last] = nil
		if last == 0 {
			delete(shard.keys, s.key)
		} else {
			shard.keys[s.key] = all[:last]
		}
		s.hub.total.Add(-1)
	})
}

// offer stores an event in the slot unless a later one is there. Of two events of the
// same revision, the one with a value is kept.
func (s *Subscription) offer(e Event) {
	s.mu.Lock()
	if s.filled && (e.Revision < s.latest.Revision || (e.Revision == s.latest.Revision && e.Value == nil)) {
		s.mu.Unlock()
		return
	}
	s.latest, s.filled = e, true
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
