// Package preload brings sales into Redis and keeps them there. It builds the
// gate of each item from Postgres and the messages that no worker has written
// yet, under an epoch of its own, moves a sale's status with the clock, keeps each
// gate as its sale's status says, and takes the gates of settled sales away. The gate
// of a sale that is over is not rebuilt when it is lost: it leaves, and the record decides alone.
//
// The same build serves the first loading and the rebuilding of a gate that was
// lost: a missing gate, or one with an older epoch, is closed by itself, because
// the reserve script refuses without it. Every step is safe on every process at
// once: an epoch is taken by compare-and-set and built once, a gate follows the
// highest revision of its sale.
package preload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

const (
	// Every is the rhythm of Step.
	Every = 5 * time.Second
	// DefaultSlot and DefaultSlots say how far ahead sales are loaded: until the
	// end of the fifth slot of two hours from now.
	DefaultSlot = 2 * time.Hour
	// DefaultSlots is how many slots that are.
	DefaultSlots = 5
	// revisionsPerEpoch keeps the stock revisions of a new epoch above all that the
	// last one can have shown beyond what Postgres and the stream tell.
	revisionsPerEpoch = 1000
	// buildTimeout is how long one build may take before another process begins anew.
	buildTimeout = 10 * time.Second
	// beginTimeout is how long whoever took an epoch may take to begin.
	beginTimeout = 3 * time.Second
)

// Preloader builds gates and keeps them.
type Preloader struct {
	db       *postgres.DB
	gate     *reservation.Gate
	pending  func(ctx context.Context, shard int) ([]order.Requested, error)
	versions *sale.Versions
	finish   func(ctx context.Context, sale uuid.UUID) error
	note     func(ctx context.Context, line sale.LogLine)
	forget   func()
	slot     time.Duration
	slots    int
	clock    clock.Clock
	log      *slog.Logger
}

// Config says what a preloader needs.
type Config struct {
	DB   *postgres.DB
	Gate *reservation.Gate
	// Pending reads the order messages of a shard that are still in its stream,
	// oldest first.
	Pending  func(ctx context.Context, shard int) ([]order.Requested, error)
	Versions *sale.Versions // nil = other processes find changes by themselves
	// Finish keeps the figures of a sale before its gates leave Redis; may be nil.
	Finish func(ctx context.Context, sale uuid.UUID) error
	// Note is told of every act after its commit, for the live log; may be nil.
	Note   func(ctx context.Context, line sale.LogLine)
	Forget func()        // tells the catalogue of this process to read anew
	Slot   time.Duration // 0 = DefaultSlot
	Slots  int           // 0 = DefaultSlots
	Clock  clock.Clock
	Log    *slog.Logger
}

// New returns a preloader.
func New(cfg Config) *Preloader {
	if cfg.Slot == 0 {
		cfg.Slot = DefaultSlot
	}
	if cfg.Slots == 0 {
		cfg.Slots = DefaultSlots
	}
	if cfg.Finish == nil {
		cfg.Finish = func(context.Context, uuid.UUID) error { return nil }
	}
	if cfg.Note == nil {
		cfg.Note = func(context.Context, sale.LogLine) {}
	}
	return &Preloader{
		db: cfg.DB, gate: cfg.Gate, pending: cfg.Pending,
		versions: cfg.Versions, finish: cfg.Finish, note: cfg.Note, forget: cfg.Forget,
		slot: cfg.Slot, slots: cfg.Slots, clock: cfg.Clock, log: cfg.Log,
	}
}

// Step looks after all sales once: loads those that are due, rebuilds gates that
// are gone, moves each status with the clock, turns gates that do not follow their
// sale, and takes settled sales out of Redis. It is a periodic.Step. What goes
// wrong with one sale does not keep it from the others.
func (p *Preloader) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	rows, err := p.db.Ent.Sale.Query().Where(entsale.Or(
		entsale.StatusIn(entsale.StatusSCHEDULED, entsale.StatusPREHEATED, entsale.StatusLIVE, entsale.StatusPAUSED),
		entsale.And(entsale.StatusIn(entsale.StatusENDED, entsale.StatusCANCELLED), entsale.SettledAtIsNil()),
	)).All(ctx)
	if err != nil {
		return counts, fmt.Errorf("list sales: %w", err)
	}
	now := p.clock.Now()
	var errs []error
	for _, row := range rows {
		moved, err := p.advance(ctx, row, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("look after sale %s: %w", row.ID, err))
		} else if moved != "" {
			counts[moved]++
		}
	}
	if len(counts) > 0 {
		p.forget()
	}
	return counts, errors.Join(errs...)
}

// advance does the one thing that is due for a sale and names it.
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
		return named("loaded")(p.load(ctx, row, sale.TheClock, ""))
	}
	items, err := p.items(ctx, row)
	if err != nil {
		return "", err
	}
	standing, err := p.keep(ctx, row, items, now)
	if err != nil {
		return "", err
	}
	if !standing {
		return named("rebuilt")(p.load(ctx, row, sale.TheClock, "the gate was not in Redis"))
	}
	if status == sale.Preheated && !now.Before(row.StartsAt) {
		return named("opened")(p.change(ctx, row, sale.Change{Act: sale.ActOpen, To: sale.Live, At: now}, nil))
	}
	return "", nil
}

// named names what was done, if it was.
func named(what string) func(done bool, err error) (string, error) {
	return func(done bool, err error) (string, error) {
		if !done {
			return "", err
		}
		return what, err
	}
}

// due reports whether a scheduled sale is to be loaded: its time to preheat has
// come, it opens within the coming slots, and there is something to sell.
func (p *Preloader) due(ctx context.Context, row *ent.Sale, now time.Time) (bool, error) {
	horizon := now.Truncate(p.slot).Add(time.Duration(p.slots) * p.slot)
	if now.Before(row.PreheatAt) || !row.StartsAt.Before(horizon) {
		return false, nil
	}
	stocked, err := p.db.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID), saleitem.AvailableGT(0)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("look for stock: %w", err)
	}
	return stocked, nil
}

func (p *Preloader) items(ctx context.Context, row *ent.Sale) ([]*ent.SaleItem, error) {
	items, err := p.db.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list items: %w", err)
	}
	return items, nil
}

// end moves a sale whose time is over. One that was never loaded is settled too.
func (p *Preloader) end(ctx context.Context, row *ent.Sale, now time.Time) (string, error) {
	ended, err := p.change(ctx, row, sale.Change{Act: sale.ActEnd, To: sale.Ended, At: now}, func(u *ent.SaleUpdate) {
		if row.Epoch == 0 {
			u.SetSettledAt(now)
		}
	})
	if err != nil || !ended {
		return "", err
	}
	return "ended", p.Turn(ctx, row.ID)
}

// change makes a change of a sale as it was read, in the name of the clock unless
// the change names somebody, and says whether it was made: losing to somebody
// else is no error.
func (p *Preloader) change(ctx context.Context, row *ent.Sale, c sale.Change, set func(*ent.SaleUpdate)) (bool, error) {
	c.ID, c.Sale, c.From, c.Revision = id.New(), row.ID, sale.Status(row.Status), row.Revision
	err := p.versions.Write(ctx, func(ctx context.Context) error {
		return p.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error { return sale.Apply(ctx, tx, c, set) })
	})
	if errors.Is(err, sale.ErrMoved) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.note(ctx, c.Line())
	return true, nil
}
