package reservation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/batch"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/tracing"
)

const (
	// maxBatch bounds one script call: 256 attempts occupy Redis for about 2 ms.
	maxBatch = 256
	// batchesInFlight bounds the concurrent batches of a shard. With two, each large batch
	// is followed by one of a single attempt.
	batchesInFlight = 1
	// gatherAttempts is the least time between two batches of a shard: a script call costs
	// Redis as much as a dozen attempts, and its message a transaction of the worker.
	gatherAttempts = 2 * time.Millisecond
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
		g.log.WarnContext(ctx, "reserve: reply lost, sending again", slog.Int("attempts", len(attempts)),
			slog.Any("error", err))
		if outcomes, err = g.sendReserve(ctx, attempts, traces); err != nil {
			err = lostTwice(err)
		}
	} else if err != nil {
		err = fault.Wrap(fault.Unavailable, "The sale cannot be reached now. Please try again with the same idempotency key.",
			fmt.Errorf("reserve: %w", err))
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
	return fault.Wrap(fault.Timeout, "It is unknown whether this worked. Please try again with the same idempotency key.",
		fmt.Errorf("%w: %w", ErrUnknown, err))
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

// table numbers keys in the order of their first use, from 0.
type table[K comparable] struct {
	keys []K
	at   map[K]int
}

func (t *table[K]) index(k K) int {
	if n := len(t.keys); n > 0 && t.keys[n-1] == k { // usually the same key as before
		return n - 1
	}
	i, ok := t.at[k]
	if !ok {
		if t.at == nil {
			t.at = map[K]int{}
		}
		i = len(t.keys)
		t.at[k] = i
		t.keys = append(t.keys, k)
	}
	return i
}

// itemOfSale is an item with its sale.
type itemOfSale struct {
	sale id.Sale
	item id.Item
}

// sendReserve runs lua/reserve.lua for a batch of attempts on one shard. traces are those
// of the attempts, for the order message.
func (g *Gate) sendReserve(ctx context.Context, attempts []*Attempt, traces string) ([]Outcome, error) {
	shard := attempts[0].Shard()
	var items table[itemOfSale]
	itemOf := make([]int, len(attempts))
	var first []*Attempt // by item
	counted := false
	for i, a := range attempts {
		itemOf[i] = items.index(itemOfSale{a.Sale, a.Item})
		if itemOf[i] == len(first) {
			first = append(first, a)
		}
		counted = counted || a.Tries.Burst > 0
	}
	orders := g.keys.Orders(shard)
	keys := append(make([]string, 0, 2+7*len(items.keys)), orders, stream.SumKey(orders))
	args := append(make([]any, 0, 8+4*len(items.keys)+9*len(attempts)), len(attempts), recordTTL.Milliseconds(),
		len(items.keys),
		counted, stream.FieldID, stream.FieldPayload, traces)
	for i, b := range items.keys {
		keys = append(keys, g.keys.Item(shard, b.item), g.keys.Reservations(shard, b.item), g.keys.Permits(shard, b.item),
			g.keys.IdempotencyKeys(shard, b.sale),
			g.keys.FormerReservations(shard, b.item), g.keys.Units(shard, b.sale), g.keys.Tries(shard, b.sale))
		args = append(args, b.sale.String(), b.item.String(), first[i].Terms, first[i].OnlyItem)
	}
	for i, a := range attempts {
		args = append(args, itemOf[i]+1, a.User.String(), a.Task.String(), a.Permit.text(), a.Quantity, a.IdempotencyKey,
			a.Permit.Persons.String())
		if counted {
			args = append(args, a.Tries.Burst, a.Tries.windowMs())
		}
	}
	args = append(args, originsOf(attempts))
	reply, err := reserveScript.Run(ctx, g.reserveClient, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	return parseOutcomes(reply, itemOf, len(items.keys))
}

// originsOf returns the origins of attempts as the scripts take them; "" if none is known.
func originsOf(attempts []*Attempt) string {
	if !slices.ContainsFunc(attempts, func(a *Attempt) bool { return !a.Origin.IsZero() }) {
		return ""
	}
	var text strings.Builder
	for _, a := range attempts {
		text.WriteString(a.Origin.String())
	}
	return text.String()
}

// replyReader reads the flat reply of a script from front to back.
type replyReader struct {
	values    []any
	malformed bool // a value is missing or has another type
}

func take[T any](r *replyReader) (v T) {
	if len(r.values) == 0 {
		r.malformed = true
		return v
	}
	v, ok := r.values[0].(T)
	r.malformed = r.malformed || !ok
	r.values = r.values[1:]
	return v
}

// done reports whether the whole reply was read and had the expected types.
func (r *replyReader) done() bool { return !r.malformed && len(r.values) == 0 }

// namesTask reports whether the reply has a task after the code.
func (c Code) namesTask() bool {
	return c == Replayed || c == IdempotencyMismatch || c == PathInvalid || c == AlreadyHolding
}

// leavesUnits reports whether the reply has the units that a limit leaves after the code.
func (c Code) leavesUnits() bool {
	return c == OverLimit || c == OverSaleLimit || c == OverContactLimit || c == OverAddressLimit || c == OverCode
}

// parseOutcomes parses the reply of lua/reserve.lua: the items, then the attempts.
// itemOf is the index of each attempt's item.
func parseOutcomes(reply []any, itemOf []int, items int) ([]Outcome, error) {
	r := replyReader{values: reply}
	at := time.UnixMilli(take[int64](&r)).UTC()
	gates := make([]Outcome, items)
	for i := range gates {
		gates[i] = Outcome{At: at, Epoch: take[int64](&r), Opens: time.UnixMilli(take[int64](&r)).UTC()}
	}
	outcomes := make([]Outcome, len(itemOf))
	for i, item := range itemOf {
		code := Code(take[int64](&r))
		left, revision := take[int64](&r), take[int64](&r)
		if code == TooManyTries {
			outcomes[i] = Outcome{Code: code, At: at, Opens: time.UnixMilli(0).UTC(),
				RetryAfter: time.Duration(left) * time.Millisecond}
			continue
		}
		o := gates[item]
		o.Code, o.Remaining, o.Revision = code, int(left), revision
		if code.namesTask() {
			if text := take[string](&r); text != "" {
				task, err := id.ParseUUID[id.Task](text)
				if err != nil {
					return nil, fmt.Errorf("reserve: task of attempt %d: %w", i, err)
				}
				o.Task = task
			}
		}
		if code.leavesUnits() {
			o.LimitLeft = int(take[int64](&r))
		}
		outcomes[i] = o
	}
	if !r.done() {
		return nil, fmt.Errorf("reserve: malformed reply of %d values for %d attempts on %d items", len(reply), len(itemOf),
			items)
	}
	return outcomes, nil
}

// ambiguous reports whether a command that failed with err may have been executed. An
// error reply of Redis, a failed dial and an exhausted pool are certain: nothing was
// executed.
func ambiguous(err error) bool {
	var answered redis.Error
	if errors.As(err, &answered) {
		return strings.HasPrefix(answered.Error(), "UNKILLABLE") // UNKILLABLE: the write script is still running
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	return !errors.Is(err, context.Canceled)
}
