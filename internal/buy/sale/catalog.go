package sale

import (
	"context"
	"log/slog"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/priority"
	"seckill/internal/platform/ratelimit"
)

const (
	// maxStale is the age after which the catalogue in memory is checked for a new
	// version: one round trip to Redis per process and second.
	maxStale = time.Second
	// patience is how much longer readers use the old catalogue while another call
	// refreshes it.
	patience = 250 * time.Millisecond
	// confirmEvery is how often the database is read although the version in Redis has
	// not changed: for rows that were changed by hand.
	confirmEvery = 30 * time.Second
	// refreshTimeout is the timeout of one refresh.
	refreshTimeout = 5 * time.Second
)

// Catalog serves sales and products at most maxStale old. What is on sale, will be, or has
// ended recently is in process memory: Versions in Redis shows whether anything changed. One
// rebuild runs at a time. Older sales, drafts and lists of products are read from the
// database on demand and cached; the path of an order never does that.
type Catalog struct {
	store    *Store
	versions *Versions // nil = read the version from the database
	clock    clock.Clock
	log      *slog.Logger
	flight   singleflight.Group
	busy     atomic.Bool // a refresh is running
	current  atomic.Pointer[Snapshot]
	archive  archive
	absences *ratelimit.Absences
}

// Snapshot is the active part of the catalogue at one moment: sales that are on sale, will
// be, or have ended recently, and their products. It is read-only.
type Snapshot struct {
	Sales     []*Sale // by start, then id
	version   Version
	mark      mark      // in Redis, read before version
	checkedAt time.Time // when Redis or the database last confirmed the snapshot
	readAt    time.Time // when the database last confirmed it
	forgotten bool
	build     int64 // grows with each snapshot that is read, and when one is forgotten
	sales     map[id.Sale]*Sale
	slugs     map[string]*Sale
	items     map[id.Item]*Item
	goods     map[id.Goods]*Goods
	public    map[id.Goods]bool // goods in sales that buyers may see
}

// NewCatalog returns a Catalog that reads from store at its first use.
func NewCatalog(store *Store, c clock.Clock, log *slog.Logger) *Catalog {
	return &Catalog{store: store, clock: c, log: log, archive: newArchive()}
}

// Following makes the catalogue check Redis instead of the database for changes. Call
// it before the first read.
func (c *Catalog) Following(v *Versions) *Catalog {
	c.versions = v
	return c
}

// Bounded makes the catalogue bound the reads of ids that nothing has. Call it before the
// first read.
func (c *Catalog) Bounded(a *ratelimit.Absences) *Catalog {
	c.absences = a
	return c
}

// Snapshot returns the catalogue, at most maxStale old. If the database is unreachable
// it returns the last snapshot; the error is for a process that never had one.
func (c *Catalog) Snapshot(ctx context.Context) (*Snapshot, error) {
	have := c.current.Load()
	if have != nil && !have.forgotten {
		age := c.clock.Now().Sub(have.checkedAt)
		if age < maxStale || (age < maxStale+patience && c.busy.Load()) {
			return have, nil
		}
	}
	fresh, err, _ := c.flight.Do("catalogue", func() (any, error) {
		c.busy.Store(true)
		defer c.busy.Store(false)
		return c.refresh(context.WithoutCancel(ctx))
	})
	if err != nil {
		if have == nil {
			return nil, err
		}
		c.log.WarnContext(ctx, "catalogue is served stale", slog.Any("error", err))
		return have, nil
	}
	return fresh.(*Snapshot), nil
}

// Loaded returns the sales whose gates should be in Redis.
func (c *Catalog) Loaded(ctx context.Context) ([]*Sale, error) {
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var loaded []*Sale
	for _, v := range snap.Sales {
		if v.Status.Loaded() {
			loaded = append(loaded, v)
		}
	}
	return loaded, nil
}

