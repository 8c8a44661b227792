package reservation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"seckill/internal/fault"
	"seckill/internal/id"
)

const (
	// maxBatch bounds one script call: 256 attempts keep Redis busy for about 2 ms.
	maxBatch = 256
	// inFlight is how many batches of a shard are under way at once: one in
	// Redis while the next is gathered.
	inFlight = 2
	// queueLen bounds the attempts that wait for a shard; past it the caller is
	// told OVERLOADED and nothing was taken.
	queueLen = 4096
	// batchTimeout bounds one batch with its second try.
	batchTimeout = 2 * time.Second
	// overloadRetry is when a caller may come back after OVERLOADED.
	overloadRetry = 500 * time.Millisecond
)

// ErrUnknown says that the reply of Redis was lost twice: the stock may have
// been taken or not. The same attempt with the same idempotency key tells.
var ErrUnknown = errors.New("reservation outcome unknown")

// Meter counts what the reserver does.
type Meter interface {
	// Batch is called once per script call with its size, duration and fault.
	Batch(size int, took time.Duration, err error)
	// Outcome is called once per attempt.
	Outcome(c Code)
}

// Reserver takes stock for many callers at once: attempts on a shard that come
// in while a batch is under way go together into the next one (group commit,
// no timer). It is safe for concurrent use while Run runs.
type Reserver struct {
	client redis.UniversalClient // without retries: a lost reply must not run the script again by itself
	keys   Keys
	meter  Meter
	log    *slog.Logger
	queues [id.Shards]chan *call
}

type call struct {
	ctx     context.Context //nolint:containedctx // tells whether the caller still waits
	attempt Attempt
	done    chan result // buffered: an answer never waits for a caller who left
}

type result struct {
	outcome Outcome
	err     error
}

// NewReserver returns a reserver. client must not retry by itself.
func NewReserver(client redis.UniversalClient, keys Keys, meter Meter, log *slog.Logger) *Reserver {
	r := &Reserver{client: client, keys: keys, meter: meter, log: log}
	for i := range r.queues {
		r.queues[i] = make(chan *call, queueLen)
	}
	return r
}

// Run works the queues until ctx ends, then answers what is queued and returns.
func (r *Reserver) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, q := range r.queues {
		for range inFlight {
			g.Go(func() error {
				r.work(ctx, q)
				return nil
			})
		}
	}
	return g.Wait()
}

// Reserve takes stock for one attempt. The error is a fault: OVERLOADED (nothing
// was taken), UNAVAILABLE (Redis is away, nothing was taken), or one that wraps
// ErrUnknown. When ctx ends first the attempt may still be carried out; asking
// again with the same idempotency key tells.
func (r *Reserver) Reserve(ctx context.Context, a Attempt) (Outcome, error) {
	c := &call{ctx: ctx, attempt: a, done: make(chan result, 1)}
	select {
	case r.queues[a.Shard()] <- c:
	default:
		return Outcome{}, &fault.Error{Code: fault.Overloaded, Message: "too many buyers at once", RetryAfter: overloadRetry}
	}
	select {
	case res := <-c.done:
		if res.err == nil {
			r.meter.Outcome(res.outcome.Code)
		}
		return res.outcome, res.err
	case <-ctx.Done():
		return Outcome{}, fault.Wrap(fault.Timeout, "the answer took too long; ask again with the same idempotency key", ctx.Err())
	}
}

func (r *Reserver) work(ctx context.Context, q chan *call) {
	batch := make([]*call, 0, maxBatch)
	for {
		select {
		case first := <-q:
			batch = append(batch[:0], first)
		case <-ctx.Done():
			select {
			case first := <-q: // drain what was queued before the end
				batch = append(batch[:0], first)
			default:
				return
			}
		}
	gather:
		for len(batch) < maxBatch {
			select {
			case c := <-q:
				batch = append(batch, c)
			default:
				break gather
			}
		}
		r.runBatch(live(batch))
	}
}

// live drops the callers who left before their attempt was sent.
func live(batch []*call) []*call {
	kept := batch[:0]
	for _, c := range batch {
		if c.ctx.Err() == nil {
			kept = append(kept, c)
		}
	}
	return kept
}

// runBatch sends one batch. A lost reply is resolved by sending the same batch
// once more: each attempt that was carried out answers Replayed with its own
// task, which is the acceptance that got lost.
func (r *Reserver) runBatch(batch []*call) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	start := time.Now()
	outcomes, err := r.send(ctx, batch)
	if err != nil && ambiguous(err) {
		r.log.WarnContext(ctx, "reserve reply lost, asking again", slog.Int("attempts", len(batch)), slog.Any("error", err))
		if outcomes, err = r.send(ctx, batch); err != nil {
			err = fault.Wrap(fault.Timeout, "no answer from the gate; ask again with the same idempotency key", fmt.Errorf("%w: %w", ErrUnknown, err))
		}
	} else if err != nil {
		err = fault.Wrap(fault.Unavailable, "the gate cannot be reached", fmt.Errorf("reserve: %w", err))
	}
	r.meter.Batch(len(batch), time.Since(start), err)
	for i, c := range batch {
		if err != nil {
			c.done <- result{err: err}
			continue
		}
		o := outcomes[i]
		if o.Code == Replayed && o.Task == c.attempt.Task {
			o.Code = Accepted
		}
		if o.Code == Accepted {
			o.Task = c.attempt.Task
		}
		c.done <- result{outcome: o}
	}
}
