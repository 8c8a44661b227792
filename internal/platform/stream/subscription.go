package stream

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/periodic"
)

// While the last message of a batch is unfinished, all its messages are checked
// periodically, so that one slow handler does not delay the acknowledgements of the
// others: after firstSweep, then with a doubled interval each time, up to lastSweep. A
// common commit takes some tens of milliseconds.
const (
	firstSweep = 5 * time.Millisecond
	lastSweep  = 40 * time.Millisecond
)

// subscription is the reading of one topic. Three kinds of goroutines share it: one
// reads and takes over (read), one per batch in flight waits for handlers and retries
// (watch), one acknowledges (acks.run).
type subscription struct {
	cfg    *SubscriberConfig
	topic  string
	out    chan *Message
	window *window
	acks   *acks

	// hard is the context of all messages. It ends after the drain.
	hard     context.Context
	cut      context.CancelFunc
	draining chan struct{} // closed when the drain begins
	watchers sync.WaitGroup

	perEntry int // orders per entry of the last reads; used by the reading goroutine

	readAt atomic.Int64 // Unix nanoseconds of the last successful read
}

func newSubscription(cfg *SubscriberConfig, topic string) *subscription {
	s := &subscription{
		cfg: cfg, topic: topic,
		out:      make(chan *Message, cfg.Batch),
		window:   newWindow(cfg.MaxInFlight),
		draining: make(chan struct{}),
	}
	s.acks = newAcks(cfg, topic, s.window)
	s.hard, s.cut = context.WithCancel(context.Background())
	return s
}

// run reads until stop ends, and then drains.
func (s *subscription) run(stop context.Context) {
	defer s.cut()
	unlink := context.AfterFunc(stop, func() {
		close(s.draining)
		time.AfterFunc(s.cfg.Drain, s.cut)
	})
	defer unlink()
	acked := make(chan struct{})
	go func() { defer close(acked); s.acks.run() }()

	newReader(s).run(stop)
	s.watchers.Wait() // each ends by itself, or with hard
	s.withdraw()
	s.acks.finish()
	<-acked
	s.handBack()
}

// dispatch delivers entries to the channel. deliveries has the group's delivery count
// of entries that were delivered before, by id.
func (s *subscription) dispatch(entries []redis.XMessage, deliveries map[string]int64) {
	all, batch := make([]delivery, len(entries)), make([]*delivery, len(entries))
	malformed, orders := 0, 0
	for i, entry := range entries {
		msg := decode(entry)
		if n := deliveries[entry.ID]; n > 1 {
			msg.Metadata.Set(metaDeliveries, strconv.FormatInt(n, 10))
		}
		if _, bad := Malformed(msg); bad {
			malformed++
		}
		msg.SetContext(s.hard)
		all[i] = delivery{id: entry.ID, orders: Count(msg), attempt: 1, msg: msg}
		orders += all[i].orders
		batch[i] = &all[i]
	}
	s.cfg.Metrics.count(MalformedSeen, s.topic, malformed)
	s.perEntry = max((orders+len(entries)-1)/len(entries), s.perEntry/2)
	s.window.add(batch, time.Now())
	s.watchers.Add(1)
	go s.watch(batch)
	for i := range all { // the watcher owns the batch from here on
		if !s.hand(all[i].msg) {
			return
		}
	}
}

// hand sends a message to the channel, unless the drain ends first.
func (s *subscription) hand(msg *Message) bool {
	select {
	case s.out <- msg: // the channel usually has room
		return true
	default:
	}
	select {
	case s.out <- msg:
		return true
	case <-s.hard.Done():
		return false
	}
}

// withdraw takes back the messages that no handler has received. This consumer still
// owns them and hands them back.
func (s *subscription) withdraw() {
	for {
		select {
		case <-s.out:
		default:
			return
		}
	}
}

// handBack makes unfinished entries look idle, so that any consumer of the group takes
// them over immediately instead of after ClaimIdle.
func (s *subscription) handBack() {
	left := s.window.left()
	if len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	args := []any{"xclaim", s.topic, s.cfg.Group, s.cfg.Consumer, 0}
	for _, id := range left {
		args = append(args, id)
	}
	args = append(args, "idle", s.cfg.ClaimIdle.Milliseconds(), "justid")
	if err := s.cfg.Client.Do(ctx, args...).Err(); err != nil {
		s.log().Warn("unfinished entries wait for their idle time",
			slog.Int("entries", len(left)), slog.Any("error", err))
	}
}

