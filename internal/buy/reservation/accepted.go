package reservation

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/id"
)

const (
	// acceptedPage is the COUNT of one HSCAN: it occupies Redis for less than 1 ms.
	acceptedPage = 1_000
	// maxAccepted bounds the keys and the buyers of an item, and the recorded keys of a sale,
	// in memory (8 MB each). With more, RefuseAttempt leaves every attempt to Redis.
	maxAccepted = 1 << 20
	// acceptedPause limits the share of time spent on reading keys: after a read that
	// took d, the keys of that sale are not read again for acceptedPause × d.
	acceptedPause = 20
)

// acceptedKeys is the last read of the idempotency keys that took units of a sale. A
// repeated call with such a key returns the first outcome, even after the item is sold
// out. A key is in the reservations of its item, and later among the recorded keys of
// the sale. Within an epoch, recorded keys are only added and expire together, so an
// equal count means equal keys; a loss of Redis that leaves other keys raises the epoch.
type acceptedKeys struct {
	count    int64                 // number of recorded keys at the last read
	epoch    int64                 // of the sale, read before the recorded keys were last counted
	recorded keySet                // of the sale
	reserved map[id.Item]itemKeys  // by item
	gates    map[id.Item]gateState // by item; read before the keys
	next     time.Time             // earliest time of the next read
}

// itemKeys is the keys and the buyers of an item's reservations. They stay complete until
// another order is accepted: a reservation that ends leaves its key and its buyer among them.
type itemKeys struct {
	epoch, taken int64 // of the gate, before the reservations were read
	keys         keySet
	buyers       keySet
}

// keySet is sorted hashes of "user:key", or of users; nil when there were too many.
type keySet []uint64

func (s keySet) mayContain(hash uint64) bool {
	_, found := slices.BinarySearch(s, hash)
	return found || s == nil
}

// gateState is the state of a gate for which the accepted keys are known.
type gateState struct {
	epoch, revision int64
	ended           bool // an ended gate accepts nothing, whatever its revision
}

func (t gateState) matches(o Outcome) bool {
	return t.epoch == o.Epoch && (t.revision == o.Revision || t.ended && o.Code == Ended)
}

// mayBeAccepted returns false only if it is known that the user has no reservation of the
// item, and that the idempotency key, "" = none, has taken nothing.
func (c *StockCache) mayBeAccepted(item id.Item, o Outcome, user, key string) bool {
	c.mu.RLock()
	known := c.accepted[c.views[item].Sale]
	c.mu.RUnlock()
	if known == nil || !known.gates[item].matches(o) {
		return true
	}
	reserved := known.reserved[item]
	if reserved.buyers.mayContain(maphash.String(c.seed, user)) {
		return true
	}
	if key == "" {
		return false
	}
	hash := maphash.String(c.seed, user+":"+key)
	return known.recorded.mayContain(hash) || reserved.keys.mayContain(hash)
}

// RefreshAccepted counts the accepted keys of each sale with an item that Refuse
// refuses, and reads them if a count has changed. Until the first read,
// RefuseAttempt leaves such items to Redis.
func (c *StockCache) RefreshAccepted(ctx context.Context) error {
	for sale, gates := range c.refused() {
		if err := c.refreshAccepted(ctx, sale, gates); err != nil {
			return fmt.Errorf("read accepted keys of sale %s: %w", sale, err)
		}
	}
	return nil
}

// errTooSoon ends a read that has to wait.
var errTooSoon = errors.New("read too soon after the last one")

