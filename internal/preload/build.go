package preload

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	entsale "seckill/ent/sale"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/reservation"
)

// Load builds the gates of a sale under a new epoch. While it runs the sale is
// closed. Two processes that load at once do no harm: the higher epoch wins.
func (p *Preloader) Load(ctx context.Context, saleID uuid.UUID) error {
	row, err := p.db.Ent.Sale.Get(ctx, saleID)
	if err != nil {
		return fmt.Errorf("read sale %s: %w", saleID, err)
	}
	epoch, status := row.Epoch+1, row.Status
	if status == entsale.StatusSCHEDULED {
		status = entsale.StatusPREHEATED
	}
	taken, err := p.change(ctx, row, func(u *ent.SaleUpdate) { u.SetEpoch(epoch).SetStatus(status) })
	if err != nil {
		return fmt.Errorf("take epoch of %s: %w", saleID, err)
	}
	if !taken {
		return nil // another process is at it
	}
	row.Epoch, row.Status = epoch, status
	items, err := p.db.Ent.SaleItem.Query().Where(saleitem.SaleID(saleID)).IDs(ctx)
	if err != nil {
		return fmt.Errorf("list items of %s: %w", saleID, err)
	}
	for _, item := range items {
		if begun, err := p.gates.Begin(ctx, saleID, item, row.Epoch); err != nil || !begun {
			return err
		}
	}
	// The stream is read before the tables: a message that is written in between
	// is then seen in both, and counted once.
	waiting, err := p.pending(ctx, id.ShardOf(saleID))
	if err != nil {
		return fmt.Errorf("read unwritten orders of %s: %w", saleID, err)
	}
	for _, item := range items {
		if err := p.build(ctx, row, item, waiting); err != nil {
			return err
		}
	}
	p.forget()
	p.log.InfoContext(ctx, "sale loaded", slog.String("sale", saleID.String()),
		slog.Int64("epoch", row.Epoch), slog.Int("items", len(items)))
	return nil
}

// build reads an item at one moment and opens its gate.
func (p *Preloader) build(ctx context.Context, row *ent.Sale, itemID uuid.UUID, waiting []order.Requested) error {
	var gate reservation.Gate
	err := p.db.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		unwritten, err := unwritten(ctx, tx, itemID, waiting)
		if err != nil {
			return err
		}
		gate, err = gateOf(ctx, tx, row, itemID, unwritten)
		return err
	})
	if err != nil {
		return fmt.Errorf("read item %s: %w", itemID, err)
	}
	if gate.Stock < 0 {
		p.log.ErrorContext(ctx, "more units are promised than are there",
			slog.String("item", itemID.String()), slog.Int("missing", -gate.Stock))
		gate.Stock = 0
	}
	_, err = p.gates.Open(ctx, gate)
	return err
}

// gateOf is the gate as the tables and the unwritten messages want it.
func gateOf(ctx context.Context, tx *ent.Tx, row *ent.Sale, itemID uuid.UUID, unwritten []order.Requested) (reservation.Gate, error) {
	item, err := tx.SaleItem.Get(ctx, itemID)
	if err != nil {
		return reservation.Gate{}, err
	}
	live, err := tx.Order.Query().Where(entorder.ItemID(itemID), entorder.StatusIn(
		entorder.StatusPENDING_PAYMENT, entorder.StatusPAID, entorder.StatusREFUNDING,
	)).All(ctx)
	if err != nil {
		return reservation.Gate{}, fmt.Errorf("live orders: %w", err)
	}
	moves, err := tx.StockMovement.Query().Where(stockmovement.ItemID(itemID)).Count(ctx)
	if err != nil {
		return reservation.Gate{}, fmt.Errorf("stock movements: %w", err)
	}
	gate := reservation.Gate{
		Sale: row.ID, Item: itemID, State: gateState(row), Epoch: row.Epoch,
		Opens: row.StartsAt, Closes: row.EndsAt, Limit: row.PurchaseLimit,
		Total: item.Total, Stock: item.Available,
		Revision: revisionsPerEpoch*row.Epoch + int64(moves+len(unwritten)),
	}
	for _, o := range live {
		gate.Holders = append(gate.Holders, reservation.Holder{User: o.UserID, Task: o.ID, Quantity: o.Quantity, At: o.ReservedAt})
	}
	for _, m := range unwritten {
		gate.Stock -= m.Quantity
		gate.Holders = append(gate.Holders, reservation.Holder{
			User: m.User, Task: m.Task, Quantity: m.Quantity,
			At: time.UnixMilli(m.SubmittedAtMs), IdempotencyKey: m.IdempotencyKey,
		})
	}
	return gate, nil
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

// unwritten returns the messages of an item whose task has not ended in Postgres.
func unwritten(ctx context.Context, tx *ent.Tx, itemID uuid.UUID, waiting []order.Requested) ([]order.Requested, error) {
	var tasks []uuid.UUID
	var mine []order.Requested
	for _, m := range waiting {
		if m.Item == itemID {
			mine, tasks = append(mine, m), append(tasks, m.Task)
		}
	}
	ended := make(map[uuid.UUID]bool, len(tasks))
	for start := 0; start < len(tasks); start += idChunk {
		chunk := tasks[start:min(start+idChunk, len(tasks))]
		orders, err := tx.Order.Query().Where(entorder.IDIn(chunk...)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up orders: %w", err)
		}
		failures, err := tx.OrderFailure.Query().Where(orderfailure.IDIn(chunk...)).IDs(ctx)
		if err != nil {
			return nil, fmt.Errorf("look up failures: %w", err)
		}
		for _, u := range append(orders, failures...) {
			ended[u] = true
		}
	}
	kept := mine[:0]
	seen := make(map[uuid.UUID]bool, len(mine))
	for _, m := range mine {
		if !ended[m.Task] && !seen[m.Task] {
			seen[m.Task] = true
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// idChunk bounds the ids in one query.
const idChunk = 1000
