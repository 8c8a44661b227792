package sale

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
)

const (
	// archiveSize bounds what is kept of sales, products and pages that are not in the
	// snapshot: about 2 kB each, 40 kB for a page.
	archiveSize = 512
	// archiveReads is how many of them are read from the database at a time.
	archiveReads = 4
)

// archive caches what was read of sales that are not in the snapshot, and that a name is
// unknown.
type archive struct {
	kept  *lru.Cache[string, kept]
	reads chan struct{} // has room for archiveReads
}

// kept is a value that was read under a mark.
type kept struct {
	value any
	mark  mark
	build int64 // of the snapshot
	at    time.Time
}

func newArchive() archive {
	cache, err := lru.New[string, kept](archiveSize)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return archive{cache, make(chan struct{}, archiveReads)}
}

// fresh reports whether a value is not older than the snapshot.
func (k kept) fresh(s *Snapshot, now time.Time) bool {
	age := now.Sub(k.at)
	return k.build == s.build && (age < maxStale || age < confirmEvery && k.mark.settled(s.mark))
}

// archived returns the value of a key from the cache, or reads it. If the database is
// unreachable it returns the last value.
func archived[T any](ctx context.Context, c *Catalog, key string, read func(ctx context.Context) (T, error)) (T,
	error) {
	snap, err := c.Snapshot(ctx)
	if err != nil {
		var none T
		return none, err
	}
	have, ok := c.archive.kept.Get(key)
	if ok && have.fresh(snap, c.clock.Now()) {
		return have.value.(T), nil
	}
	value, err, _ := c.flight.Do(fmt.Sprint(snap.build, " ", key), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		select {
		case c.archive.reads <- struct{}{}:
			defer func() { <-c.archive.reads }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		now := c.clock.Now()
		value, err := read(ctx)
		if err == nil {
			c.archive.kept.Add(key, kept{value, snap.mark, snap.build, now})
		}
		return value, err
	})
	switch {
	case err == nil:
		return value.(T), nil
	case ok:
		c.log.WarnContext(ctx, "catalogue is served stale", slog.Any("error", err))
		return have.value.(T), nil
	}
	var none T
	return none, err
}

// Sale returns the sale with that id, or nil: from memory when it is active, else from the
// database.
func (c *Catalog) Sale(ctx context.Context, id id.Sale) (*Sale, error) {
	return c.lookUp(ctx, "sale "+id.String(),
		func(s *Snapshot) *Sale { return s.Sale(id) },
		func(ctx context.Context) (*Sale, error) { return c.store.ByID(ctx, id) })
}

// BySlug returns the sale with that slug, or nil, like Sale.
func (c *Catalog) BySlug(ctx context.Context, slug string) (*Sale, error) {
	return c.lookUp(ctx, "slug "+slug,
		func(s *Snapshot) *Sale { return s.BySlug(slug) },
		func(ctx context.Context) (*Sale, error) { return c.store.BySlug(ctx, slug) })
}

// Item returns the item with that id and its sale, or nil, like Sale.
func (c *Catalog) Item(ctx context.Context, id id.Item) (*Item, *Sale, error) {
	v, err := c.lookUp(ctx, "item "+id.String(),
		func(s *Snapshot) *Sale {
			if item := s.Item(id); item != nil {
				return s.Sale(item.SaleID)
			}
			return nil
		},
		func(ctx context.Context) (*Sale, error) { return c.store.ByItem(ctx, id) })
	if v == nil || err != nil {
		return nil, nil, err
	}
	for _, item := range v.Items {
		if item.ID == id {
			return item, v, nil
		}
	}
	return nil, nil, nil
}

func (c *Catalog) lookUp(ctx context.Context, key string, active func(*Snapshot) *Sale,
	read func(context.Context) (*Sale, error)) (*Sale, error) {
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if v := active(snap); v != nil {
		return v, nil
	}
	return archived(ctx, c, key, func(ctx context.Context) (*Sale, error) {
		v, err := ratelimit.Find(ctx, c.absences, read)
		if err == nil && v != nil && (v.Status == Scheduled || v.Status.Loaded()) {
			c.Forget() // newer than the snapshot: a buyer who sees it can order from it
		}
		return v, err
	})
}

// offered is a product and whether it is in a sale that buyers may see.
type offered struct {
	goods  *Goods
	public bool
}

// Goods returns the product with that id, or nil, and whether it is in a sale that buyers
// may see.
func (c *Catalog) Goods(ctx context.Context, id id.Goods) (_ *Goods, public bool, err error) {
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return nil, false, err
	}
	if g := snap.GoodsByID(id); g != nil && snap.PublicGoods(id) {
		return g, true, nil
	}
	one, err := archived(ctx, c, "goods "+id.String(), func(ctx context.Context) (o offered, err error) {
		read := func(ctx context.Context) (*Goods, error) { return c.store.GoodsByID(ctx, id) }
		if o.goods, err = ratelimit.Find(ctx, c.absences, read); o.goods != nil && err == nil {
			o.public, err = c.store.Offered(ctx, id)
		}
		return o, err
	})
	return one.goods, one.public, err
}
