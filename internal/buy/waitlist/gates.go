package waitlist

import (
	"slices"
	"sync"
	"time"

	"seckill/internal/platform/id"
)

// gates records which gates served at the last step of this process: offers of the
// others cannot be redeemed.
type gates struct {
	mu   sync.Mutex
	seen map[id.Item]service // guarded by mu; by item
}

// service is the last state of a gate.
type service struct {
	serves bool      // reached and loaded
	back   time.Time // when it served again after it did not; zero = it always served
	check  time.Time // when the offers of its draw are checked again
}

// note records whether a gate serves at a time.
func (g *gates) note(item id.Item, serves bool, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, known := g.seen[item]
	if known && serves && !was.serves {
		was.back = at
	}
	was.serves = serves
	g.seen[item] = was
}

// recheckEvery is the interval at which the units of the offers of a draw are checked: they last for
// hours and may be many.
const recheckEvery = 30 * time.Second

// recheck reports whether the offers of a draw are to be checked now.
func (g *gates) recheck(item id.Item, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.seen[item]
	if now.Before(was.check) {
		return false
	}
	was.check = now.Add(recheckEvery)
	g.seen[item] = was
	return true
}

// serves reports whether a gate served at the last step; false before the first one.
func (g *gates) serves(item id.Item) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[item].serves
}

// backSince returns when a gate served again after it did not.
func (g *gates) backSince(item id.Item) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[item].back
}

// keep removes the gates of all other items.
func (g *gates) keep(items []item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for known := range g.seen {
		if !slices.ContainsFunc(items, func(it item) bool { return it.id == known }) {
			delete(g.seen, known)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
