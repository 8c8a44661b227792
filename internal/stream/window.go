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
// still counted, but no longer known by its id: the new group delivers it again.
type window struct {
	limit int
	freed chan struct{} // holds a token after entries left

	mu     sync.Mutex
	taken  int               // entries of all epochs; guarded by mu
	epoch  int               // guarded by mu
	flying map[string]flight // entries of this epoch by id; guarded by mu
}

// flight is one entry in flight.
type flight struct {
	began time.Time // when the present try was handed out; zero while waiting for the next
	fresh time.Time // when Redis last heard that the entry is being worked on
}

func newWindow(limit int) *window {
	return &window{limit: limit, freed: make(chan struct{}, 1), flying: map[string]flight{}}
}

// room returns how many more entries may fly.
func (w *window) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit - w.taken
}

// add puts entries into flight and returns their epoch.
func (w *window) add(ids []string, now time.Time) (epoch int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken += len(ids)
	for _, id := range ids {
		w.flying[id] = flight{began: now, fresh: now}
	}
	return w.epoch
}

// has reports whether an entry is in flight.
func (w *window) has(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, flying := w.flying[id]
	return flying
}

// remove takes entries of an epoch out of flight.
func (w *window) remove(epoch int, ids []string) {
	w.mu.Lock()
	w.taken -= len(ids)
	if epoch == w.epoch {
		for _, id := range ids {
			delete(w.flying, id)
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
func (w *window) began(epoch int, id string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, flying := w.flying[id]; flying && epoch == w.epoch {
		f.began = at
		w.flying[id] = f
	}
}

// stale returns the entries that Redis has not heard of since before, notes that
// it is about to, and leaves out those whose try began before stuck: a handler
// that does not come back must lose its entry to somebody else.
func (w *window) stale(before, stuck, now time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id, f := range w.flying {
		if f.fresh.After(before) || (!f.began.IsZero() && f.began.Before(stuck)) {
			continue
		}
		f.fresh = now
		w.flying[id] = f
		ids = append(ids, id)
	}
	return ids
}

// forget begins an epoch.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch++
	w.flying = map[string]flight{}
}

// left returns the entries that are still in flight in this epoch.
func (w *window) left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.flying))
	for id := range w.flying {
		ids = append(ids, id)
	}
	return ids
}
