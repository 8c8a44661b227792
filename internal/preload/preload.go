// Package preload brings sales into Redis and keeps them there. It builds the
// gate of each item from Postgres and the messages that no worker has written
// yet, under an epoch of its own, and moves a sale's status with the clock.
//
// The same build serves the first loading and the rebuilding of a gate that was
// lost: a missing gate, or one with an older epoch, is closed by itself, because
// the reserve script refuses without it. Every step is safe on every process at
// once: an epoch is taken by compare-and-set and built once.
package preload

import (
	"context"
	"fmt"
	"log/slog"
	"time"


	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/clock"
	"seckill/internal/order"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
	"seckill/internal/sale"
)

// revisionsPerEpoch keeps the stock revisions of a new epoch above all that the
// last one can have shown beyond what Postgres and the stream tell.
const revisionsPerEpoch = 1000

// Preloader builds gates.
type Preloader struct {
	db      *postgres.DB
	gates   *reservation.Loader
	states  *reservation.States
	pending func(ctx context.Context, shard int) ([]order.Requested, error)
	forget  func() // tells the catalogue of this process to read anew
	clock   clock.Clock
	log     *slog.Logger
}

// Config says what a preloader needs. Pending reads the order messages of a shard
// that are still in its stream, oldest first.
type Config struct {
	DB      *postgres.DB
	Gates   *reservation.Loader
	States  *reservation.States
	Pending func(ctx context.Context, shard int) ([]order.Requested, error)
	Forget  func()
	Clock   clock.Clock
	Log     *slog.Logger
}

// New returns a preloader.
func New(cfg Config) *Preloader {
	return &Preloader{
		db: cfg.DB, gates: cfg.Gates, states: cfg.States, pending: cfg.Pending,
		forget: cfg.Forget, clock: cfg.Clock, log: cfg.Log,
	}
}

// Step looks after all sales once: loads those that are due, rebuilds gates that
// are gone, and moves each status with the clock. It is a periodic.Step.
func (p *Preloader) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	rows, err := p.db.Ent.Sale.Query().Where(entsale.StatusIn(
		entsale.StatusSCHEDULED, entsale.StatusPREHEATED, entsale.StatusLIVE, entsale.StatusPAUSED,
	)).All(ctx)
	if err != nil {
		return counts, fmt.Errorf("list sales: %w", err)
	}
	now := p.clock.Now()
	for _, row := range rows {
		moved, err := p.advance(ctx, row, now)
		if err != nil {
			return counts, err
		}
		if moved != "" {
			counts[moved]++
		}
	}
	if len(counts) > 0 {
		p.forget()
	}
	return counts, nil
}

// advance does the one thing that is due for a sale and names it.
func (p *Preloader) advance(ctx context.Context, row *ent.Sale, now time.Time) (string, error) {
	switch status := sale.Status(row.Status); {
	case !now.Before(row.EndsAt):
		return "ended", p.move(ctx, row, sale.Ended)
	case status == sale.Scheduled && now.Before(row.PreheatAt):
		return "", nil
	case status == sale.Scheduled:
		return "loaded", p.Load(ctx, row.ID)
	}
	ok, err := p.standing(ctx, row)
	if err != nil {
		return "", err
	}
	if !ok {
		return "rebuilt", p.Load(ctx, row.ID)
	}
	if row.Status == entsale.StatusPREHEATED && !now.Before(row.StartsAt) {
		return "opened", p.move(ctx, row, sale.Live)
	}
	return "", nil
}

// standing reports whether every item of a sale has its gate in Redis under the
// sale's epoch. A gate that another process is building counts as standing for
// as long as that may take.
func (p *Preloader) standing(ctx context.Context, row *ent.Sale) (bool, error) {
	items, err := p.db.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID)).IDs(ctx)
	if err != nil {
		return false, fmt.Errorf("list items of %s: %w", row.ID, err)
	}
	for _, item := range items {
		state, err := p.states.Of(ctx, row.ID, item)
		if err != nil {
			return false, err
		}
		if state.Epoch < row.Epoch || (state.Gate == reservation.GateLoading && p.clock.Now().Sub(state.Since) > buildTimeout) {
			return false, nil
		}
	}
	return true, nil
}

// buildTimeout is how long one build may take before another process begins anew.
const buildTimeout = 10 * time.Second

// move changes a sale's status by compare-and-set; losing is no error.
func (p *Preloader) move(ctx context.Context, row *ent.Sale, to sale.Status) error {
	_, err := p.change(ctx, row, func(u *ent.SaleUpdate) { u.SetStatus(entsale.Status(to)) })
	if err != nil {
		return fmt.Errorf("move sale %s to %s: %w", row.ID, to, err)
	}
	return nil
}

// change updates a sale if it is still at the revision that was read, and says
// whether it was.
func (p *Preloader) change(ctx context.Context, row *ent.Sale, set func(*ent.SaleUpdate)) (bool, error) {
	n := 0
	err := p.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Sale.Update().Where(entsale.ID(row.ID), entsale.Revision(row.Revision)).SetRevision(row.Revision + 1)
		set(update)
		var err error
		n, err = update.Save(ctx)
		return err
	})
	return n == 1, err
}

