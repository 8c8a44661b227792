package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// Defaults and bounds of a Subscriber.
const (
	defaultBatch        = 256
	defaultMaxInFlight  = 4 * defaultBatch // a batch being read, two being stored, one being acknowledged
	defaultBlock        = time.Second
	defaultGather       = 5 * time.Millisecond
	defaultClaimIdle    = 15 * time.Second // at least 5 × the handlers' deadline
	defaultClaimEvery   = 3 * time.Second
	defaultNackDelay    = 200 * time.Millisecond
	defaultNackDelayMax = 2 * time.Second
	DefaultDrain        = 5 * time.Second // more than the handlers' deadline

	// commandTimeout bounds one non-blocking command.
	commandTimeout = 2 * time.Second

	// spareConnections is the number of connections for acknowledgements and claims, in
	// addition to one blocked read per topic.
	spareConnections = 2
)

// ErrClosed reports that the subscriber is closed.
var ErrClosed = errors.New("subscriber is closed")

// SubscriberConfig configures a Subscriber. Zero values mean the default.
type SubscriberConfig struct {
	// Client is for blocking reads and used only by the subscriber: Close closes it.
	// Its pool has at least one connection per topic and two more.
	Client redis.UniversalClient
	// Group is the consumer group. When missing, it is created at the first entry.
	Group string
	// Consumer is the stable name of this process in the group, for example its host
	// name: after a restart it finds its own entries again. Consumers are never
	// deleted, because that would drop their pending entries.
	Consumer string

	Batch        int           // orders per read, approximately: at least one entry [256]
	MaxInFlight  int           // orders of dispatched, unacknowledged entries per topic [1024]
	Block        time.Duration // timeout of one read; also bounds how late Close is noticed [1 s]
	Gather       time.Duration // pause after a read that returned fewer entries than asked for [5 ms]
	ClaimIdle    time.Duration // idle time after which entries are taken over [15 s]
	ClaimEvery   time.Duration // interval of the search for idle entries [3 s]
	NackDelay    time.Duration // delay before the second attempt; doubles with each [200 ms]
	NackDelayMax time.Duration // maximum delay between attempts [2 s]
	Drain        time.Duration // how long Close waits for handlers [DefaultDrain]

	Log     *slog.Logger
	Metrics *Metrics
}

// Subscriber reads streams in batches for one consumer group. It implements watermill's
// message.Subscriber: Subscribe delivers every message of a batch without waiting for
// the previous one, and concurrent acknowledgements are sent to Redis together.
//
// Unlike in watermill's contract, the context of a message does not end with its
// acknowledgement but when the subscriber stops waiting for handlers: there is one
// context per topic, not per message. It has no deadline; handlers set their own.
type Subscriber struct {
	cfg    SubscriberConfig
	life   context.Context    // ends with Close
	end    context.CancelFunc // ends life
	active sync.WaitGroup     // one per subscription
	closed chan struct{}      // closed when Close has finished

	mu     sync.Mutex
	topics map[string]*subscription // guarded by mu
	dead   bool                     // Close was called; guarded by mu
}

var _ message.Subscriber = (*Subscriber)(nil)

// NewSubscriber returns a subscriber. Nothing is read before Subscribe.
func NewSubscriber(cfg SubscriberConfig) (*Subscriber, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("subscriber: no client")
	case cfg.Group == "":
		return nil, errors.New("subscriber: no group")
	case cfg.Consumer == "":
		return nil, errors.New("subscriber: no consumer name; set one that stays the same over restarts")
	case cfg.Log == nil:
		return nil, errors.New("subscriber: no log")
	}
	setDefault(&cfg.Batch, defaultBatch)
	setDefault(&cfg.MaxInFlight, defaultMaxInFlight)
	setDefault(&cfg.Block, defaultBlock)
	setDefault(&cfg.Gather, defaultGather)
	setDefault(&cfg.ClaimIdle, defaultClaimIdle)
	setDefault(&cfg.ClaimEvery, defaultClaimEvery)
	setDefault(&cfg.NackDelay, defaultNackDelay)
	setDefault(&cfg.NackDelayMax, defaultNackDelayMax)
	setDefault(&cfg.Drain, DefaultDrain)
	if cfg.Block < time.Millisecond {
		return nil, fmt.Errorf("subscriber: block %v; Redis would wait for ever below 1 ms", cfg.Block)
	}
	s := &Subscriber{cfg: cfg, closed: make(chan struct{}), topics: map[string]*subscription{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Subscribe starts to read the stream with key topic. When ctx ends or the subscriber
// is closed, it waits until the delivered messages are handled and acknowledged, and
// then closes the channel. An unavailable Redis is not an error: reading starts when it
// is available.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, ErrClosed
	}
	if _, twice := s.topics[topic]; twice {
		return nil, fmt.Errorf("subscribe %s: already subscribed by %s", topic, s.cfg.Consumer)
	}
	if size := poolSize(s.cfg.Client); size > 0 && size < len(s.topics)+1+spareConnections {
		return nil, fmt.Errorf("subscribe %s: a pool of %d connections is too small for %d topics", topic, size,
			len(s.topics)+1)
	}
	sub := newSubscription(&s.cfg, topic)
	s.topics[topic] = sub
	s.active.Add(1)
	stop, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(s.life, cancel)
	go func() {
		defer s.active.Done()
		defer cancel()
		defer unlink()
		sub.run(stop)
		s.mu.Lock()
		delete(s.topics, topic)
		s.mu.Unlock()
		close(sub.out)
	}()
	return sub.out, nil
}

// Close stops reading and waits for handlers, at most for Drain. A nacked message is
// retried once more, without its delay. Close acknowledges finished messages, hands the
// others back to the group, and closes the client. A second Close waits for the first.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	first := !s.dead
	s.dead = true
	s.mu.Unlock()
	if !first {
		<-s.closed
		return nil
	}
	defer close(s.closed)
	s.end()
	drained := make(chan struct{})
	go func() { s.active.Wait(); close(drained) }()
	// A read, the handlers, the last acknowledgement and the hand-back are each
	// bounded; only a client that ignores deadlines can exceed their sum.
	late := time.NewTimer(s.cfg.Block + s.cfg.Drain + 4*commandTimeout)
	defer late.Stop()
	select {
	case <-drained:
		return s.cfg.Client.Close()
	case <-late.C:
		err := s.cfg.Client.Close() // makes the blocked command fail
		<-drained
		return errors.Join(errors.New("subscriber closed late: a command of Redis did not return"), err)
	}
}

// LastRead returns the time of the last successful read of the topic that was read
// least recently; zero when a topic was never read. The health check of a worker uses
// its age.
func (s *Subscriber) LastRead() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Time
	first := true
	for _, sub := range s.topics {
		if at := sub.lastRead(); first || at.Before(oldest) {
			oldest, first = at, false
		}
	}
	return oldest
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// poolSize returns how many connections a client may open to one server, 0 when
// unknown.
func poolSize(client redis.UniversalClient) int {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().PoolSize
	case *redis.ClusterClient:
		return c.Options().PoolSize
	}
	return 0
}
