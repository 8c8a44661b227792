package reservation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/internal/platform/batch"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/tracing"
)

const (
	// maxBatch bounds one script call: 256 attempts occupy Redis for about 2 ms.
	maxBatch = 256
	// batchesInFlight bounds the concurrent batches of a shard: one runs in Redis while
	// the next is collected.
	batchesInFlight = 2
	// maxWaiting bounds the queued attempts of a shard; above it Reserve returns
	// OVERLOADED and takes nothing.
	maxWaiting = 4096
	// DefaultTimeout is the timeout of one batch of reservations, its second send
	// included, or of look-ups.
	DefaultTimeout = 2 * time.Second
	// overloadRetry is the RetryAfter of OVERLOADED.
	overloadRetry = 500 * time.Millisecond
)

// ErrUnknown is wrapped by errors after which the stock may or may not have been taken,
// because the reply of Redis was lost twice. Repeating the attempt with the same
// idempotency key returns its outcome.
var ErrUnknown = errors.New("reservation outcome unknown")

// Reserve takes stock for one attempt. Attempts on a shard that arrive while a batch is
// in flight share the next one. Errors: OVERLOADED (nothing was taken), UNAVAILABLE
// (Redis cannot be reached, nothing was taken), or an error that wraps ErrUnknown. If
// ctx ends first the attempt may still be made; repeating it with the same idempotency
// key returns its outcome.
func (g *Gate) Reserve(ctx context.Context, a Attempt) (Outcome, error) {
	a.trace = tracing.RefOf(ctx)
	o, err := g.attempts[a.Shard()].Do(ctx, &a)
	switch {
	case err == nil:
		g.metrics.outcome(o.Code)
	case errors.Is(err, batch.ErrFull):
		err = &fault.Error{Code: fault.Overloaded, Message: "too many buyers at once", RetryAfter: overloadRetry, Err: err}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = fault.Wrap(fault.Timeout, "The answer took too long. Please try again with the same idempotency key.", err)
	}
	return o, err
}

// reserveAll sends one batch of attempts of one shard. After a lost reply it sends the
// same batch once more: an attempt accepted by the lost call then returns Replayed with
// its own task.
func (g *Gate) reserveAll(ctx context.Context, attempts []*Attempt) []batch.Result[Outcome] {
	start := time.Now()
	orders := traced(attempts)
	ctx, span := g.tracer.Batch(ctx, "reserve", orders.Refs())
	span.Count("seckill.attempts", len(attempts))
	traces := orders.String()
	outcomes, err := g.sendReserve(ctx, attempts, traces)
	if err != nil && ambiguous(err) {
		g.log.WarnContext(ctx, "reserve: reply lost, sending again", slog.Int("attempts", len(attempts)), slog.Any("error", err))
		if outcomes, err = g.sendReserve(ctx, attempts, traces); err != nil {
			err = lostTwice(err)
		}
	} else if err != nil {
		err = fault.Wrap(fault.Unavailable, "The sale cannot be reached now. Please try again with the same idempotency key.", fmt.Errorf("reserve: %w", err))
	}
	span.End(err)
	g.metrics.batch(len(attempts), time.Since(start), span.TraceID(), err)
	if err != nil {
		return batch.Fail[Outcome](len(attempts), err)
	}
	results := make([]batch.Result[Outcome], len(attempts))
	for i := range attempts {
		results[i].Value = outcomes[i].own(attempts[i])
	}
	return results
}

// traced returns the attempts whose requests are traced, by task; nil for none.
func traced(attempts []*Attempt) tracing.Orders {
	var orders tracing.Orders
	for _, a := range attempts {
		if !a.trace.IsValid() {
			continue
		}
		if orders == nil {
			orders = tracing.Orders{}
		}
		orders[a.Task] = a.trace
	}
	return orders
}

func lostTwice(err error) error {
	return fault.Wrap(fault.Timeout, "It is unknown whether this worked. Please try again with the same idempotency key.", fmt.Errorf("%w: %w", ErrUnknown, err))
}

// own maps a replay of the attempt's own task to Accepted: the reply of its acceptance
// was lost.
func (o Outcome) own(a *Attempt) Outcome {
	if o.Code == Replayed && o.Task == a.Task {
		o.Code = Accepted
	}
	if o.Code == Accepted {
		o.Task = a.Task
	}
	return o
}
