package preload

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/id"
)

// Differs reports whether the stock in an item's gate differs from the stock that
// follows from Postgres and the unhandled messages, or its total or its state from those
// of the sale. It may be wrong for a moment, while units are being released. While orders come
// in, the stock is somewhere between two readings of the gate, before and after the others; a
// difference within them shows when they agree. A gate that is missing, stale or being built
// does not differ: Step rebuilds it.
func (p *Preloader) Differs(ctx context.Context, saleID id.Sale, itemID id.Item) (bool, error) {
	state, err := p.cfg.Gate.State(ctx, saleID, itemID)
	if err != nil || !hasFigures(state) {
		return false, err
	}
	waiting, err := p.cfg.Backlog.Unhandled(ctx, id.ShardOf(saleID))
	if err != nil {
		return false, fmt.Errorf("read unwritten orders of %s: %w", saleID, err)
	}
	var stock, total int
	var gate string
	err = p.cfg.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		item, err := tx.SaleItem.Get(ctx, itemID)
		if err != nil {
			return err
		}
		messages, err := reserving(ctx, tx, itemID, waiting)
		if err != nil {
			return err
		}
		entries, err := waitlist.Holds(ctx, tx.WaitlistEntry, itemID)
		if err != nil {
			return err
		}
		row, err := tx.Sale.Get(ctx, saleID)
		if err != nil {
			return err
		}
		stock, total, gate = item.Available, item.Total, gateState(row)
		for _, m := range messages {
			stock -= m.Quantity
		}
		for _, e := range entries {
			stock -= e.Quantity
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read item %s: %w", itemID, err)
	}
	if state.Stock == stock && state.Total == total && state.Gate == gate {
		return false, nil
	}
	later, err := p.cfg.Gate.State(ctx, saleID, itemID)
	if err != nil || !hasFigures(later) {
		return false, err
	}
	between := min(state.Stock, later.Stock) <= stock && stock <= max(state.Stock, later.Stock)
	return !between || later.Total != total || later.Gate != gate, nil
}

// hasFigures reports whether the gate has figures of the present epoch.
func hasFigures(s reservation.State) bool {
	return !s.Stale && s.Gate != "" && s.Gate != reservation.GateLoading
}
