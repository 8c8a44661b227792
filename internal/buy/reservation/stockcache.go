package reservation

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/identity/person"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

const (
	// refreshEvery is the interval at which a process reads all loaded gates, in one
	// pipeline. It bounds the age of an outdated sold-out view.
	refreshEvery = 200 * time.Millisecond
	// idleRefresh is the interval while no gate has changed and no attempt was checked for
	// idleAfter. It is below viewTTL.
	idleRefresh = 800 * time.Millisecond
	idleAfter   = 5 * time.Second
	// viewTTL is how long after a read a view may refuse attempts.
	viewTTL = time.Second
)

// View is the gate of an item as this process last read it.
type View struct {
	Sale          id.Sale
	Item          id.Item
	State         string // GateOpen, GatePaused, GateEnded or GateLoading
	Epoch         int64
	Opens         time.Time
	Closes        time.Time
	Limit         int
	Total         int
	Stock         int // available units
	Reserved      int // units reserved or sold
	Revision      int64
	WaitlistUntil time.Time // until then, released units are for the waitlist
	Kept          string    // shares of the stock, see ParseShares; "" = none
	ReadAt        time.Time
	Since         time.Time // when this process first read the gate in this state
}

// ForSale returns the units that every buyer may take at now, in Redis time: none while
// released units are for the waitlist.
func (v View) ForSale(now time.Time) int { return v.ForShare("", now) }

// ForShare returns the units that a buyer of a share may take at now, in Redis time.
func (v View) ForShare(share person.Key, now time.Time) int {
	shares, err := ParseShares(v.Kept)
	if err != nil {
		return max(0, v.Stock) // Redis decides
	}
	spare, own := free(v.Stock, shares, share, now)
	if now.Before(v.WaitlistUntil) {
		spare = min(own, v.Stock)
	}
	return max(0, spare)
}

// ItemRef identifies an item to watch.
type ItemRef struct {
	Sale id.Sale
	Item id.Item
}

// Items lists items of the catalogue.
type Items interface {
	// Loaded lists the items whose gates should be in Redis.
	Loaded(ctx context.Context) ([]ItemRef, error)
	// All lists all items.
	All(ctx context.Context) ([]ItemRef, error)
}

// StockCache is the in-memory copy of all loaded gates of one process. It refuses
// attempts that Redis would certainly refuse. A view expires after viewTTL, so that
// released units are for sale again within a second. Idempotency keys that may have
// been accepted, and users who may have a reservation, are left to Redis.
type StockCache struct {
	client redis.UniversalClient
	keys   Keys
	clock  clock.Clock
	shared *clock.Shared
	log    *slog.Logger
	items  Items
	seed   maphash.Seed // for the hashes in accepted

	active atomic.Int64     // Unix ms when a gate last changed or an attempt was checked
	wake   [2]chan struct{} // of each loop of Run, capacity 1: refresh now

	mu       sync.RWMutex
	views    map[id.Item]View          // guarded by mu; by item
	lost     map[id.Item]bool          // guarded by mu; loaded items without a gate in Redis
	accepted map[id.Sale]*acceptedKeys // guarded by mu; by sale; the values are immutable
}

// StockCacheConfig holds the dependencies of a StockCache.
type StockCacheConfig struct {
	Client redis.UniversalClient
	Keys   Keys
	Clock  clock.Clock
	Shared *clock.Shared // nil = follows the clock of Redis
	Log    *slog.Logger
	Items  Items // those loaded are watched
}

// NewStockCache returns an empty cache, which refuses nothing before its first Refresh.
func NewStockCache(cfg StockCacheConfig) *StockCache {
	if cfg.Shared == nil {
		cfg.Shared = clock.NewShared(cfg.Clock, nil, nil, cfg.Log)
	}
	return &StockCache{
		client: cfg.Client, keys: cfg.Keys, clock: cfg.Clock, shared: cfg.Shared, log: cfg.Log,
		items: cfg.Items, seed: maphash.MakeSeed(),
		views: make(map[id.Item]View), accepted: make(map[id.Sale]*acceptedKeys),
		wake: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)},
	}
}

// Run refreshes the views and the accepted idempotency keys until ctx ends.
func (c *StockCache) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { c.repeat(ctx, c.wake[0], c.Refresh) })
	loops.Go(func() { c.repeat(ctx, c.wake[1], c.RefreshAccepted) })
	loops.Wait()
	return nil
}

// interval returns the pause until the next refresh.
func (c *StockCache) interval() time.Duration {
	if c.clock.Now().UnixMilli()-c.active.Load() < idleAfter.Milliseconds() {
		return refreshEvery
	}
	return idleRefresh
}

