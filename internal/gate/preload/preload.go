// Package preload loads sales into Redis and maintains them there. It builds the gate
// of each item from Postgres and the messages that no worker has written yet, under a
// new epoch; moves a sale's status with the clock; sets the state of each gate to its
// sale's status; and removes the gates of settled sales. The lost gate of a sale that
// is over is not rebuilt: it is removed, and Postgres alone decides.
//
// The same build serves the first load and the rebuild of a lost gate. A missing gate,
// or one with an older epoch, is closed, because the reserve script refuses it. Every
// step may run on all processes at once: an epoch is taken by compare-and-set and built
// once, and a gate follows the highest revision of its sale.
package preload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
)

const (
	// Every is the interval of Step.
	Every = 5 * time.Second
	// RetryEvery is the interval of Step while it fails: as soon as a new master of Redis
	// can be reached, its gates are rebuilt.
	RetryEvery = time.Second
	// StepTimeout is the timeout of Step: a build of ten million live orders takes some
	// minutes.
	StepTimeout = 30 * time.Minute
	// salesAtOnce bounds the sales that one Step handles concurrently: a large build
	// does not delay the other sales.
	salesAtOnce = 4
	// DefaultSlot is the length of a load slot. A sale is loaded if it starts in the
	// present slot or one of the DefaultSlots − 1 after it.
	DefaultSlot = 2 * time.Hour
	// DefaultSlots is the number of slots.
	DefaultSlots = 5
	// emptyBefore is the time before its opening at which a sale without stock is loaded.
	emptyBefore = 10 * time.Minute
	// revisionsPerEpoch keeps the stock revisions of a new epoch above every revision
	// that the previous epoch may have shown and Postgres and the stream do not
	// include.
	revisionsPerEpoch = 1000
	// buildTimeout is the time without progress of a build after which another process
	// may start a new one.
	buildTimeout = 10 * time.Second
	// beginTimeout is how long a process that took an epoch may take to begin the
	// build.
	beginTimeout = 3 * time.Second
	// DefaultNoteTimeout bounds how long a step waits for the row of an item to record what it has
	// seen of its gate: the row may be locked by orders that make no progress, and a gate
	// that Redis loses meanwhile is rebuilt by the next step.
	DefaultNoteTimeout = 2 * time.Second
)

// Preloader builds and maintains gates.
type Preloader struct {
	cfg Config
	// failed has the epochs of this process's builds that returned an error, by sale: no
	// process continues such a build.
	failed sync.Map
	// next is the next time that a sale of the last Step opens or ends at; nil = none.
	next atomic.Pointer[time.Time]
}

// Config holds the dependencies of a Preloader.
type Config struct {
	DB       *postgres.DB
	Gate     *reservation.Gate
	Backlog  Backlog
	Versions *sale.Versions  // nil = other processes detect changes by polling
	Outbox   *webhook.Outbox // nil = events for other systems are not written
	Figures  Figures         // nil = the figures of a sale leave Redis with its gates
	Feed     Feed            // nil = log entries are not published
	// Catalog is the catalogue of this process, which reads again after each change; nil = none.
	Catalog      *sale.Catalog
	InFlightWait time.Duration // how long a rebuild waits for the messages that workers are handling; 0 = it does not
	Slot         time.Duration // 0 = DefaultSlot
	Slots        int           // 0 = DefaultSlots
	NoteTimeout  time.Duration // how long a step waits for the row of an item; 0 = DefaultNoteTimeout
	Clock        clock.Clock
	// Shared compares the clocks before an act that cannot be undone; nil = Clock alone.
	Shared *clock.Shared
	Log    *slog.Logger
}

// Backlog reads the order messages that are still in the streams; orderintake.Backlog
// implements it.
type Backlog interface {
	// Requests returns the orders of the messages in a shard, in no particular order; an
	// order may be returned twice.
	Requests(ctx context.Context, shard int) ([]order.Request, error)
	// Unhandled returns those that no worker has acknowledged.
	Unhandled(ctx context.Context, shard int) ([]order.Request, error)
}

// Figures stores the figures of a sale before its gates leave Redis; salestats.Reader
// implements it.
type Figures interface {
	Keep(ctx context.Context, sale id.Sale) error
}

// Feed publishes log entries after their commit; salestats.Feed implements it.
type Feed interface {
	Act(ctx context.Context, line sale.LogLine)
}

// New returns a Preloader.
func New(cfg Config) *Preloader {
	if cfg.Slot == 0 {
		cfg.Slot = DefaultSlot
	}
	if cfg.Slots == 0 {
		cfg.Slots = DefaultSlots
	}
	if cfg.NoteTimeout == 0 {
		cfg.NoteTimeout = DefaultNoteTimeout
	}
	if cfg.Shared == nil {
		cfg.Shared = clock.NewShared(cfg.Clock, nil, nil, cfg.Log)
	}
	return &Preloader{cfg: cfg}
}

func (p *Preloader) forgetCatalog() {
	if p.cfg.Catalog != nil {
		p.cfg.Catalog.Forget()
	}
}

