package stream

import (
	"sync"
	"time"

	"seckill/internal/platform/collect"
)

// window tracks the entries of a topic in flight: being handled, waiting for a retry,
// or handled and not yet acknowledged in Redis. It bounds them and returns those that
// must be refreshed.
//
// A generation begins when the group is lost. Entries in flight before that still count,
// but are no longer tracked: the new group delivers them again.
type window struct {
	limit int           // orders
	freed chan struct{} // holds a token after entries left

	mu         sync.Mutex
	taken      int         // orders in flight of all generations; guarded by mu
	generation int         // guarded by mu
	inFlight   []*delivery // entries of this generation, in no order; guarded by mu
}

// flight is the window's state of an entry; guarded by its mu.
type flight struct {
	index int       // in inFlight
	began time.Time // when the current attempt was delivered; zero while waiting for the next
	fresh time.Time // when the entry was last refreshed in Redis
}

func newWindow(limit int) *window {
	return &window{limit: limit, freed: make(chan struct{}, 1)}
}

// free returns how many more orders fit into the window; negative when the last read
// returned more than expected.
func (w *window) free() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit - w.taken
}

// add adds entries to the current generation.
func (w *window) add(batch []*delivery, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range batch {
		w.taken += d.orders
		d.generation = w.generation
		d.flight = flight{index: len(w.inFlight), began: now, fresh: now}
		w.inFlight = append(w.inFlight, d)
	}
}

// remove removes entries, all of one generation.
func (w *window) remove(generation int, batch []*delivery) {
	w.mu.Lock()
	for _, d := range batch {
		w.taken -= d.orders
	}
	if generation == w.generation {
		for _, d := range batch {
			last := len(w.inFlight) - 1
			w.inFlight[d.flight.index] = w.inFlight[last]
			w.inFlight[d.flight.index].flight.index = d.flight.index
			w.inFlight[last] = nil
			w.inFlight = w.inFlight[:last]
		}
	}
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

func (w *window) current(generation int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return generation == w.generation
}

// began records when an attempt was delivered, zero while the entry waits for the next.
func (w *window) began(d *delivery, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.flight.began = at
}

// stale returns the entries last refreshed before before, and records their refresh at
// now. It leaves out entries whose attempt began before stuck: a handler that does not
// return must lose its entry to another process.
func (w *window) stale(before, stuck, now time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for _, d := range w.inFlight {
		f := &d.flight
		if f.fresh.After(before) || (!f.began.IsZero() && f.began.Before(stuck)) {
			continue
		}
		f.fresh = now
		ids = append(ids, d.id)
	}
	return ids
}

// forget starts a new generation.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.generation++
	w.inFlight = nil
}

// left returns the entries of this generation that are still in flight.
func (w *window) left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return collect.Map(w.inFlight, func(d *delivery) string { return d.id })
}
