package preload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// noteRecovered is the note of a rebuild after a loss of commits.
const noteRecovered = "Postgres lost commits"

// Recover makes the gates in Redis follow the record after Postgres has lost commits:
// those of loaded sales are rebuilt above their epochs and revisions, those of sales that
// are over, are not loaded or do not exist are removed. gates are those in Redis.
// Repeating it is harmless.
func (p *Preloader) Recover(ctx context.Context, gates []reservation.ItemRef) (map[string]int, error) {
	bySale := map[id.Sale][]id.Item{}
	for _, ref := range gates {
		bySale[ref.Sale] = append(bySale[ref.Sale], ref.Item)
	}
	rows, err := p.rowsOf(ctx, bySale)
	if err != nil {
		return nil, err
	}
	var (
		mu     sync.Mutex
		counts = map[string]int{} // guarded by mu
		errs   []error            // guarded by mu
		all    errgroup.Group
	)
	all.SetLimit(salesAtOnce)
	note := func(saleID id.Sale, what string, n int, err error) {
		mu.Lock()
		defer mu.Unlock()
		counts[what] += n
		if err != nil {
			errs = append(errs, fmt.Errorf("recover the gates of sale %s: %w", saleID, err))
		}
	}
	for saleID, items := range bySale {
		if rows[saleID] != nil {
			continue
		}
		all.Go(func() error {
			n, err := p.remove(ctx, saleID, items)
			note(saleID, "removed", n, err)
			return nil
		})
	}
	for saleID, row := range rows {
		all.Go(func() error {
			what, n, err := p.recoverSale(ctx, row, bySale[saleID])
			note(saleID, what, n, err)
			return nil
		})
	}
	_ = all.Wait() // the errors are in errs
	p.forgetCatalog()
	return counts, errors.Join(errs...)
}

// rowsOf returns the loaded sales and those with a gate in Redis.
func (p *Preloader) rowsOf(ctx context.Context, gates map[id.Sale][]id.Item) (map[id.Sale]*ent.Sale, error) {
	ids := make([]id.Sale, 0, len(gates))
	for saleID := range gates {
		ids = append(ids, saleID)
	}
	found, err := p.cfg.DB.Ent.Sale.Query().Where(entsale.Or(
		entsale.StatusIn(entsale.StatusPREHEATED, entsale.StatusLIVE, entsale.StatusPAUSED), entsale.IDIn(ids...),
	)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	return collect.Index(found, func(row *ent.Sale) id.Sale { return row.ID }), nil
}

// recoverSale rebuilds or removes the gates of a sale.
func (p *Preloader) recoverSale(ctx context.Context, row *ent.Sale, gates []id.Item) (what string, n int, err error) {
	rows, err := p.cfg.DB.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID)).All(ctx)
	if err != nil {
		return "", 0, fmt.Errorf("list items: %w", err)
	}
	known := collect.Index(rows, func(item *ent.SaleItem) id.Item { return item.ID })
	var strange []id.Item
	for _, item := range gates {
		if known[item] == nil {
			strange = append(strange, item)
		}
	}
	if _, err := p.remove(ctx, row.ID, strange); err != nil {
		return "", 0, err
	}
	status := sale.Status(row.Status)
	due := false
	if status == sale.Scheduled {
		if due, err = p.due(ctx, row, p.cfg.Clock.Now()); err != nil {
			return "", 0, err
		}
	}
	switch {
	case status.Loaded(), due:
		_, err := p.load(ctx, row, sale.TheClock, noteRecovered) // unless another process has loaded it since
		return "rebuilt", 1, err
	case status == sale.Ended, status == sale.Cancelled:
		for _, item := range gates {
			if known[item] == nil {
				continue
			}
			if err := p.unload(ctx, row, known[item]); err != nil {
				return "", 0, err
			}
		}
		return "removed", len(gates), nil
	}
	n, err = p.remove(ctx, row.ID, gates)
	return "removed", n, err
}

// remove removes gates that the record does not have.
func (p *Preloader) remove(ctx context.Context, saleID id.Sale, items []id.Item) (n int, err error) {
	for _, item := range items {
		removed, err := p.cfg.Gate.Unload(ctx, saleID, item, math.MaxInt64)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}