// Step handles all sales once: it loads due sales, rebuilds lost gates, moves statuses
// with the clock, sets the state of gates that differ from their sale, and removes
// settled sales from Redis. It is a periodic.Step. A failure in one sale does not stop
// the others.
func (p *Preloader) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	p.next.Store(nil) // also if the sales cannot be read: the loop would run without a pause
	rows, err := p.cfg.DB.Ent.Sale.Query().Where(entsale.Or(
		entsale.StatusIn(entsale.StatusSCHEDULED, entsale.StatusPREHEATED, entsale.StatusLIVE, entsale.StatusPAUSED),
		entsale.And(entsale.StatusIn(entsale.StatusENDED, entsale.StatusCANCELLED), entsale.SettledAtIsNil()),
	)).All(ctx)
	if err != nil {
		return counts, fmt.Errorf("list sales: %w", err)
	}
	now := p.cfg.Clock.Now()
	p.next.Store(nextTime(rows, now))
	var (
		mu   sync.Mutex
		errs []error // guarded by mu, as counts
		all  errgroup.Group
	)
	all.SetLimit(salesAtOnce)
	for _, row := range rows {
		all.Go(func() error {
			moved, err := p.advanceSafely(ctx, row, now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("advance sale %s: %w", row.ID, err))
			} else if moved != "" {
				counts[moved]++
			}
			return nil
		})
	}
	_ = all.Wait() // the errors are in errs
	if len(counts) > 0 {
		p.forgetCatalog()
	}
	return counts, errors.Join(errs...)
}

// nextTime returns the first opening or end of a sale after now; nil if there is none.
func nextTime(rows []*ent.Sale, now time.Time) *time.Time {
	var next *time.Time
	for _, row := range rows {
		for _, at := range []time.Time{row.StartsAt, row.EndsAt} {
			if at.After(now) && (next == nil || at.Before(*next)) {
				next = &at
			}
		}
	}
	return next
}

// Due returns the time until the next opening or end of a sale, as the last Step read
// them, so that a sale changes its status on time; false without one.
func (p *Preloader) Due() (time.Duration, bool) {
	next := p.next.Load()
	if next == nil {
		return 0, false
	}
	return next.Sub(p.cfg.Clock.Now()), true
}

func (p *Preloader) advanceSafely(ctx context.Context, row *ent.Sale, now time.Time) (moved string, err error) {
	defer periodic.Recover(&err)
	return p.advance(ctx, row, now)
}

// advance makes the one change that is due for a sale and returns its name.
func (p *Preloader) advance(ctx context.Context, row *ent.Sale, now time.Time) (string, error) {
	status := sale.Status(row.Status)
	switch {
	case status == sale.Ended, status == sale.Cancelled:
		return p.settle(ctx, row, now)
	case !now.Before(row.EndsAt):
		return p.end(ctx, row, now)
	case status == sale.Scheduled:
		if due, err := p.due(ctx, row, now); err != nil || !due {
			return "", err
		}
		loaded, err := p.load(ctx, row, sale.TheClock, "")
		return nameIf(loaded, "loaded"), err
	}
	items, err := p.items(ctx, row)
	if err != nil {
		return "", err
	}
	kept, err := p.keep(ctx, row, items, now)
	if err != nil {
		return "", err
	}
	if !kept {
		rebuilt, err := p.load(ctx, row, sale.TheClock, "the gate was not in Redis")
		return nameIf(rebuilt, "rebuilt"), err
	}
	if status == sale.Preheated && !now.Before(row.StartsAt) {
		if err := p.cfg.Shared.Agree(ctx); err != nil {
			return "", fmt.Errorf("open sale: %w", err)
		}
		opened, err := p.change(ctx, row, sale.Change{Act: sale.ActOpen, To: sale.Live, At: now}, nil)
		return nameIf(opened, "opened"), err
	}
	return "", nil
}

// nameIf returns the name of a change if it was made, else "".
func nameIf(made bool, name string) string {
	if !made {
		return ""
	}
	return name
}

// due reports whether a scheduled sale is to be loaded: its preheat time has passed, it
// starts within the coming slots, and it has stock. One without stock may still get some; it
// is loaded emptyBefore its opening, so that it opens sold out.
func (p *Preloader) due(ctx context.Context, row *ent.Sale, now time.Time) (bool, error) {
	horizon := now.Truncate(p.cfg.Slot).Add(time.Duration(p.cfg.Slots) * p.cfg.Slot)
	if now.Before(row.PreheatAt) || !row.StartsAt.Before(horizon) {
		return false, nil
	}
	if !now.Before(row.StartsAt.Add(-emptyBefore)) {
		return true, nil
	}
	stocked, err := p.cfg.DB.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID), saleitem.AvailableGT(0)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("look for stock: %w", err)
	}
	return stocked, nil
}

func (p *Preloader) items(ctx context.Context, row *ent.Sale) ([]*ent.SaleItem, error) {
	items, err := p.cfg.DB.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list items: %w", err)
	}
	return items, nil
}

// end ends a sale whose closing time has passed. A sale that was never loaded is also
// settled.
func (p *Preloader) end(ctx context.Context, row *ent.Sale, now time.Time) (string, error) {
	if err := p.cfg.Shared.Agree(ctx); err != nil {
		return "", fmt.Errorf("end sale: %w", err)
	}
	ended, err := p.change(ctx, row, sale.Change{Act: sale.ActEnd, To: sale.Ended, At: now}, func(u *ent.SaleUpdate) {
		if row.Epoch == 0 {
			u.SetSettledAt(now)
		}
	})
	if err != nil || !ended {
		return "", err
	}
	return "ended", p.SetState(ctx, row.ID)
}

// change applies a change to a sale as it was read, with the clock as actor unless the
// change names one. It reports whether the change was made: losing the race to another
// change is not an error.
func (p *Preloader) change(ctx context.Context, row *ent.Sale, c sale.Change, set func(*ent.SaleUpdate)) (bool, error) {
	c.ID, c.Sale, c.From, c.Revision = id.New[uuid.UUID](), row.ID, sale.Status(row.Status), row.Revision
	c.Outbox = p.cfg.Outbox
	err := p.cfg.Versions.Write(ctx, func(ctx context.Context) error {
		return p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return sale.Apply(ctx, tx, c, set) })
	})
	if errors.Is(err, sale.ErrMoved) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if p.cfg.Feed != nil {
		p.cfg.Feed.Act(ctx, c.Line())
	}
	return true, nil
}
