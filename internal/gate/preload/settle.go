package preload

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/intervention"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/ent/salefigures"
	"seckill/ent/saleitem"
	"seckill/ent/salelog"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
)

// settleAfter is the minimum time for which a sale that is over stays in Redis, for
// users who still view it.
const settleAfter = 10 * time.Minute

// settle removes a sale that is over from Redis once nothing of it is in transit: no
// unpaid order, no refund, no unwritten message, no unit to be released. Its figures
// are stored before and its settlement is written after, so that a step after a crash
// repeats the rest.
func (p *Preloader) settle(ctx context.Context, row *ent.Sale, now time.Time) (string, error) {
	items, err := p.items(ctx, row)
	if err != nil {
		return "", err
	}
	over, err := p.overSince(ctx, row)
	if err != nil {
		return "", err
	}
	retentionOver := now.Sub(over) >= settleAfter
	for _, item := range items {
		if err := p.closeGate(ctx, row, items, item, retentionOver); err != nil {
			return "", err
		}
	}
	if !retentionOver {
		return "", nil
	}
	if err := p.cfg.Shared.Agree(ctx); err != nil {
		return "", fmt.Errorf("settle sale: %w", err)
	}
	settled, err := p.settled(ctx, row, items)
	if err != nil {
		return "", err
	}
	if err := p.keepFigures(ctx, row.ID, settled); err != nil || !settled {
		return "", err
	}
	for _, item := range items {
		if err := p.unload(ctx, row, item); err != nil {
			return "", err
		}
	}
	if err := p.forgetPersons(ctx, row.ID); err != nil {
		return "", err
	}
	done, err := p.change(ctx, row, sale.Change{Act: sale.ActSettle, To: sale.Status(row.Status), At: now},
		func(u *ent.SaleUpdate) { u.SetSettledAt(now) })
	return nameIf(done, "settled"), err
}

// forgetBatch bounds the rows of one transaction that lose their person keys.
const forgetBatch = 1000

// forgetPersons clears the person keys of a sale whose limits no longer count. A step after
// a crash continues.
func (p *Preloader) forgetPersons(ctx context.Context, saleID id.Sale) error {
	for cleared := forgetBatch; cleared == forgetBatch; {
		err := p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			ids, err := tx.Order.Query().Where(entorder.SaleID(saleID), entorder.Or(
				entorder.PersonKeysNotNil(), entorder.PaymentKeyNotNil(), entorder.NetworkKeyNotNil(), entorder.DeviceKeyNotNil(),
				entorder.ReviewAnswerNotNil())).Limit(forgetBatch).IDs(ctx)
			if cleared = len(ids); err != nil || cleared == 0 {
				return err
			}
			return tx.Order.Update().Where(entorder.IDIn(ids...)).ClearPersonKeys().ClearPaymentKey().ClearNetworkKey().
				ClearDeviceKey().ClearReviewAnswer().Exec(ctx)
		})
		if err != nil {
			return fmt.Errorf("clear person keys of sale %s: %w", saleID, err)
		}
	}
	err := p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.WaitlistEntry.Update().Where(waitlistentry.SaleID(saleID)).
			ClearContactKey().ClearAddressKey().ClearPaymentKey().
			Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("clear person keys of the waitlist of sale %s: %w", saleID, err)
	}
	return nil
}

// keepFigures stores the figures of a sale that is over: once before it is settled,
// since a refund may stay undecided for longer than Redis keeps its counters, and once
// when it is settled.
func (p *Preloader) keepFigures(ctx context.Context, saleID id.Sale, settled bool) error {
	if !settled {
		kept, err := p.cfg.DB.Ent.SaleFigures.Query().Where(salefigures.ID(saleID)).Exist(ctx)
		if err != nil || kept {
			return err
		}
	}
	if p.cfg.Figures == nil {
		return nil
	}
	if err := p.cfg.Figures.Keep(ctx, saleID); err != nil {
		return fmt.Errorf("keep figures: %w", err)
	}
	return nil
}

