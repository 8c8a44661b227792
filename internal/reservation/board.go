package reservation

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/clock"
	"seckill/internal/id"
)

const (
	// boardEvery is how often a process reads the gates of the loaded items: one
	// pipeline. It bounds how long a stale sold-out mark can live.
	boardEvery = 200 * time.Millisecond
	// markLife is how long a reading is trusted to refuse somebody.
	markLife = time.Second
	// windowSlack is how far from the opening or the end the local clock may
	// decide by itself; nearer than that, Redis TIME does.
	windowSlack = 250 * time.Millisecond
	// maxSkew is by how much clocks may differ before the log is told, as the doctor has it.
	maxSkew = 500 * time.Millisecond
)

// View is the gate of an item as this process last saw it.
type View struct {
	Sale, Item uuid.UUID
	State      string // GateOpen, GatePaused, GateEnded or GateLoading
	Epoch      int64
	Opens      time.Time
	Closes     time.Time
	Limit      int
	Total      int
	Stock      int // units left to take
	Reserved   int // units held or sold
	Revision   int64
	Kept       time.Time // until then units that come back are for those who wait in line
	ReadAt     time.Time
	Since      time.Time // when this process first saw the gate as it is
}

// ForSale returns the units that anybody may take at a moment by the server's
// clock: none while units are kept for a line.
func (v View) ForSale(now time.Time) int {
	if now.Before(v.Kept) {
		return 0
	}
	return v.Stock
}

// ItemRef names an item to watch.
type ItemRef struct{ Sale, Item uuid.UUID }

// Board is the view that one process has of all loaded gates: it refuses the
// hopeless in memory, before Redis. A mark dies after markLife, and is undone by
// the next reading that shows stock, so that units which come back are on sale
// again within a second. Who may have got something already is left to Redis.
type Board struct {
	client redis.UniversalClient
	keys   Keys
	clock  clock.Clock
	log    *slog.Logger
	loaded func(ctx context.Context) ([]ItemRef, error) // what to watch
	seed   maphash.Seed                                 // of the hashes in takers

	mu     sync.RWMutex
	views  map[uuid.UUID]View    // guarded by mu; by item
	offset time.Duration         // guarded by mu; Redis time minus local time
	synced bool                  // guarded by mu; whether offset was measured
	off    bool                  // guarded by mu; whether it was more than maxSkew
	takers map[uuid.UUID]*takers // guarded by mu; by sale; what it points to never changes
}

// BoardConfig says what a board needs.
type BoardConfig struct {
	Client redis.UniversalClient
	Keys   Keys
	Clock  clock.Clock
	Log    *slog.Logger
	Loaded func(ctx context.Context) ([]ItemRef, error)
}

// NewBoard returns an empty board: until its first reading it refuses nobody.
func NewBoard(cfg BoardConfig) *Board {
	return &Board{
		client: cfg.Client, keys: cfg.Keys, clock: cfg.Clock, log: cfg.Log,
		loaded: cfg.Loaded, seed: maphash.MakeSeed(),
		views: make(map[uuid.UUID]View), takers: make(map[uuid.UUID]*takers),
	}
}

// Run reads the gates until ctx ends, and beside them who took units.
func (b *Board) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { b.every(ctx, b.Refresh) })
	loops.Go(func() { b.every(ctx, b.Learn) })
	loops.Wait()
	return nil
}