// touch records that the gates are in use now, at most once a second: every attempt
// calls it. It ends the pauses of an idle cache.
func (c *StockCache) touch(now time.Time) {
	ms, last := now.UnixMilli(), c.active.Load()
	if ms-last < 1000 {
		return
	}
	c.active.Store(ms)
	if ms-last < idleAfter.Milliseconds() {
		return
	}
	for _, wake := range c.wake {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// repeat runs step at the interval until ctx ends, and logs the first of consecutive
// failures.
func (c *StockCache) repeat(ctx context.Context, wake <-chan struct{}, step func(context.Context) error) {
	timer := time.NewTimer(c.interval())
	defer timer.Stop()
	failing := false
	for {
		err := step(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			c.log.WarnContext(ctx, "read gates", slog.Any("error", err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-wake:
		}
		timer.Reset(c.interval())
	}
}

// viewFields are the fields of the item hash that Refresh reads.
var viewFields = []string{"gate", "epoch", "opens", "closes", "limit", "total", "stock", "reserved", "rev", "line",
	"kept"}

// Indexes of the optional fields.
const (
	waitlistField = 9
	keptField     = 10
)

// Refresh reads all loaded gates once. The views of gates that cannot be read stay until
// they are too old.
func (c *StockCache) Refresh(ctx context.Context) error {
	refs, err := c.items.Loaded(ctx)
	if err != nil {
		return fmt.Errorf("list loaded items: %w", err)
	}
	if len(refs) == 0 {
		c.replace(nil, nil, nil)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, viewTTL)
	defer cancel()
	sent := c.clock.Now()
	pipe := c.client.Pipeline()
	clockCmd := pipe.Time(ctx)
	cmds := collect.Map(refs, func(ref ItemRef) *redis.SliceCmd {
		return pipe.HMGet(ctx, c.keys.Item(id.ShardOf(ref.Sale), ref.Item), viewFields...)
	})
	redisconn.ExecEach(ctx, pipe)
	now := c.clock.Now()
	fresh, lost := make([]View, 0, len(refs)), map[id.Item]bool{}
	var unread []id.Item
	var failed error
	for i, ref := range refs {
		if err := cmds[i].Err(); err != nil {
			unread, failed = append(unread, ref.Item), fmt.Errorf("read gates: %w", err)
		} else if v, ok := viewFrom(ref, cmds[i].Val(), now); ok {
			fresh = append(fresh, v)
		} else {
			lost[ref.Item] = true
		}
	}
	c.replace(fresh, unread, lost)
	if clockCmd.Err() == nil {
		c.shared.Observe(ctx, clock.Redis, clockCmd.Val(), sent, now)
	}
	return failed
}

// replace stores fresh views, and keeps a newer view that Update stored in the
// meantime, and the views of the items that could not be read.
func (c *StockCache) replace(fresh []View, unread []id.Item, lost map[id.Item]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	views := make(map[id.Item]View, len(fresh))
	changed := false
	for _, item := range unread {
		if old, ok := c.views[item]; ok {
			views[item] = old
		}
		if c.lost[item] {
			lost[item] = true
		}
	}
	for _, v := range fresh {
		old, ok := c.views[v.Item]
		if ok {
			v = newer(old, v)
		}
		changed = changed || !ok || v.Since != old.Since
		views[v.Item] = v
	}
	if changed || len(views) != len(c.views) {
		c.touch(c.clock.Now())
	}
	c.views, c.lost = views, lost
}

// newer returns the newer of an old view and a view that was read. Since is kept while
// nothing else has changed.
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

// Update stores the stock that a script returned, so that a sold-out item is known at
// once; with shares, at the next refresh, because their units changed, too.
func (c *StockCache) Update(item id.Item, epoch, revision int64, remaining int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.views[item]
	if !ok || epoch != v.Epoch || revision <= v.Revision || v.Kept != "" {
		return
	}
	v.Reserved += v.Stock - remaining
	now := c.clock.Now()
	v.Stock, v.Revision, v.ReadAt, v.Since = remaining, revision, now, now
	c.views[item] = v
}

// View returns the gate of an item as last read; false if it is not loaded or was not
// read yet.
func (c *StockCache) View(item id.Item) (View, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.views[item]
	return v, ok
}

// Lost reports whether Redis had no gate of a loaded item at the last refresh.
func (c *StockCache) Lost(item id.Item) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.lost[item]
}

// ServerTime returns the time that all processes share.
func (c *StockCache) ServerTime() time.Time { return c.shared.Now() }

func viewFrom(ref ItemRef, f []any, now time.Time) (View, bool) {
	n := make([]int64, len(f))
	for i, raw := range f {
		s, ok := raw.(string)
		if i == keptField || !ok && i == waitlistField {
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
	if len(f) != len(viewFields) {
		return View{}, false
	}
	state, _ := f[0].(string)
	kept, _ := f[keptField].(string)
	return View{
		Sale: ref.Sale, Item: ref.Item, State: state, Epoch: n[1],
		Opens: time.UnixMilli(n[2]).UTC(), Closes: time.UnixMilli(n[3]).UTC(),
		Limit: int(n[4]), Total: int(n[5]), Stock: int(n[6]), Reserved: int(n[7]), Revision: n[8],
		WaitlistUntil: time.UnixMilli(n[waitlistField]).UTC(), Kept: kept, ReadAt: now, Since: now,
	}, true
}