// closeGate ensures that no item of a sale that is over can be bought, also if the process
// that ended it crashed. A lost or never completed gate is not rebuilt: late payments
// and releases would otherwise wait for it without end. It is removed once the orders
// that it accepted are written, or their time has passed; then Postgres alone decides.
func (p *Preloader) closeGate(ctx context.Context, row *ent.Sale, items []*ent.SaleItem, item *ent.SaleItem,
	retentionOver bool) error {
	state, err := p.cfg.Gate.State(ctx, row.ID, item.ID)
	if err != nil || state.Gate == "" {
		return err
	}
	if state.Gate != reservation.GateEnded {
		if _, err := p.setGate(ctx, row, item.ID); err != nil {
			return err
		}
	}
	if !state.Stale && state.Epoch == row.Epoch && state.Gate != reservation.GateLoading {
		return nil
	}
	if !retentionOver {
		if waits, err := p.waits(ctx, row, items); err != nil || waits {
			return err
		}
	}
	return p.unload(ctx, row, item)
}

// unload removes the gate of an item, also one that is ahead of the sale because Postgres
// has lost commits. The revision in the row continues above the gate's, so that clients
// never see a lower one.
func (p *Preloader) unload(ctx context.Context, row *ent.Sale, item *ent.SaleItem) error {
	state, err := p.cfg.Gate.State(ctx, row.ID, item.ID)
	if err != nil {
		return err
	}
	above := max(revisionAbove(item), state.Revision+1)
	err = p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.Update().Where(saleitem.ID(item.ID), saleitem.RevisionLT(above)).SetRevision(above).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("raise revision of item %s: %w", item.ID, err)
	}
	_, err = p.cfg.Gate.Unload(ctx, row.ID, item.ID, max(row.Epoch, state.Epoch))
	return err
}

func (p *Preloader) settled(ctx context.Context, row *ent.Sale, items []*ent.SaleItem) (bool, error) {
	for _, unfinished := range []func(context.Context) (bool, error){
		p.cfg.DB.Ent.Order.Query().Where(entorder.SaleID(row.ID),
			entorder.Or(entorder.StatusIn(entorder.StatusPENDING_PAYMENT, entorder.StatusREFUNDING), entorder.ReturnDue(true))).
			Exist,
		p.cfg.DB.Ent.OrderFailure.Query().Where(orderfailure.SaleID(row.ID), orderfailure.Released(false)).Exist,
		p.cfg.DB.Ent.Intervention.Query().Where(intervention.SaleID(row.ID), intervention.StateIn(
			intervention.StateTAKING, intervention.StateRETURNING, intervention.StateREFUNDING, intervention.StateFINISHING)).
			Exist,
	} {
		if there, err := unfinished(ctx); err != nil || there {
			return false, err
		}
	}
	waits, err := p.waits(ctx, row, items)
	return !waits, err
}

// waits reports whether a message of a sale is not written yet.
func (p *Preloader) waits(ctx context.Context, row *ent.Sale, items []*ent.SaleItem) (bool, error) {
	waiting, err := p.cfg.Backlog.Requests(ctx, id.ShardOf(row.ID))
	if err != nil {
		return false, fmt.Errorf("read unwritten orders: %w", err)
	}
	for _, item := range items {
		left := 0
		err := p.cfg.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
			messages, err := unwritten(ctx, tx, item.ID, waiting)
			left = len(messages)
			return err
		})
		if err != nil || left > 0 {
			return left > 0, err
		}
	}
	return false, nil
}

// overSince returns when the sale was ended or cancelled.
func (p *Preloader) overSince(ctx context.Context, row *ent.Sale) (time.Time, error) {
	line, err := p.cfg.DB.Ent.SaleLog.Query().Where(
		salelog.SaleID(row.ID), salelog.ActIn(string(sale.ActEnd), string(sale.ActCancel)),
	).Order(ent.Desc(salelog.FieldRevision)).First(ctx)
	if ent.IsNotFound(err) {
		return row.EndsAt, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read the end of the sale: %w", err)
	}
	return line.CreatedAt, nil
}
