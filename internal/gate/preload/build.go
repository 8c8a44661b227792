package preload

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// Load builds the gates of a sale under a new epoch, with the clock as actor, and
// returns once they are built. During the build the sale is closed. Concurrent loads
// are safe: the higher epoch wins, and every call waits for it.
func (p *Preloader) Load(ctx context.Context, saleID id.Sale) error {
	for {
		if _, err := p.LoadBy(ctx, saleID, sale.TheClock, ""); err != nil {
			return err
		}
		built, err := p.await(ctx, saleID)
		if err != nil || built {
			return err
		}
	}
}

// pollEvery is the interval at which await reads the gates.
const pollEvery = 20 * time.Millisecond

// await waits until the gates of a sale are built under its newest epoch. It returns
// false if the build makes no progress for buildTimeout: the process that built them
// has crashed.
func (p *Preloader) await(ctx context.Context, saleID id.Sale) (bool, error) {
	late := time.NewTimer(buildTimeout)
	defer late.Stop()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for last := (progress{}); ; {
		now, err := p.progress(ctx, saleID)
		if err != nil || now.complete {
			return now.complete, err
		}
		if now != last {
			last = now
			late.Reset(buildTimeout)
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for the gates of %s: %w", saleID, ctx.Err())
		case <-late.C:
			return false, nil
		case <-ticker.C:
		}
	}
}

// progress is how far the newest build of a sale is.
type progress struct {
	complete bool // all gates are built under the newest epoch
	epoch    int64
	step     time.Time // last step of the build
}

func (p *Preloader) progress(ctx context.Context, saleID id.Sale) (progress, error) {
	row, err := p.cfg.DB.Ent.Sale.Get(ctx, saleID)
	if err != nil {
		return progress{}, fmt.Errorf("read sale %s: %w", saleID, err)
	}
	items, err := p.items(ctx, row)
	if err != nil {
		return progress{}, err
	}
	now := progress{complete: true, epoch: row.Epoch}
	for _, item := range items {
		state, err := p.cfg.Gate.State(ctx, row.ID, item.ID)
		if err != nil {
			return progress{}, err
		}
		if state.Epoch < row.Epoch || state.Stale || state.Gate == reservation.GateLoading {
			now.complete = false
		}
		if state.Since.After(now.step) {
			now.step = state.Since
		}
	}
	return now, nil
}

// LoadBy builds the gates of a sale for an actor. It returns false if another process
// took the epoch first or started a newer build: that process builds the gates, which
// may not be complete yet. The error wraps sale.ErrForbidden if the sale's status or
// the role does not allow it.
func (p *Preloader) LoadBy(ctx context.Context, saleID id.Sale, by sale.Actor, note string) (bool, error) {
	row, err := p.cfg.DB.Ent.Sale.Get(ctx, saleID)
	if err != nil {
		return false, fmt.Errorf("read sale %s: %w", saleID, err)
	}
	return p.load(ctx, row, by, note)
}

// Rebuild builds the gates of a sale that have the given epoch under the next one, with
// the clock as actor. It returns false if another process took that epoch first: a finding
// about the former gates says nothing about its build.
func (p *Preloader) Rebuild(ctx context.Context, saleID id.Sale, epoch int64) (bool, error) {
	row, err := p.cfg.DB.Ent.Sale.Get(ctx, saleID)
	if err != nil {
		return false, fmt.Errorf("read sale %s: %w", saleID, err)
	}
	if row.Epoch != epoch {
		return false, nil
	}
	return p.load(ctx, row, sale.TheClock, "")
}

func (p *Preloader) load(ctx context.Context, row *ent.Sale, by sale.Actor, note string) (bool, error) {
	c := sale.Change{Act: sale.ActRebuild, To: sale.Status(row.Status), By: by, Note: note, At: p.cfg.Clock.Now()}
	if row.Status == entsale.StatusSCHEDULED {
		c.Act, c.To = sale.ActPreheat, sale.Preheated
	}
	highest, err := p.highest(ctx, row)
	if err != nil {
		return false, err
	}
	c.Above = highest.SaleRevision
	epoch := max(row.Epoch, highest.Epoch) + 1
	taken, err := p.change(ctx, row, c, func(u *ent.SaleUpdate) { u.SetEpoch(epoch) })
	if err != nil || !taken {
		return false, err
	}
	row.Epoch, row.Status, row.Revision = epoch, entsale.Status(c.To), max(row.Revision, c.Above)+1
	done, err := p.fillGates(ctx, row)
	if err != nil {
		p.failed.Store(row.ID, epoch)
	}
	return done, err
}

// highest returns the highest epoch and revision of the gates of a sale. They are those of
// the sale, unless Postgres has lost commits.
func (p *Preloader) highest(ctx context.Context, row *ent.Sale) (highest reservation.State, err error) {
	items, err := p.items(ctx, row)
	if err != nil {
		return highest, err
	}
	for _, item := range items {
		state, err := p.cfg.Gate.State(ctx, row.ID, item.ID)
		if err != nil {
			return highest, err
		}
		highest.Epoch, highest.SaleRevision = max(highest.Epoch, state.Epoch), max(highest.SaleRevision, state.SaleRevision)
	}
	return highest, nil
}

// fillGates builds the gates of a sale under its new epoch.
func (p *Preloader) fillGates(ctx context.Context, row *ent.Sale) (bool, error) {
	items, err := p.cfg.DB.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID)).IDs(ctx)
	if err != nil {
		return false, fmt.Errorf("list items of %s: %w", row.ID, err)
	}
	for _, item := range items {
		if begun, err := p.cfg.Gate.Begin(ctx, row.ID, item, row.Epoch); err != nil || !begun {
			return false, err
		}
	}
	if row.Epoch > 1 {
		if err := p.awaitInFlight(ctx); err != nil {
			return false, err
		}
	}
	// The stream is read before the tables: a message that is written in between is in
	// both reads, and is counted once.
	waiting, err := p.cfg.Backlog.Requests(ctx, id.ShardOf(row.ID))
	if err != nil {
		return false, fmt.Errorf("read unwritten orders of %s: %w", row.ID, err)
	}
	if built, err := p.build(ctx, row, items, waiting); err != nil || !built {
		return false, err
	}
	if err := p.SetState(ctx, row.ID); err != nil { // a pause during the build found no gate to change
		return false, err
	}
	p.forgetCatalog()
	p.cfg.Log.InfoContext(ctx, "sale loaded", slog.String("sale", row.ID.Public()),
		slog.Int64("epoch", row.Epoch), slog.Int("items", len(items)))
	return true, nil
}
