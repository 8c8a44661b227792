package stream

import (
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// acks acknowledges in groups: while one XACK is in flight, new ids wait for the next.
// There is no timer: a single id is sent at once. The queue is bounded by the window,
// because an entry leaves the window only here. It does not use package batch: no caller
// waits for the result of an id, and a batch is retried for as long as the subscription
// lives.
type acks struct {
	cfg    *SubscriberConfig
	topic  string
	window *window
	some   chan struct{} // holds a token when the queue may not be empty
	done   chan struct{} // closed by finish

	mu    sync.Mutex
	queue []ackGroup // guarded by mu
}

// ackGroup is the entries of one batch that finished together.
type ackGroup struct {
	generation int
	done       []*delivery
}

func newAcks(cfg *SubscriberConfig, topic string, w *window) *acks {
	return &acks{cfg: cfg, topic: topic, window: w, some: make(chan struct{}, 1), done: make(chan struct{})}
}

// add queues finished entries.
func (a *acks) add(generation int, done []*delivery) {
	a.mu.Lock()
	a.queue = append(a.queue, ackGroup{generation: generation, done: done})
	a.mu.Unlock()
	select {
	case a.some <- struct{}{}:
	default:
	}
}

// finish ends run after the queued entries are sent. Nothing may be added after it.
func (a *acks) finish() { close(a.done) }

// run sends queued entries until finish is called.
func (a *acks) run() {
	for {
		select {
		case <-a.some:
			a.flush()
		case <-a.done:
			a.flush()
			return
		}
	}
}

// flush sends the queued entries as one command. Entries of a lost group are not
// acknowledged: the new group delivers them again.
func (a *acks) flush() {
	a.mu.Lock()
	groups := a.queue
	a.queue = nil
	a.mu.Unlock()
	var ids []string
	for _, g := range groups {
		if a.window.current(g.generation) {
			for _, d := range g.done {
				ids = append(ids, d.id)
			}
		}
	}
	if len(ids) == 0 || a.send(ids) {
		for _, g := range groups {
			a.window.remove(g.generation, g.done)
		}
	}
}

// send acknowledges entries and retries until it succeeds. After the subscription has
// ended, it retries for at most commandTimeout. It reports whether Redis acknowledged.
func (a *acks) send(ids []string) bool {
	retry := newBackoff()
	over := a.done
	var last <-chan time.Time // end of the retries, once the subscription has ended
	for {
		ctx, cancel := command(0)
		err := a.cfg.Client.XAck(ctx, a.topic, a.cfg.Group, ids...).Err()
		cancel()
		if err == nil {
			a.cfg.Metrics.count(Acked, a.topic, len(ids))
			return true
		}
		a.cfg.Metrics.count(AckFailed, a.topic, 1)
		a.cfg.Log.Warn("acknowledge", slog.String("stream", a.topic), slog.Int("entries", len(ids)), slog.Any("error", err))
		select {
		case <-time.After(retry.NextBackOff()):
		case <-over:
			over, last = nil, time.After(commandTimeout)
		case <-last:
			return false
		}
	}
}

// newBackoff returns the pauses after failures of Redis: short at first, because most
// failures are brief, and at most 2 s, so that a lost group is created again within 5
// s.
func newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 50 * time.Millisecond
	b.Multiplier = 2
	b.MaxInterval = 2 * time.Second
	b.Reset()
	return b
}
