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
	defaultBlock        = 500 * time.Millisecond
	defaultClaimIdle    = 15 * time.Second // at least 5 × the handlers' deadline
	defaultClaimEvery   = time.Second
	defaultNackDelay    = 200 * time.Millisecond
	defaultNackDelayMax = 2 * time.Second
	defaultDrain        = 5 * time.Second // more than the handlers' deadline

	// commandTimeout bounds one command that does not block.
	commandTimeout = 2 * time.Second

	// spareConnections is how many connections acknowledgements and claims may
	// use beside one blocked read per topic.
	spareConnections = 2
)

// ErrClosed says that the subscriber was closed.
var ErrClosed = errors.New("subscriber is closed")

// SubscriberConfig is how a Subscriber reads. Zero values take the default.
type SubscriberConfig struct {
	// Client is for blocking reads and of the subscriber's own: Close closes it.
	// Its pool holds at least one connection per topic and two more.
	Client redis.UniversalClient
	// Group is the consumer group, created from the first entry when missing.
	Group string
	// Consumer is the stable name of this process within the group, for example
	// its host name: one that comes back finds its own entries again. Consumers
	// are never deleted, because that would drop what they hold.
	Consumer string

	Batch        int           // entries per read [256]
	MaxInFlight  int           // entries per topic that are handed out and not yet acknowledged [1024]
	Block        time.Duration // how long a read waits for entries; also bounds how late Close is noticed [500 ms]
	ClaimIdle    time.Duration // entries idle for that long are taken over [15 s]
	ClaimEvery   time.Duration // how often idle entries are looked for [1 s]
	NackDelay    time.Duration // wait before the second try; doubles with each [200 ms]
	NackDelayMax time.Duration // longest wait between tries [2 s]
	Drain        time.Duration // how long Close waits for handlers [5 s]

	Log     *slog.Logger
	Metrics *Metrics
}

// Subscriber reads streams in batches for one consumer group. It implements
// watermill's message.Subscriber: Subscribe hands out every message of a batch
// without waiting for the one before it, and acknowledgements that come in
// together go to Redis together.
//
// Unlike watermill's contract says, the context of a message does not end with
// its acknowledgement but when the subscriber stops waiting for handlers: one
// context per topic, not per message. It carries no deadline; handlers bring
// their own.
type Subscriber struct {
	cfg    SubscriberConfig
	life   context.Context    // ends with Close
	end    context.CancelFunc // ends life
	active sync.WaitGroup     // one per subscription
	closed chan struct{}      // closed when Close has done everything

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
		return nil, errors.New("subscriber: no consumer name; it must be stable, so none is made up")
	case cfg.Log == nil:
		return nil, errors.New("subscriber: no log")
	}
	setDefault(&cfg.Batch, defaultBatch)
	setDefault(&cfg.MaxInFlight, defaultMaxInFlight)
	setDefault(&cfg.Block, defaultBlock)
	setDefault(&cfg.ClaimIdle, defaultClaimIdle)
	setDefault(&cfg.ClaimEvery, defaultClaimEvery)
	setDefault(&cfg.NackDelay, defaultNackDelay)
	setDefault(&cfg.NackDelayMax, defaultNackDelayMax)
	setDefault(&cfg.Drain, defaultDrain)
	if cfg.Block < time.Millisecond {
		return nil, fmt.Errorf("subscriber: block %v; Redis would wait for ever below 1 ms", cfg.Block)
	}
	s := &Subscriber{cfg: cfg, closed: make(chan struct{}), topics: map[string]*subscription{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Subscribe starts to read the stream with key topic. The channel is closed when
// ctx ends or the subscriber is closed, after the messages that were handed out
// have been waited for and acknowledged. A Redis that is away is not an error:
// reading starts when it is there.
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
		return nil, fmt.Errorf("subscribe %s: a pool of %d connections is too small for %d topics", topic, size, len(s.topics)+1)
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

// Close stops reading and waits for handlers at most for Drain. A message that was
// refused is tried once more, without its delay. Close acknowledges what handlers
// finished, hands the rest back to the group, and closes the client. A second
// Close waits for the first.
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
	// bounded; only a client that ignores deadlines would exceed their sum.
	late := time.NewTimer(s.cfg.Block + s.cfg.Drain + 4*commandTimeout)
	defer late.Stop()
	select {
	case <-drained:
		return s.cfg.Client.Close()
	case <-late.C:
		err := s.cfg.Client.Close() // fails the command that hangs
		<-drained
		return errors.Join(errors.New("subscriber closed late: a command of Redis did not return"), err)
	}
}

// LastRead returns the oldest of the topics' last good reads, zero when a topic
// never had one. How long ago that was is the health of a worker.
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
// it does not tell.
func poolSize(client redis.UniversalClient) int {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().PoolSize
	case *redis.ClusterClient:
		return c.Options().PoolSize
	}
	return 0
}
