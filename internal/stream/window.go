package stream

import (
	"sync"
	"time"
)

// window knows which entries of a topic are in flight: handed out, waiting for a
// retry, or handled and not yet acknowledged in Redis. It bounds them and tells
// which must be kept from being taken over.
//
// An epoch begins when the group is lost. What was in flight before then is
// still counted, but no longer known: the new group delivers it again.
type window struct {
	limit int
	freed chan struct{} // holds a token after entries left

	mu     sync.Mutex
	taken  int         // entries of all epochs; guarded by mu
	epoch  int         // guarded by mu
	flying []*delivery // of this epoch, in no order; guarded by mu
}

// flight is what the window knows of an entry; guarded by its mu.
type flight struct {
	place int       // in flying
	began time.Time // when the present try was handed out; zero while waiting for the next
	fresh time.Time // when Redis last heard that the entry is being worked on
}

func newWindow(limit int) *window {
	return &window{limit: limit, freed: make(chan struct{}, 1)}
}

// room returns how many more entries may fly.
func (w *window) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit - w.taken
}

// add puts entries into flight, in the present epoch.
func (w *window) add(batch []*delivery, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken += len(batch)
	for _, d := range batch {
		d.epoch = w.epoch
		d.flight = flight{place: len(w.flying), began: now, fresh: now}
		w.flying = append(w.flying, d)
	}
}

// remove takes entries out of flight, all of one epoch.
func (w *window) remove(epoch int, batch []*delivery) {
	w.mu.Lock()
	w.taken -= len(batch)
	if epoch == w.epoch {
		for _, d := range batch {
			last := len(w.flying) - 1
			w.flying[d.flight.place] = w.flying[last]
			w.flying[d.flight.place].flight.place = d.flight.place
			w.flying[last] = nil
			w.flying = w.flying[:last]
		}
	}
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// current reports whether epoch is the present one.
func (w *window) current(epoch int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return epoch == w.epoch
}

// began notes that a try of an entry was handed out at a time, zero when it
// waits for the next.
func (w *window) began(d *delivery, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.flight.began = at
}

// stale returns the entries that Redis has not heard of since before, notes that
// it is about to, and leaves out those whose try began before stuck: a handler
// that does not come back must lose its entry to another process.
func (w *window) stale(before, stuck, now time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for _, d := range w.flying {
		f := &d.flight
		if f.fresh.After(before) || (!f.began.IsZero() && f.began.Before(stuck)) {
			continue
		}
		f.fresh = now
		ids = append(ids, d.id)
	}
	return ids
}

// forget begins an epoch.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch++
	w.flying = nil
}

// left returns the entries that are still in flight in this epoch.
func (w *window) left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, len(w.flying))
	for i, d := range w.flying {
		ids[i] = d.id
	}
	return ids
}
