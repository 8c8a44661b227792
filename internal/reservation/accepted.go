package reservation

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/internal/id"
)

const (
	// acceptedPage is the COUNT of one HSCAN: it occupies Redis for less than 1 ms.
	acceptedPage = 1_000
	// maxAccepted bounds the keys of a sale in memory (8 MB). For a sale with more
	// keys, RefuseAttempt leaves every attempt to Redis.
	maxAccepted = 1 << 20
	// acceptedPause limits the share of time spent on reading keys: after a read that
	// took d, the keys of that sale are not read again for acceptedPause × d.
	acceptedPause = 20
)

// acceptedKeys is the last read of the idempotency keys that took units of a sale. A
// repeated call with such a key returns the first outcome, even after the item is sold
// out. Within an epoch keys are only added and expire together, so an equal count means
// equal keys; a loss of Redis that leaves other keys raises the epoch.
type acceptedKeys struct {
	count int64                   // number of keys in Redis at the last read
	epoch int64                   // of the sale, read before the keys were last counted
	keys  []uint64                // hashes, sorted; nil when there were too many
	gates map[uuid.UUID]gateState // by item; read before the keys were last counted
	next  time.Time               // earliest time of the next read
}

// gateState is the state of a gate for which the accepted keys are known.
type gateState struct {
	epoch, revision int64
	ended           bool // an ended gate accepts nothing, whatever its revision
}

func (t gateState) matches(o Outcome) bool {
	return t.epoch == o.Epoch && (t.revision == o.Revision || t.ended && o.Code == Ended)
}

// RefuseAttempt is Refuse, except for an idempotency key that may have been accepted:
// the outcome of that key is in Redis.
func (c *StockCache) RefuseAttempt(item, user uuid.UUID, key string) (Outcome, bool) {
	o, refused := c.Refuse(item)
	if refused && o.Code != NotStarted && c.mayBeAccepted(item, o, user.String()+":"+key) {
		return Outcome{}, false
	}
	return o, refused
}

// mayBeAccepted returns false only if the idempotency key is known to have taken
// nothing.
func (c *StockCache) mayBeAccepted(item uuid.UUID, o Outcome, field string) bool {
	c.mu.RLock()
	known := c.accepted[c.views[item].Sale]
	c.mu.RUnlock()
	if known == nil || known.keys == nil || !known.gates[item].matches(o) {
		return true
	}
	_, found := slices.BinarySearch(known.keys, maphash.String(c.seed, field))
	return found
}

// RefreshAccepted counts the accepted keys of each sale with an item that Refuse
// refuses, and reads the keys if the count has changed. Until the first read,
// RefuseAttempt leaves such items to Redis.
func (c *StockCache) RefreshAccepted(ctx context.Context) error {
	for sale, gates := range c.refused() {
		if err := c.refreshAccepted(ctx, sale, gates); err != nil {
			return fmt.Errorf("read accepted keys of sale %s: %w", sale, err)
		}
	}
	return nil
}

func (c *StockCache) refreshAccepted(ctx context.Context, sale uuid.UUID, gates map[uuid.UUID]gateState) error {
	count, err := c.client.HLen(ctx, c.keys.IdempotencyKeys(id.ShardOf(sale), sale)).Result()
	if err != nil {
		return err
	}
	c.mu.RLock()
	known := c.accepted[sale]
	c.mu.RUnlock()
	began := c.clock.Now()
	now := acceptedKeys{count: count, epoch: epochOf(gates), gates: gates}
	switch {
	case known != nil && known.count == count && known.epoch == now.epoch:
		now.keys, now.next = known.keys, known.next
	case count > maxAccepted:
	case known != nil && began.Before(known.next):
		now = acceptedKeys{count: known.count, epoch: known.epoch, keys: known.keys, next: known.next} // valid for no gate
	default:
		if now.keys, err = c.readAccepted(ctx, sale); err != nil {
			return err
		}
		end := c.clock.Now()
		now.next = end.Add(acceptedPause * end.Sub(began))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted[sale] = &now
	return nil
}

// epochOf returns the highest epoch of the gates of a sale.
func epochOf(gates map[uuid.UUID]gateState) (epoch int64) {
	for _, g := range gates {
		epoch = max(epoch, g.epoch)
	}
	return epoch
}

// refused returns the gates that Refuse refuses, by sale and item. It drops the
// accepted keys of sales that are no longer loaded.
func (c *StockCache) refused() map[uuid.UUID]map[uuid.UUID]gateState {
	c.mu.Lock()
	defer c.mu.Unlock()
	sales, loaded := map[uuid.UUID]map[uuid.UUID]gateState{}, map[uuid.UUID]bool{}
	for item, v := range c.views {
		loaded[v.Sale] = true
		o, refused := c.refuse(item)
		if !refused || o.Code == NotStarted {
			continue
		}
		if sales[v.Sale] == nil {
			sales[v.Sale] = map[uuid.UUID]gateState{}
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

// readAccepted returns the sorted hashes of the accepted keys of a sale.
func (c *StockCache) readAccepted(ctx context.Context, sale uuid.UUID) ([]uint64, error) {
	hash := c.keys.IdempotencyKeys(id.ShardOf(sale), sale)
	keys := []uint64{}
	for cursor := uint64(0); ; {
		page, next, err := c.client.HScan(ctx, hash, cursor, "", acceptedPage).Result()
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(page); i += 2 { // field, value, …
			keys = append(keys, maphash.String(c.seed, page[i]))
		}
		if len(keys) > maxAccepted {
			return nil, nil
		}
		if cursor = next; cursor == 0 {
			slices.Sort(keys)
			return slices.Compact(keys), nil
		}
	}
}
