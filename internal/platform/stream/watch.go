package stream

import (
	"strconv"
	"time"
)

// delivery is one entry being handled. It belongs to the goroutine that watches its
// batch.
type delivery struct {
	id      string
	epoch   int // epoch of the window; the same for a batch
	orders  int // orders in the message
	attempt int
	last    bool // the attempt during the drain is the last one
	msg     *Message
	due     time.Time // when to retry; zero while a handler has the message
	flight  flight    // owned by the window
}

// phase is the phase of a subscription's shutdown.
type phase int

const (
	running  phase = iota // nacked messages are retried after their delay
	draining              // nacked messages are retried once more, immediately
	over                  // nothing is delivered
)

// watch waits for the handlers of a batch, queues their acknowledgements and retries
// nacked messages. It ends when no message is left, at the latest with the drain.
func (s *subscription) watch(batch []*delivery) {
	defer s.watchers.Done()
	timer := time.NewTimer(firstSweep)
	defer timer.Stop()
	now, drain := running, s.draining
	for pause := firstSweep; ; pause = min(2*pause, lastSweep) {
		batch = s.sweep(batch, now)
		if len(batch) == 0 {
			return
		}
		last, wait := nextCheck(batch, pause)
		timer.Reset(wait)
		var acked, nacked <-chan struct{}
		if last != nil {
			acked, nacked = last.msg.Acked(), last.msg.Nacked()
		}
		select {
		case <-acked:
		case <-nacked:
		case <-timer.C:
		case <-drain:
			now, drain = draining, nil
		case <-s.hard.Done():
			s.sweep(batch, over) // acknowledges messages that finished just now
			return
		}
	}
}

// nextCheck returns the last message that a handler has, which most likely finishes last,
// and how long to wait for it until the next check of all messages: for pause when there
// are others.
func nextCheck(batch []*delivery, pause time.Duration) (last *delivery, wait time.Duration) {
	out := 0
	var due time.Time
	for _, d := range batch {
		if d.due.IsZero() {
			last, out = d, out+1
		} else if due.IsZero() || d.due.Before(due) {
			due = d.due
		}
	}
	wait = time.Hour // no other message to check
	if out > 1 {
		wait = pause
	}
	if !due.IsZero() {
		wait = min(wait, max(0, time.Until(due)))
	}
	return last, wait
}

// sweep checks every message of a batch once and returns the unfinished ones. A message
// that is nacked in its last attempt stays pending and is handed back.
func (s *subscription) sweep(batch []*delivery, at phase) []*delivery {
	now := time.Now()
	live := batch[:0]
	var done []*delivery
	epoch := batch[0].epoch
	refused := 0
	for _, d := range batch {
		switch s.state(d) {
		case out:
		case finished:
			done = append(done, d)
			continue
		case refusedNow:
			refused++
			d.due = now.Add(s.delay(d.attempt))
			s.window.began(d, time.Time{})
		case waiting:
		}
		if !d.due.IsZero() && (at == over || d.last) {
			continue
		}
		if !d.due.IsZero() && (at == draining || !now.Before(d.due)) {
			d.last = at == draining
			s.again(d, now)
		}
		live = append(live, d)
	}
	s.cfg.Metrics.count(Nacked, s.topic, refused)
	if len(done) > 0 {
		s.acks.add(epoch, done)
	}
	return live
}

// states of a delivery
type deliveryState int

const (
	out        deliveryState = iota // a handler has it
	finished                        // acknowledged by the handler
	refusedNow                      // just nacked by the handler
	waiting                         // waits for its next attempt
)

func (s *subscription) state(d *delivery) deliveryState {
	if !d.due.IsZero() {
		return waiting
	}
	// Two selects, because a select with one channel takes no lock.
	select {
	case <-d.msg.Acked():
		return finished
	default:
	}
	select {
	case <-d.msg.Nacked():
		return refusedNow
	default:
	}
	return out
}

// again delivers a copy, because watermill's message cannot be reused after a nack. The
// copy has no context and gets the subscription's.
func (s *subscription) again(d *delivery, now time.Time) {
	d.attempt++
	d.due = time.Time{}
	d.msg = d.msg.Copy()
	d.msg.SetContext(s.hard)
	d.msg.Metadata.Set(metaAttempt, strconv.Itoa(d.attempt))
	s.window.began(d, now)
	s.hand(d.msg)
}

// delay returns the pause after a number of attempts: NackDelay, doubling.
func (s *subscription) delay(tries int) time.Duration {
	delay := s.cfg.NackDelay
	for range tries - 1 {
		if delay *= 2; delay >= s.cfg.NackDelayMax {
			return max(s.cfg.NackDelayMax, s.cfg.NackDelay)
		}
	}
	return delay
}
