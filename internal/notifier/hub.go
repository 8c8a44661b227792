// Package notifier tells subscriptions of this process that something changed.
//
// What it owns: the hub, which keeps who follows what and gives each of them the
// latest state; Follow, which turns a way to load a state and the hub into a
// stream of states that starts with a snapshot, never goes back and always ends;
// and the status bus, which carries changes from the process that made them to
// the hubs of all others.
//
// What it does not own: what a state is, who may see it, the wire to the client.
//
// The hub and the bus may lose anything. What makes a follower see the end all
// the same is that Follow reads again every few seconds.
package notifier

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"seckill/internal/telemetry"
)

// Bounds of a hub.
const (
	shards        = 64     // locks; followers of different keys seldom meet
	defaultPerKey = 50_000 // followers of one key, for example of one sale
	defaultTotal  = 200_000
	defaultReread = 5 * time.Second
)

// ErrFull says that a hub has as many followers as it takes.
var ErrFull = errors.New("too many followers")

// Event says that what a key stands for has a new state. Revisions of a key
// start at 1 and grow with every change.
type Event struct {
	Key      string
	Revision int64
	Terminal bool // no state follows
	// Value is the new state, so that nobody needs to read it: a value of the
	// type that the follower asks for, or its JSON as json.RawMessage. Nil means:
	// read it. It is shared by all followers and must not be changed.
	Value any
}

// Hub knows the followers in this process.
type Hub struct {
	opts   Options
	seed   maphash.Seed
	shards [shards]shard
	total  atomic.Int64
}

// Options bounds a hub. Zero takes the default.
type Options struct {
	PerKey int           // followers of one key [50,000]
	Total  int           // followers of all keys [200,000]
	Reread time.Duration // a follower reads again at least that often [5 s]

	// LoadFailed is told of a read that failed after the first; it is tried again.
	// May be nil.
	LoadFailed func(key string, err error)
	// Registerer gets the metrics; nil = they are shown nowhere.
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
	promauto.With(opts.Registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: telemetry.Namespace, Subsystem: "notifier", Name: "followers_count",
		Help: "Subscriptions that wait for events of this process.",
	}, func() float64 { return float64(h.Followers()) })
	return h
}

// Followers returns how many subscriptions are open.
func (h *Hub) Followers() int { return int(h.total.Load()) }

// Publish gives an event to all followers of its key. It never waits for them:
// each has one slot, which holds the highest revision.
func (h *Hub) Publish(e Event) {
	s := h.shard(e.Key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, sub := range s.keys[e.Key] {
		sub.offer(e)
	}
}

// Followed reports whether anybody follows a key.
func (h *Hub) Followed(key string) bool {
	s := h.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.keys[key]) > 0
}

// Subscribe follows a key from now on. The caller closes the subscription. The
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
	ready chan struct{} // holds a token when the slot may be filled
	once  sync.Once
	place int // among the followers of the key; guarded by the mu of its shard

	mu     sync.Mutex
	latest Event // guarded by mu
	filled bool  // guarded by mu
}

// Ready receives when Take may have something.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take empties the slot.
func (s *Subscription) Take() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, filled := s.latest, s.filled
	s.latest, s.filled = Event{}, false
	return e, filled
}

// Close ends the subscription. It may be called again.
func (s *Subscription) Close() {
	s.once.Do(func() {
		shard := s.hub.shard(s.key)
		shard.mu.Lock()
		defer shard.mu.Unlock()
		all := shard.keys[s.key]
		last := len(all) - 1
		all[s.place] = all[last] // the last takes the place, however many there are
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

// offer puts an event into the slot unless a later one is there. Of one revision
// the event that carries a value wins.
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