func (c *StockCache) refreshAccepted(ctx context.Context, sale id.Sale, gates map[id.Item]gateState) error {
	c.mu.RLock()
	known := c.accepted[sale]
	c.mu.RUnlock()
	if known == nil {
		known = &acceptedKeys{count: -1}
	}
	began := c.clock.Now()
	now, read, err := c.readAccepted(ctx, sale, gates, *known, !began.Before(known.next))
	switch {
	case errors.Is(err, errTooSoon):
		now = *known
		now.gates = nil // valid for no gate
	case err != nil:
		return err
	case read:
		end := c.clock.Now()
		now.next = end.Add(acceptedPause * end.Sub(began))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted[sale] = &now
	return nil
}

// readAccepted returns the keys of a sale, and whether any were read again. Reservations
// are read first: the key of one that ends in the meantime is among the recorded ones.
func (c *StockCache) readAccepted(
	ctx context.Context, sale id.Sale, gates map[id.Item]gateState, known acceptedKeys, may bool,
) (now acceptedKeys, read bool, err error) {
	shard := id.ShardOf(sale)
	now = acceptedKeys{count: known.count, epoch: epochOf(gates), recorded: known.recorded,
		reserved: map[id.Item]itemKeys{}, gates: gates, next: known.next}
	for item, gate := range gates {
		taken, err := c.client.HGet(ctx, c.keys.Item(shard, item), "taken").Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return now, false, err
		}
		last, ok := known.reserved[item]
		if !ok || last.epoch != gate.epoch || last.taken != taken {
			if !may {
				return now, false, errTooSoon
			}
			read = true
			last = itemKeys{epoch: gate.epoch, taken: taken}
			if last.keys, last.buyers, err = c.readReservations(ctx, c.keys.Reservations(shard, item)); err != nil {
				return now, false, err
			}
		}
		now.reserved[item] = last
	}
	recorded := c.keys.IdempotencyKeys(shard, sale)
	if now.count, err = c.client.HLen(ctx, recorded).Result(); err != nil || now.count == known.count &&
		now.epoch == known.epoch {
		return now, read, err
	}
	if !may {
		return now, false, errTooSoon
	}
	now.recorded = nil
	var keys keySet
	complete, err := c.scan(ctx, recorded, func(field, _ string) { keys = append(keys, maphash.String(c.seed, field)) })
	if complete {
		now.recorded = keys.sorted()
	}
	return now, true, err
}

// epochOf returns the highest epoch of the gates of a sale.
func epochOf(gates map[id.Item]gateState) (epoch int64) {
	for _, g := range gates {
		epoch = max(epoch, g.epoch)
	}
	return epoch
}

// keyOfReservation returns "user:key", or "" for a reservation without a key.
func keyOfReservation(user, record string) string {
	parts := strings.SplitN(record, "|", 4)
	if len(parts) < 4 || parts[3] == "" {
		return ""
	}
	return user + ":" + parts[3]
}

// refused returns the gates that Refuse refuses or that are paused or ended, by sale and item.
// It drops the accepted keys of sales that are no longer loaded.
func (c *StockCache) refused() map[id.Sale]map[id.Item]gateState {
	c.mu.Lock()
	defer c.mu.Unlock()
	sales, loaded := map[id.Sale]map[id.Item]gateState{}, map[id.Sale]bool{}
	for item, v := range c.views {
		loaded[v.Sale] = true
		o, refused := c.refuse(item, "")
		if !refused && (v.State == GatePaused || v.State == GateEnded) {
			o, refused = Outcome{Epoch: v.Epoch, Revision: v.Revision}, true
		}
		if !refused || o.Code == NotStarted {
			continue
		}
		if sales[v.Sale] == nil {
			sales[v.Sale] = map[id.Item]gateState{}
		}
		sales[v.Sale][item] = gateState{epoch: o.Epoch, revision: o.Revision, ended: o.Code == Ended}
	}
	for sale := range c.accepted {
		if !loaded[sale] {
			delete(c.accepted, sale)
		}
	}
	return sales
}

// readReservations returns the keys and the users of reservations; nil when there are too
// many.
func (c *StockCache) readReservations(ctx context.Context, hash string) (keys, buyers keySet, err error) {
	complete, err := c.scan(ctx, hash, func(user, record string) {
		buyers = append(buyers, maphash.String(c.seed, user))
		if key := keyOfReservation(user, record); key != "" {
			keys = append(keys, maphash.String(c.seed, key))
		}
	})
	if !complete {
		return nil, nil, err
	}
	return keys.sorted(), buyers.sorted(), nil
}

// sorted returns the set for mayContain, which is not nil.
func (s keySet) sorted() keySet {
	slices.Sort(s)
	return append(keySet{}, slices.Compact(s)...)
}

// scan visits the fields of a Redis hash; false when they are too many, or after an error.
func (c *StockCache) scan(ctx context.Context, hash string, visit func(field, value string)) (complete bool,
	err error) {
	count, err := c.client.HLen(ctx, hash).Result()
	if err != nil || count > maxAccepted {
		return false, err
	}
	visited := 0
	for cursor := uint64(0); ; {
		page, next, err := c.client.HScan(ctx, hash, cursor, "", acceptedPage).Result()
		if err != nil {
			return false, err
		}
		for i := 0; i+1 < len(page); i += 2 { // field, value, …
			visit(page[i], page[i+1])
		}
		if visited += len(page) / 2; visited > maxAccepted {
			return false, nil
		}
		if cursor = next; cursor == 0 {
			return true, nil
		}
	}
}