func (s *subscription) lastRead() time.Time {
	if at := s.readAt.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func (s *subscription) log() *slog.Logger {
	return s.cfg.Log.With(slog.String("stream", s.topic), slog.String("group", s.cfg.Group))
}

// fromStart is the start of a new group: it includes every existing entry.
const fromStart = "0"

// reader is the reading part of a subscription. It is used by one goroutine.
type reader struct {
	*subscription
	retry *backoff.ExponentialBackOff

	grouped   bool      // the group is known to exist
	seen      bool      // the group has existed before
	ownFrom   string    // where the search for own pending entries continues; "" when it is complete
	readNext  time.Time // earliest time of the next read of new entries
	claimNext time.Time // when to look for idle entries
	freshNext time.Time // when to refresh the entries in work
}

func newReader(s *subscription) *reader {
	return &reader{subscription: s, retry: newBackoff(), ownFrom: "-"}
}

// run executes steps until stop ends. A failed step does not end it.
func (r *reader) run(stop context.Context) {
	for stop.Err() == nil {
		err := r.step(stop)
		if err == nil {
			r.retry.Reset()
			continue
		}
		r.grouped = false
		if !goneAway(err) {
			r.cfg.Metrics.count(ReadFailed, r.topic, 1)
			r.log().Warn("read stream", slog.Any("error", err))
			r.ownFrom = "-" // a lost reply may have assigned entries to this consumer
		}
		_ = periodic.Sleep(stop, r.retry.NextBackOff()) // the loop looks at stop
	}
}

// goneAway reports that the group or the stream does not exist; createGroup counts it.
func goneAway(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")
}

// step does the most urgent work: create the group, refresh entries, take over its own
// previous entries, take over idle entries of other workers, read new entries.
func (r *reader) step(stop context.Context) error {
	if !r.grouped {
		if err := r.createGroup(); err != nil {
			return err
		}
	}
	now := time.Now()
	if !now.Before(r.freshNext) {
		r.freshNext = now.Add(r.cfg.ClaimIdle / 3)
		if err := r.keep(now); err != nil {
			return err
		}
	}
	count := r.readSize()
	if count <= 0 {
		r.awaitFree(stop)
		return nil
	}
	if r.ownFrom != "" {
		return r.takeOwn(count)
	}
	if !now.Before(r.claimNext) {
		r.claimNext = now.Add(r.cfg.ClaimEvery)
		return r.takeIdle(count)
	}
	if err := periodic.Sleep(stop, r.readNext.Sub(now)); err != nil {
		return nil // run looks at stop
	}
	return r.readNew(count)
}

// maxEntries bounds the entries of one read: with 256 orders in each, they are what the
// writer accepts.
const maxEntries = 64

// readSize returns how many entries to read: those whose orders are expected to fit into
// a batch and into the window.
func (r *reader) readSize() int {
	orders := min(r.cfg.Batch, r.window.free())
	if orders <= 0 {
		return 0
	}
	if r.perEntry <= 1 {
		return orders
	}
	return min(maxEntries, max(1, orders/r.perEntry))
}

// createGroup ensures that the group exists. When a group that existed before is
// missing, Redis was emptied or replaced, or is an older copy: all entries of the
// stream are read again, and entries in flight no longer count as read. Handlers are
// idempotent.
func (r *reader) createGroup() error {
	ctx, cancel := command(0)
	defer cancel()
	err := r.cfg.Client.XGroupCreateMkStream(ctx, r.topic, r.cfg.Group, fromStart).Err()
	existed := redis.HasErrorPrefix(err, "BUSYGROUP")
	if err != nil && !existed {
		return err
	}
	if r.seen && !existed {
		r.cfg.Metrics.count(GroupLost, r.topic, 1)
		r.log().Error("consumer group was lost; it is there again and reads from the first entry")
		r.window.forget()
	}
	r.grouped, r.seen = true, true
	return nil
}

// readNew reads entries that no consumer has. It cannot be interrupted; Block bounds
// it. Entries that arrive while stop ends are still dispatched: this consumer owns
// them, and the drain waits for them.
func (r *reader) readNew(count int) error {
	block := untilTick(r.cfg.Block)
	ctx, cancel := command(block)
	defer cancel()
	streams, err := r.cfg.Client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: r.cfg.Group, Consumer: r.cfg.Consumer,
		Streams: []string{r.topic, ">"},
		Count:   int64(count),
		Block:   block,
	}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	now := time.Now()
	r.readAt.Store(now.UnixNano())
	for _, s := range streams {
		if len(s.Messages) > 0 {
			if len(s.Messages) < count {
				r.readNext = now.Add(r.cfg.Gather)
			}
			r.cfg.Metrics.count(Read, r.topic, len(s.Messages))
			r.dispatch(s.Messages, nil)
		}
	}
	return nil
}

// untilTick returns the timeout of a read that may block for so long: idle streams wake the process
// together.
func untilTick(block time.Duration) time.Duration {
	if block < periodic.Tick {
		return block
	}
	return max(time.Millisecond, periodic.UntilTick(block))
}

// awaitFree waits until entries leave the window, at most for Block.
func (r *reader) awaitFree(stop context.Context) {
	timer := time.NewTimer(r.cfg.Block)
	defer timer.Stop()
	select {
	case <-r.window.freed:
	case <-timer.C:
	case <-stop.Done():
	}
	r.readAt.Store(time.Now().UnixNano()) // a full window is not a failure
}

// command returns the context of one command that blocks for up to block. It is not
// derived from the subscription's context, because an interrupted command loses its
// reply, and its entries would wait until ClaimIdle.
func command(block time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), block+commandTimeout)
}

// delivery is one entry being handled. It belongs to the goroutine that watches its
// batch.
type delivery struct {
	id         string
	generation int // generation of the window; the same for a batch
	orders     int // orders in the message
	attempt    int
	last       bool // the attempt during the drain is the last one
	msg        *Message
	due        time.Time // when to retry; zero while a handler has the message
	flight     flight    // owned by the window
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
	generation := batch[0].generation
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
		s.acks.add(generation, done)
	}
	return live
}

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
