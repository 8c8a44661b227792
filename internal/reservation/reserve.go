package reservation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
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
		c.done <- result{outcome: o}
	}
}

func (r *Reserver) send(ctx context.Context, batch []*call) ([]Outcome, error) {
	shard := batch[0].attempt.Shard()
	keys := make([]string, 1, 1+7*len(batch))
	keys[0] = r.keys.Orders(shard)
	args := make([]any, 2, 2+18*len(batch))
	args[0], args[1] = len(batch), recordTTL.Milliseconds()
	for _, c := range batch {
		a := &c.attempt
		keys = r.keys.keysOf(keys, a, shard)
		args = append(args, a.User.String(), a.Task.String(), a.PathToken, a.Item.String(), a.Quantity,
			a.IdempotencyKey, a.Record, a.Tries.Burst, a.Tries.everyMs(), len(a.Entry))
		args = append(args, a.Entry...)
	}
	reply, err := reserveScript.Run(ctx, r.client, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	return parse(reply, len(batch))
}

// parse reads the flat reply of lua/reserve.lua.
func parse(reply []any, n int) ([]Outcome, error) {
	if len(reply) != 1+6*n {
		return nil, fmt.Errorf("reserve: reply of %d values for %d attempts", len(reply), n)
	}
	at, ok := reply[0].(int64)
	if !ok {
		return nil, fmt.Errorf("reserve: time is %T", reply[0])
	}
	outcomes := make([]Outcome, n)
	for i := range outcomes {
		v := reply[1+6*i : 7+6*i]
		code, ok1 := v[0].(int64)
		task, ok2 := v[1].(string)
		left, ok3 := v[2].(int64)
		rev, ok4 := v[3].(int64)
		epoch, ok5 := v[4].(int64)
		opens, ok6 := v[5].(int64)
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
			return nil, fmt.Errorf("reserve: unexpected types in the reply of attempt %d", i)
		}
		o := Outcome{
			Code: Code(code), Remaining: int(left), Revision: rev, Epoch: epoch,
			Opens: time.UnixMilli(opens).UTC(), At: time.UnixMilli(at).UTC(),
		}
		if o.Code == TooManyTries {
			o.Remaining, o.RetryAfter = 0, time.Duration(left)*time.Millisecond
		}
		if task != "" {
			u, err := uuid.Parse(task)
			if err != nil {
				return nil, fmt.Errorf("reserve: task of attempt %d: %w", i, err)
			}
			o.Task = u
		}
		outcomes[i] = o
	}
	return outcomes, nil
}
