package preload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/salelog"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
)

// keep checks the gate of every item of a sale, sets the state and times of gates that do
// not match the sale, and records when a gate is empty for the first time. It
// returns false if a gate is lost: not in Redis under the sale's epoch, built before
// the last Redis restart or failover, with older data than before, or ahead of the
// sale: Postgres has lost commits. A gate that
// another process builds, or has just taken the epoch for, counts as present until it
// makes no progress for the timeout of that step. A build of this process that failed is
// lost at once.
func (p *Preloader) keep(ctx context.Context, row *ent.Sale, items []*ent.SaleItem, now time.Time) (bool, error) {
	if epoch, failed := p.failed.LoadAndDelete(row.ID); failed && epoch == row.Epoch {
		return false, nil
	}
	states := make([]reservation.State, len(items))
	var built time.Time // last step of a build; its items are built one after the other
	for i, item := range items {
		var err error
		if states[i], err = p.cfg.Gate.State(ctx, row.ID, item.ID); err != nil {
			return false, err
		}
		if states[i].Gate == reservation.GateLoading && states[i].Since.After(built) {
			built = states[i].Since
		}
	}
	for i, item := range items {
		state := states[i]
		building := state.Gate == reservation.GateLoading
		switch {
		case state.Epoch < row.Epoch:
			return p.taken(ctx, row, now)
		case state.Stale, building && now.Sub(built) > buildTimeout, ahead(state.Epoch, state.SaleRevision, row):
			return false, nil // also if another process has changed the sale since: load changes nothing then
		case building:
			continue
		case state.Revision < item.GateRevision: // Redis lost data since the revision was recorded
			return false, nil
		}
		if err := p.noteRevision(ctx, item, state.Revision); err != nil {
			return false, err
		}
		if !follows(state, row) {
			if _, err := p.setGate(ctx, row, item.ID); err != nil {
				return false, err
			}
		}
		if state.Stock <= 0 && item.SoldOutAt == nil && !now.Before(row.StartsAt) {
			if err := p.noteSoldOut(ctx, item.ID, now); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// taken reports whether the epoch of a sale was taken within beginTimeout: that process
// is about to begin the build.
func (p *Preloader) taken(ctx context.Context, row *ent.Sale, now time.Time) (bool, error) {
	line, err := p.cfg.DB.Ent.SaleLog.Query().Where(
		salelog.SaleID(row.ID), salelog.ActIn(string(sale.ActPreheat), string(sale.ActRebuild)),
	).Order(ent.Desc(salelog.FieldRevision)).First(ctx)
	if ent.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read when the sale was loaded: %w", err)
	}
	return now.Sub(line.CreatedAt) < beginTimeout, nil
}

// follows reports whether a gate has the state and the times of its sale. Redis has times
// in milliseconds.
func follows(state reservation.State, row *ent.Sale) bool {
	return state.Gate == gateState(row) && state.Opens.UnixMilli() == row.StartsAt.UnixMilli() &&
		state.Closes.UnixMilli() == row.EndsAt.UnixMilli()
}

// ahead reports whether a gate has an epoch, or the state of a revision, that its sale as
// it was read does not have: the sale was changed since, or Postgres has lost commits.
func ahead(epoch, revision int64, row *ent.Sale) bool {
	return epoch > row.Epoch || revision > row.Revision
}

func (p *Preloader) setGate(ctx context.Context, row *ent.Sale, item id.Item) (isAhead bool, err error) {
	set, err := p.cfg.Gate.SetState(ctx, reservation.StateChange{
		Sale: row.ID, Item: item, Epoch: row.Epoch, Revision: row.Revision,
		State: gateState(row), Opens: row.StartsAt, Closes: row.EndsAt,
	})
	return ahead(set.Epoch, set.SaleRevision, row), err
}

// setStateTries is how often SetState reads a sale that other processes change meanwhile.
const setStateTries = 5

// SetState sets the state of a sale's gates according to its status, at once. Operators
// call it after a change; if they cannot, Step does it. A gate that is ahead of the sale,
// because Postgres has lost commits, is rebuilt: it would ignore the change.
func (p *Preloader) SetState(ctx context.Context, saleID id.Sale) error {
	for range setStateTries {
		row, err := p.cfg.DB.Ent.Sale.Get(ctx, saleID)
		if err != nil {
			return fmt.Errorf("read sale %s: %w", saleID, err)
		}
		if row.Epoch == 0 || row.SettledAt != nil {
			return nil // it has no gate
		}
		anyAhead, err := p.setGates(ctx, row)
		if err != nil || !anyAhead || !sale.Status(row.Status).Loaded() {
			return err
		}
		if rebuilt, err := p.load(ctx, row, sale.TheClock, noteAhead); err != nil || rebuilt {
			return err
		}
	}
	return fmt.Errorf("set the gates of %s: the sale keeps changing", saleID)
}

// noteAhead is the note of a rebuild of gates that are ahead of Postgres.
const noteAhead = "the gate was ahead of Postgres"

// setGates sets the state of all gates of a sale, and reports whether one is ahead of it.
func (p *Preloader) setGates(ctx context.Context, row *ent.Sale) (anyAhead bool, err error) {
	items, err := p.items(ctx, row)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, item := range items {
		isAhead, err := p.setGate(ctx, row, item.ID)
		anyAhead, errs = anyAhead || isAhead, append(errs, err)
	}
	return anyAhead, errors.Join(errs...)
}

// noteRevision records the stock revision of a gate: a gate with a lower revision later
// has lost data, and a rebuilt gate continues above it.
func (p *Preloader) noteRevision(ctx context.Context, item *ent.SaleItem, revision int64) error {
	if revision <= item.GateRevision {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.NoteTimeout)
	defer cancel()
	return p.raiseRevision(ctx, item.ID, revision)
}

func (p *Preloader) raiseRevision(ctx context.Context, item id.Item, revision int64) error {
	err := p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.Update().Where(saleitem.ID(item), saleitem.GateRevisionLT(revision)).SetGateRevision(revision).
			Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("note revision of gate %s: %w", item, err)
	}
	return nil
}

// raiseEpoch records the epoch of a build in the row of its item. It waits for the
// transactions that write orders of the item.
func (p *Preloader) raiseEpoch(ctx context.Context, item id.Item, epoch int64) error {
	err := p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.Update().Where(saleitem.ID(item), saleitem.GateEpochLT(epoch)).SetGateEpoch(epoch).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("note epoch of gate %s: %w", item, err)
	}
	return nil
}

// awaitInFlight waits while workers append the messages that they are handling again,
// so that the build counts those that Redis has lost.
func (p *Preloader) awaitInFlight(ctx context.Context) error {
	if err := periodic.Sleep(ctx, p.cfg.InFlightWait); err != nil {
		return fmt.Errorf("wait for workers: %w", err)
	}
	return nil
}

func (p *Preloader) noteSoldOut(ctx context.Context, item id.Item, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.NoteTimeout)
	defer cancel()
	err := p.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.SaleItem.Update().Where(saleitem.ID(item), saleitem.SoldOutAtIsNil()).SetSoldOutAt(now).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("note that %s is sold out: %w", item, err)
	}
	return nil
}

func gateState(row *ent.Sale) string {
	switch row.Status {
	case entsale.StatusPAUSED:
		return reservation.GatePaused
	case entsale.StatusENDED, entsale.StatusCANCELLED:
		return reservation.GateEnded
	default:
		return reservation.GateOpen
	}
}
