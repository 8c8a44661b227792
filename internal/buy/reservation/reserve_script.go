package reservation

import (
	"context"
	"fmt"
	"time"

	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

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
	keys := append(make([]string, 0, 2+6*len(items.keys)+len(attempts)), orders, stream.SumKey(orders))
	args := append(make([]any, 0, 7+4*len(items.keys)+8*len(attempts)), len(attempts), recordTTL.Milliseconds(), len(items.keys),
		counted, stream.FieldID, stream.FieldPayload, traces)
	for i, b := range items.keys {
		keys = append(keys, g.keys.Item(shard, b.item), g.keys.Reservations(shard, b.item), g.keys.Permits(shard, b.item), g.keys.IdempotencyKeys(shard, b.sale),
			g.keys.FormerReservations(shard, b.item), g.keys.Units(shard, b.sale))
		args = append(args, b.sale.String(), b.item.String(), first[i].Terms, first[i].OnlyItem)
	}
	for i, a := range attempts {
		args = append(args, itemOf[i]+1, a.User.String(), a.Task.String(), a.Permit.text(), a.Quantity, a.IdempotencyKey)
		if counted {
			keys = append(keys, g.keys.Tries(shard, a.Sale, a.User))
			args = append(args, a.Tries.Burst, a.Tries.windowMs())
		}
	}
	reply, err := reserveScript.Run(ctx, g.reserveClient, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	return parseOutcomes(reply, itemOf, len(items.keys))
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
			outcomes[i] = Outcome{Code: code, At: at, Opens: time.UnixMilli(0).UTC(), RetryAfter: time.Duration(left) * time.Millisecond}
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
		if code == OverLimit || code == OverSaleLimit {
			o.LimitLeft = int(take[int64](&r))
		}
		outcomes[i] = o
	}
	if !r.done() {
		return nil, fmt.Errorf("reserve: malformed reply of %d values for %d attempts on %d items", len(reply), len(itemOf), items)
	}
	return outcomes, nil
}
