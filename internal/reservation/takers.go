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
	// takersPage is how many idempotency keys are asked for at once: less than a
	// millisecond of Redis.
	takersPage = 1_000
	// maxTakers bounds the keys of a sale that are kept here, 8 MB. Where there are
	// more, memory refuses nobody whom Redis might answer otherwise.
	maxTakers = 1 << 20
	// takersShare bounds the part of the time that the keys of a sale are read in: a
	// reading is followed by a pause so many times as long.
	takersShare = 20
)

// takers are the idempotency keys that took units of a sale, as a reading found
// them. Who sends one of them again is owed the first answer, sold out or not. Keys
// are only added, and lapse all at once: as long as there are as many, they are the same.
type takers struct {
	count int64               // of the keys in Redis when they were read
	keys  []uint64            // hashes, in order; nil when there were too many
	gates map[uuid.UUID]taken // by item, as it was before the keys were last counted
	next  time.Time           // no new reading before that
}

// taken says for which state of a gate the keys are known.
type taken struct {
	epoch, revision int64
	ended           bool // nobody takes anything any more, however the gate moves
}

func (t taken) holds(o Outcome) bool {
	return t.epoch == o.Epoch && (t.revision == o.Revision || t.ended && o.Code == Ended)
}

// RefuseAttempt decides as Refuse does, except for an idempotency key that may
// have taken units before: its answer is in Redis.
func (b *Board) RefuseAttempt(item, user uuid.UUID, key string) (Outcome, bool) {
	o, refused := b.Refuse(item)
	if refused && o.Code != NotStarted && b.mayHaveTaken(item, o, user.String()+":"+key) {
		return Outcome{}, false
	}
	return o, refused
}

// mayHaveTaken is false only where it is known that a key took nothing.
func (b *Board) mayHaveTaken(item uuid.UUID, o Outcome, field string) bool {
	b.mu.RLock()
	known := b.takers[b.views[item].Sale]
	b.mu.RUnlock()
	if known == nil || known.keys == nil || !known.gates[item].holds(o) {
		return true
	}
	_, found := slices.BinarySearch(known.keys, maphash.String(b.seed, field))
	return found
}

// Learn counts who took units, of each sale with an item that Refuse decides on by
// itself, and reads who where that has changed. Until it has, RefuseAttempt leaves
// such items to Redis.
func (b *Board) Learn(ctx context.Context) error {
	for sale, gates := range b.decided() {
		if err := b.learn(ctx, sale, gates); err != nil {
			return fmt.Errorf("read who took units of sale %s: %w", sale, err)
		}
	}
	return nil
}

func (b *Board) learn(ctx context.Context, sale uuid.UUID, gates map[uuid.UUID]taken) error {
	count, err := b.client.HLen(ctx, b.keys.Idems(id.ShardOf(sale), sale)).Result()
	if err != nil {
		return err
	}
	b.mu.RLock()
	known := b.takers[sale]
	b.mu.RUnlock()
	began := b.clock.Now()
	now := takers{count: count, gates: gates}
	switch {
	case known != nil && known.count == count:
		now.keys, now.next = known.keys, known.next
	case count > maxTakers:
	case known != nil && began.Before(known.next):
		now = takers{count: known.count, keys: known.keys, next: known.next} // of no gate
	default:
		if now.keys, err = b.readTakers(ctx, sale); err != nil {
			return err
		}
		end := b.clock.Now()
		now.next = end.Add(takersShare * end.Sub(began))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takers[sale] = &now
	return nil
}

// decided returns the gates that Refuse decides on by itself, by sale and item, and
// forgets the takers of sales that are loaded no more.
func (b *Board) decided() map[uuid.UUID]map[uuid.UUID]taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	sales, loaded := map[uuid.UUID]map[uuid.UUID]taken{}, map[uuid.UUID]bool{}
	for item, v := range b.views {
		loaded[v.Sale] = true
		o, refused := b.refuse(item)
		if !refused || o.Code == NotStarted {
			continue
		}
		if sales[v.Sale] == nil {
			sales[v.Sale] = map[uuid.UUID]taken{}
		}
		sales[v.Sale][item] = taken{epoch: o.Epoch, revision: o.Revision, ended: o.Code == Ended}
	}
	for sale := range b.takers {
		if !loaded[sale] {
			delete(b.takers, sale)
		}
	}
	return sales
}

// readTakers returns the hashes of the keys that took units of a sale, in order.
func (b *Board) readTakers(ctx context.Context, sale uuid.UUID) ([]uint64, error) {
	hash := b.keys.Idems(id.ShardOf(sale), sale)
	keys := []uint64{}
	for cursor := uint64(0); ; {
		page, next, err := b.client.HScan(ctx, hash, cursor, "", takersPage).Result()
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(page); i += 2 { // field, value, …
			keys = append(keys, maphash.String(b.seed, page[i]))
		}
		if len(keys) > maxTakers {
			return nil, nil
		}
		if cursor = next; cursor == 0 {
			slices.Sort(keys)
			return slices.Compact(keys), nil
		}
	}
}