// Forget makes the next read include what this process has just written.
func (c *Catalog) Forget() {
	for {
		have := c.current.Load()
		if have == nil || have.forgotten {
			return
		}
		old := *have
		old.forgotten = true
		old.build++
		if c.current.CompareAndSwap(have, &old) {
			return
		}
	}
}

func (c *Catalog) refresh(ctx context.Context) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(priority.Urgent(ctx), refreshTimeout) // all readers wait for it
	defer cancel()
	now := c.clock.Now()
	have := c.current.Load()
	known := have != nil && !have.forgotten
	if known && now.Sub(have.checkedAt) < maxStale {
		return have, nil // another call has refreshed it in the meantime
	}
	current := c.versions.read(ctx) // before the database: a write in between is seen by the next refresh
	if known && now.Sub(have.readAt) < confirmEvery && have.mark.settled(current) {
		return c.keep(have, func(s *Snapshot) { s.checkedAt = now }), nil
	}
	version, err := c.store.Version(ctx, now)
	if err != nil {
		return nil, err
	}
	if have != nil && have.version == version {
		return c.keep(have, func(s *Snapshot) {
			s.checkedAt, s.readAt, s.mark, s.forgotten = now, now, current, false
		}), nil
	}
	sales, err := c.store.Active(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, v := range sales {
		for _, item := range v.Items {
			item.ReadAt = now
		}
	}
	fresh := newSnapshot(sales)
	fresh.version, fresh.mark, fresh.checkedAt, fresh.readAt = version, current, now, now
	if have != nil {
		fresh.build = have.build + 1
	}
	c.replace(have, fresh)
	return fresh, nil
}

// keep confirms the present snapshot.
func (c *Catalog) keep(have *Snapshot, confirm func(*Snapshot)) *Snapshot {
	same := *have
	confirm(&same)
	c.replace(have, &same)
	return &same
}

// replace stores a snapshot. If the catalogue was invalidated during the read, the next
// reader reads again.
func (c *Catalog) replace(have, fresh *Snapshot) {
	if !c.current.CompareAndSwap(have, fresh) {
		old := *fresh
		old.forgotten = true
		old.build++
		c.current.Store(&old)
	}
}

func newSnapshot(sales []*Sale) *Snapshot {
	s := &Snapshot{
		Sales: sales,
		sales: make(map[id.Sale]*Sale, len(sales)), slugs: make(map[string]*Sale, len(sales)),
		items: make(map[id.Item]*Item), goods: make(map[id.Goods]*Goods),
		public: make(map[id.Goods]bool),
	}
	sort.Slice(sales, func(i, j int) bool {
		return lessByTime(sales[i].StartsAt, sales[j].StartsAt, sales[i].ID,
			sales[j].ID)
	})
	for _, v := range sales {
		s.sales[v.ID] = v
		s.slugs[v.Slug] = v
		for _, item := range v.Items {
			s.items[item.ID] = item
			if item.Goods == nil {
				continue
			}
			s.goods[item.Goods.ID] = item.Goods
			if v.Public() && !v.Private {
				s.public[item.Goods.ID] = true
			}
		}
	}
	return s
}

func lessByTime(a, b time.Time, x, y id.Sale) bool {
	if !a.Equal(b) {
		return a.Before(b)
	}
	return strings.Compare(string(x[:]), string(y[:])) < 0
}

// Sale returns the sale with that id, or nil: also for one that is not active. Outside of
// the path of an order use Catalog.Sale, and likewise for the others.
func (s *Snapshot) Sale(id id.Sale) *Sale { return s.sales[id] }

// BySlug returns the sale with that slug, or nil.
func (s *Snapshot) BySlug(slug string) *Sale { return s.slugs[slug] }

// Item returns the item with that id, or nil.
func (s *Snapshot) Item(id id.Item) *Item { return s.items[id] }

// GoodsByID returns the product with that id, or nil.
func (s *Snapshot) GoodsByID(id id.Goods) *Goods { return s.goods[id] }

// PublicGoods reports whether a product is in a sale that all buyers may see.
func (s *Snapshot) PublicGoods(id id.Goods) bool { return s.public[id] }