// every does a step until ctx ends, and says once when it fails.
func (b *Board) every(ctx context.Context, step func(context.Context) error) {
	ticker := time.NewTicker(boardEvery)
	defer ticker.Stop()
	failing := false
	for {
		err := step(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			b.log.WarnContext(ctx, "gates cannot be read", slog.Any("error", err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// boardFields are what Refresh reads of each item hash.
var boardFields = []string{"gate", "epoch", "opens", "closes", "limit", "total", "stock", "reserved", "rev", "line"}

// kept is the field that a gate may lack.
const kept = 9

// Refresh reads all loaded gates once.
func (b *Board) Refresh(ctx context.Context) error {
	refs, err := b.loaded(ctx)
	if err != nil {
		return fmt.Errorf("list loaded items: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, markLife)
	defer cancel()
	sent := b.clock.Now()
	pipe := b.client.Pipeline()
	clockCmd := pipe.Time(ctx)
	cmds := make([]*redis.SliceCmd, len(refs))
	for i, ref := range refs {
		cmds[i] = pipe.HMGet(ctx, b.keys.Item(id.ShardOf(ref.Sale), ref.Item), boardFields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("read gates: %w", err)
	}
	now := b.clock.Now()
	fresh := make([]View, 0, len(refs))
	for i, ref := range refs {
		if v, ok := viewFrom(ref, cmds[i].Val(), now); ok {
			fresh = append(fresh, v)
		}
	}
	b.replace(fresh)
	b.compare(ctx, clockCmd.Val(), sent, now)
	return nil
}

// Sync reads the clock of Redis alone, so that ServerTime is right before the first
// reading of the gates.
func (b *Board) Sync(ctx context.Context) error {
	sent := b.clock.Now()
	server, err := b.client.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read the clock of redis: %w", err)
	}
	b.compare(ctx, server, sent, b.clock.Now())
	return nil
}

// compare notes by how much the clock of Redis, read some time between two moments,
// differs from ours. The log is told when that is more than it may be, and when it
// is right again. A reading that took long tells nothing.
func (b *Board) compare(ctx context.Context, server, sent, now time.Time) {
	took := now.Sub(sent)
	if took > markLife {
		return
	}
	offset := server.Sub(sent.Add(took / 2))
	off := offset.Abs()-took/2 > maxSkew
	b.mu.Lock()
	turned := off != b.off
	b.offset, b.synced, b.off = offset, true, off
	b.mu.Unlock()
	switch {
	case turned && off:
		b.log.ErrorContext(ctx, "the clock of this host differs from that of redis: run NTP on both", slog.Duration("redis_is_ahead_by", offset))
	case turned:
		b.log.InfoContext(ctx, "the clock of this host agrees with that of redis again")
	}
}

// replace takes the fresh views in, keeping newer ones that replies of the
// scripts brought meanwhile.
func (b *Board) replace(fresh []View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	views := make(map[uuid.UUID]View, len(fresh))
	for _, v := range fresh {
		if old, ok := b.views[v.Item]; ok {
			v = newer(old, v)
		}
		views[v.Item] = v
	}
	b.views = views
}

// newer returns what is known after a reading: what a reply of a script brought
// meanwhile when that is newer, and since when it has been so.
func newer(old, read View) View {
	at := read.ReadAt
	if old.Epoch == read.Epoch && old.Revision > read.Revision {
		read = old
	}
	same := read
	same.ReadAt, same.Since = old.ReadAt, old.Since
	if same == old {
		read.Since = old.Since
	}
	read.ReadAt = at
	return read
}

// Note takes in what the reserve or the release script answered, so that the
// mark of a sold-out item is known at once.
func (b *Board) Note(item uuid.UUID, epoch, revision int64, remaining int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.views[item]
	if !ok || epoch != v.Epoch || revision <= v.Revision {
		return
	}
	v.Reserved += v.Stock - remaining
	now := b.clock.Now()
	v.Stock, v.Revision, v.ReadAt, v.Since = remaining, revision, now, now
	b.views[item] = v
}

// View returns the gate of an item as last seen; false when it is not loaded,
// or was not read yet.
func (b *Board) View(item uuid.UUID) (View, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	v, ok := b.views[item]
	return v, ok
}

// ServerTime returns the time by the clock of Redis, estimated from the last
// reading; the local time before the first.
func (b *Board) ServerTime() time.Time {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.clock.Now().Add(b.offset)
}

// Refuse decides from memory what Redis would surely refuse: NotStarted, Ended
// or SoldOut. Everything else, and everything near a border, returns false and
// is for the script to decide.
func (b *Board) Refuse(item uuid.UUID) (Outcome, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.refuse(item)
}

// refuse is Refuse for callers that hold mu.
func (b *Board) refuse(item uuid.UUID) (Outcome, bool) {
	v, ok := b.views[item]
	local := b.clock.Now()
	if !ok || !b.synced || local.Sub(v.ReadAt) > markLife {
		return Outcome{}, false
	}
	now := local.Add(b.offset)
	o := Outcome{Remaining: v.Stock, Revision: v.Revision, Epoch: v.Epoch, Opens: v.Opens, At: now}
	switch {
	case now.Add(windowSlack).Before(v.Opens):
		o.Code = NotStarted
	case now.After(v.Closes.Add(windowSlack)):
		o.Code = Ended
	case v.State == GateOpen && v.ForSale(now) == 0:
		o.Code = SoldOut
	default:
		return Outcome{}, false
	}
	return o, true
}

func viewFrom(ref ItemRef, f []any, now time.Time) (View, bool) {
	n := make([]int64, len(f))
	for i, raw := range f {
		s, ok := raw.(string)
		if !ok && i == kept {
			continue
		}
		if !ok {
			return View{}, false
		}
		if i == 0 {
			continue
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return View{}, false
		}
		n[i] = v
	}
	if len(f) != len(boardFields) {
		return View{}, false
	}
	state, _ := f[0].(string)
	return View{
		Sale: ref.Sale, Item: ref.Item, State: state, Epoch: n[1],
		Opens: time.UnixMilli(n[2]).UTC(), Closes: time.UnixMilli(n[3]).UTC(),
		Limit: int(n[4]), Total: int(n[5]), Stock: int(n[6]), Reserved: int(n[7]), Revision: n[8],
		Kept: time.UnixMilli(n[kept]).UTC(), ReadAt: now, Since: now,
	}, true
}
