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
	"seckill/internal/sale"
	"seckill/internal/waitlist"
)

// Load builds the gates of a sale under a new epoch, with the clock as actor, and
// returns once they are built. During the build the sale is closed. Concurrent loads
// are safe: the higher epoch wins, and every call waits for it.
func (p *Preloader) Load(ctx context.Context, saleID uuid.UUID) error {
	for {
		if _, err := p.LoadBy(ctx, saleID, sale.TheClock, ""); err != nil {
			return err
		}
		stand, err := p.await(ctx, saleID)
		if err != nil || stand {
			return err
		}
	}
}

// look is the interval at which await reads the gates.
const look = 20 * time.Millisecond

// await waits until the gates of a sale are built under its newest epoch. It returns
// false after buildTimeout: the process that built them has crashed.
func (p *Preloader) await(ctx context.Context, saleID uuid.UUID) (bool, error) {
	late := time.NewTimer(buildTimeout)
	defer late.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if stand, err := p.stand(ctx, saleID); err != nil || stand {
			return stand, err
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

// stand reports whether all gates of a sale are built under its newest epoch.
func (p *Preloader) stand(ctx context.Context, saleID uuid.UUID) (bool, error) {
	row, err := p.db.Ent.Sale.Get(ctx, saleID)
	if err != nil {
		return false, fmt.Errorf("read sale %s: %w", saleID, err)
	}
	items, err := p.items(ctx, row)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		state, err := p.gate.State(ctx, row.ID, item.ID)
		if err != nil {
			return false, err
		}
		if state.Epoch < row.Epoch || state.Stale || state.Gate == reservation.GateLoading {
			return false, nil
		}
	}
	return true, nil
}

// LoadBy builds the gates of a sale for an actor. It returns false if another process
// took the epoch first or started a newer build: that process builds the gates, which
// may not be complete yet. The error wraps sale.ErrForbidden if the sale's status or
// the role does not allow it.
func (p *Preloader) LoadBy(ctx context.Context, saleID uuid.UUID, by sale.Actor, note string) (bool, error) {
	row, err := p.db.Ent.Sale.Get(ctx, saleID)
	if err != nil {
		return false, fmt.Errorf("read sale %s: %w", saleID, err)
	}
	return p.load(ctx, row, by, note)
}

func (p *Preloader) load(ctx context.Context, row *ent.Sale, by sale.Actor, note string) (bool, error) {
	c := sale.Change{Act: sale.ActRebuild, To: sale.Status(row.Status), By: by, Note: note, At: p.clock.Now()}
	if row.Status == entsale.StatusSCHEDULED {
		c.Act, c.To = sale.ActPreheat, sale.Preheated
	}
	epoch := row.Epoch + 1
	taken, err := p.change(ctx, row, c, func(u *ent.SaleUpdate) { u.SetEpoch(epoch) })
	if err != nil || !taken {
		return false, err
	}
	row.Epoch, row.Status, row.Revision = epoch, entsale.Status(c.To), row.Revision+1
	items, err := p.db.Ent.SaleItem.Query().Where(saleitem.SaleID(row.ID)).IDs(ctx)
	if err != nil {
		return false, fmt.Errorf("list items of %s: %w", row.ID, err)
	}
	for _, item := range items {
		if begun, err := p.gate.Begin(ctx, row.ID, item, row.Epoch); err != nil || !begun {
			return false, err
		}
	}
	// The stream is read before the tables: a message that is written in between is in
	// both reads, and is counted once.
	waiting, err := p.pending(ctx, id.ShardOf(row.ID))
	if err != nil {
		return false, fmt.Errorf("read unwritten orders of %s: %w", row.ID, err)
	}
	for _, item := range items {
		if built, err := p.build(ctx, row.ID, item, row.Epoch, waiting); err != nil || !built {
			return false, err
		}
	}
	if err := p.Turn(ctx, row.ID); err != nil { // a pause during the build found no gate to change
		return false, err
	}
	p.forget()
	p.log.InfoContext(ctx, "sale loaded", slog.String("sale", id.Format(id.Sale, row.ID)),
		slog.Int64("epoch", row.Epoch), slog.Int("items", len(items)))
	return true, nil
}

// build reads an item and its sale in one snapshot and opens its gate. It returns false
// if another process has begun a newer build.
func (p *Preloader) build(ctx context.Context, saleID, itemID uuid.UUID, epoch int64, waiting []order.Requested) (bool, error) {
	var gate reservation.Contents
	err := p.db.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Sale.Get(ctx, saleID) // it may have been paused or ended since the epoch was taken
		if err != nil {
			return err
		}
		row.Epoch = epoch
		unwritten, err := unwritten(ctx, tx, itemID, waiting)
		if err != nil {
			return err
		}
		gate, err = gateOf(ctx, tx, row, itemID, unwritten)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read item %s: %w", itemID, err)
	}
	if gate.Stock < 0 { // stays below zero: otherwise released units would be added to the stock
		p.log.ErrorContext(ctx, "more units are reserved than there are",
			slog.String("item", id.Format(id.Item, itemID)), slog.Int("missing", -gate.Stock))
	}
	return p.gate.Open(ctx, gate)
}

