package stream

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
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
