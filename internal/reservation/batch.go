package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/internal/stream"
)

// table numbers things in the order in which they come, from 0.
type table[K comparable] struct {
	keys []K
	at   map[K]int
}

func (t *table[K]) index(k K) int {
	if n := len(t.keys); n > 0 && t.keys[n-1] == k { // most often the same as before
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

// bought is an item with its sale.
type bought struct{ sale, item uuid.UUID }

// send runs lua/reserve.lua for a batch of attempts on one shard.
func (r *Reserver) send(ctx context.Context, batch []*call) ([]Outcome, error) {
	shard := batch[0].attempt.Shard()
	var items table[bought]
	var buckets table[string]
	itemOf, bucketOf := make([]int, len(batch)), make([]int, len(batch))
	counted := false
	for i, c := range batch {
		itemOf[i] = items.index(bought{c.attempt.Sale, c.attempt.Item})
		bucketOf[i] = buckets.index(r.keys.Tasks(shard, c.attempt.Task))
		counted = counted || c.attempt.Tries.Burst > 0
	}
	keys := append(make([]string, 0, 1+4*len(items.keys)+len(buckets.keys)+2*len(batch)), r.keys.Orders(shard))
	args := append(make([]any, 0, 7+2*len(items.keys)+10*len(batch)), len(batch), recordTTL.Milliseconds(), len(items.keys), len(buckets.keys),
		counted, stream.FieldID, stream.FieldPayload)
	for _, b := range items.keys {
		keys = append(keys, r.keys.Item(shard, b.item), r.keys.Holders(shard, b.item), r.keys.Permits(shard, b.item), r.keys.Idems(shard, b.sale))
		args = append(args, b.sale.String(), b.item.String())
	}
	keys = append(keys, buckets.keys...)
	for i, c := range batch {
		a := &c.attempt
		keys = append(keys, r.keys.Path(shard, a.Item, a.User))
		args = append(args, itemOf[i]+1, bucketOf[i]+1, a.User.String(), a.Task.String(), a.PathToken, a.Quantity, a.IdempotencyKey, a.Message)
		if counted {
			keys = append(keys, r.keys.Tries(shard, a.Sale, a.User))
			args = append(args, a.Tries.Burst, a.Tries.everyMs())
		}
	}
	reply, err := reserveScript.Run(ctx, r.client, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	return parse(reply, itemOf, len(items.keys))
}

// answers reads the flat reply of a script from front to back.
type answers struct {
	values []any
	odd    bool // something was missing, or of another type
}

func take[T any](a *answers) (v T) {
	if len(a.values) == 0 {
		a.odd = true
		return v
	}
	v, ok := a.values[0].(T)
	a.odd = a.odd || !ok
	a.values = a.values[1:]
	return v
}

// namesTask tells whether a task stands behind a code in the reply.
func (c Code) namesTask() bool {
	return c == Replayed || c == IdempotencyMismatch || c == PathInvalid || c == AlreadyHolding
}

// parse reads the reply of lua/reserve.lua: what is said of each item, then of each
// attempt. itemOf tells the item of an attempt, from 0.
func parse(reply []any, itemOf []int, items int) ([]Outcome, error) {
	a := answers{values: reply}
	at := time.UnixMilli(take[int64](&a)).UTC()
	gates := make([]Outcome, items)
	for i := range gates {
		gates[i] = Outcome{At: at, Epoch: take[int64](&a), Opens: time.UnixMilli(take[int64](&a)).UTC()}
	}
	outcomes := make([]Outcome, len(itemOf))
	for i, item := range itemOf {
		code := Code(take[int64](&a))
		left, revision := take[int64](&a), take[int64](&a)
		if code == TooManyTries {
			outcomes[i] = Outcome{Code: code, At: at, Opens: time.UnixMilli(0).UTC(), RetryAfter: time.Duration(left) * time.Millisecond}
			continue
		}
		o := gates[item]
		o.Code, o.Remaining, o.Revision = code, int(left), revision
		if code.namesTask() {
			if text := take[string](&a); text != "" {
				task, err := uuid.Parse(text)
				if err != nil {
					return nil, fmt.Errorf("reserve: task of attempt %d: %w", i, err)
				}
				o.Task = task
			}
		}
		outcomes[i] = o
	}
	if a.odd || len(a.values) > 0 {
		return nil, fmt.Errorf("reserve: odd reply of %d values for %d attempts on %d items", len(reply), len(itemOf), items)
	}
	return outcomes, nil
}
