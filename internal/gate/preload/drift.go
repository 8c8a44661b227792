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
// of the sale. It may be wrong for a moment, while
// units are being released. A gate that is missing, stale or being built does not
// differ: Step rebuilds it.
func (p *Preloader) Differs(ctx context.Context, saleID id.Sale, itemID id.Item) (bool, error) {
	state, err := p.cfg.Gate.State(ctx, saleID, itemID)
	if err != nil || state.Stale || state.Gate == "" || state.Gate == reservation.GateLoading {
		return false, err
	}
	waiting, err := p.cfg.Backlog.Unhandled(ctx, id.ShardOf(saleID))
	if err != nil {
		return false, fmt.Errorf("read unwritten orders of %s: %w", saleID, err)
	}
	same := false
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
		stock := item.Available
		for _, m := range messages {
			stock -= m.Quantity
		}
		for _, e := range entries {
			stock -= e.Quantity
		}
		same = state.Stock == stock && state.Total == item.Total && state.Gate == gateState(row)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read item %s: %w", itemID, err)
	}
	return !same, nil
}