// gateOf returns the gate that follows from the tables and the unwritten messages.
func gateOf(ctx context.Context, tx *ent.Tx, row *ent.Sale, itemID uuid.UUID, unwritten []order.Requested) (reservation.Contents, error) {
	item, err := tx.SaleItem.Get(ctx, itemID)
	if err != nil {
		return reservation.Contents{}, err
	}
	live, err := tx.Order.Query().Where(entorder.ItemID(itemID), entorder.StatusIn(
		entorder.StatusPENDING_PAYMENT, entorder.StatusPAID, entorder.StatusREFUNDING,
	)).All(ctx)
	if err != nil {
		return reservation.Contents{}, fmt.Errorf("live orders: %w", err)
	}
	moves, err := countMoves(ctx, tx, itemID)
	if err != nil {
		return reservation.Contents{}, err
	}
	acts, err := recentActs(ctx, tx, itemID)
	if err != nil {
		return reservation.Contents{}, err
	}
	offers, err := waitlist.Holds(ctx, tx.WaitlistEntry, itemID)
	if err != nil {
		return reservation.Contents{}, err
	}
	gate := reservation.Contents{
		Sale: row.ID, Item: itemID, State: gateState(row), SaleRevision: row.Revision, Epoch: row.Epoch, Acts: acts,
		Opens: row.StartsAt, Closes: row.EndsAt, Limit: row.PurchaseLimit,
		Total: item.Total, Stock: item.Available,
		Revision: max(revisionsPerEpoch*row.Epoch+int64(moves+len(unwritten)), revisionAbove(item)),
	}
	for _, o := range live {
		claim := order.FromRow(o).Reservation() // a reacquired order has a reservation under a new task
		gate.Reservations = append(gate.Reservations, reservation.Reservation{User: claim.User, Task: claim.Name, Quantity: claim.Quantity, At: o.ReservedAt})
	}
	for _, m := range unwritten {
		gate.Stock -= m.Quantity
		gate.Reservations = append(gate.Reservations, reservation.Reservation{
			User: m.User, Task: m.Task, Quantity: m.Quantity,
			At: time.UnixMilli(m.SubmittedAtMs), IdempotencyKey: m.IdempotencyKey,
		})
	}
	offered(&gate, offers)
	return gate, nil
}

// revisionAbove returns a revision above every revision of the item that clients may
// have seen. Since its revision was last recorded, a lost gate has taken at most its
// total, plus the units released within these seconds.
func revisionAbove(item *ent.SaleItem) int64 {
	if item.GateRevision == 0 {
		return 0
	}
	return max(item.Revision, item.GateRevision) + int64(item.Total) + revisionsPerEpoch
}

// countMoves returns an upper bound of the stock changes that a gate has counted for
// the rows in Postgres. Orders written in one batch share a row.
func countMoves(ctx context.Context, tx *ent.Tx, itemID uuid.UUID) (moves int, err error) {
	var lines []struct {
		Kind  stockmovement.Kind `json:"kind"`
		Count int                `json:"count"`
		Sum   int                `json:"sum"`
	}
	err = tx.StockMovement.Query().Where(stockmovement.ItemID(itemID)).GroupBy(stockmovement.FieldKind).
		Aggregate(ent.Count(), ent.Sum(stockmovement.FieldQuantity)).Scan(ctx, &lines)
	if err != nil {
		return 0, fmt.Errorf("count stock movements: %w", err)
	}
	for _, l := range lines {
		if l.Kind == stockmovement.KindHOLD {
			moves += l.Sum
		} else {
			moves += l.Count
		}
	}
	return moves, nil
}

// offered adds the offers of the waitlist to the reservations of a gate. A user with
// another reservation has just redeemed the offer.
func offered(gate *reservation.Contents, offers []*waitlist.Entry) {
	holding := make(map[uuid.UUID]bool, len(gate.Reservations))
	for _, h := range gate.Reservations {
		holding[h.User] = true
	}
	for _, e := range offers {
		if e.Status != waitlist.Offered || holding[e.User] || e.Quantity > gate.Stock {
			continue
		}
		gate.Stock -= e.Quantity
		gate.Reservations = append(gate.Reservations, reservation.Reservation{User: e.User, Task: e.ID, Quantity: e.Quantity, At: e.UpdatedAt})
	}
}

// maxActs bounds the adjustments stored in a gate: incomplete adjustments are among the
// newest.
const maxActs = 500

// recentActs returns the newest adjustments that the item's stock includes.
func recentActs(ctx context.Context, tx *ent.Tx, itemID uuid.UUID) ([]uuid.UUID, error) {
	rows, err := tx.StockMovement.Query().
		Where(stockmovement.ItemID(itemID), stockmovement.KindEQ(stockmovement.KindADJUST)).
		Order(ent.Desc(stockmovement.FieldID)).Limit(maxActs).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("adjustments: %w", err)
	}
	acts := make([]uuid.UUID, len(rows))
	for i, row := range rows {
		acts[i] = row.OrderID
	}
	return acts, nil
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
