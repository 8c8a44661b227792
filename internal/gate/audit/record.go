package audit

import (
	"context"
	"fmt"

	"seckill/ent"
	"seckill/ent/intervention"
	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/ent/predicate"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/buy/order"
	"seckill/internal/buy/sale"
	"seckill/internal/buy/waitlist"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// page limits one read of rows; each stays far below the statement timeout.
const page = 5000

// readSale returns the items of a sale by position, or ErrUnknownSale.
func (a *Auditor) readSale(ctx context.Context, saleID id.Sale) ([]*ent.SaleItem, error) {
	rows, err := a.DB.Ent.SaleItem.Query().Where(saleitem.SaleID(saleID)).Order(saleitem.ByPosition()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the items: %w", err)
	}
	if len(rows) > 0 {
		return rows, nil
	}
	_, err = a.DB.Ent.Sale.Get(ctx, saleID)
	if ent.IsNotFound(err) {
		return nil, ErrUnknownSale
	}
	return nil, err
}

// readRecord reads all rows of Postgres in one snapshot.
func (a *Auditor) readRecord(ctx context.Context, saleID id.Sale, s *state) error {
	return a.DB.ReadSnapshot(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Sale.Get(ctx, saleID)
		if err != nil {
			return fmt.Errorf("read the sale: %w", err)
		}
		s.sale, s.status, s.epoch, s.limit = row.ID, sale.Status(row.Status), row.Epoch, sale.LimitOf(row)
		for _, it := range s.items {
			if err := it.readRecord(ctx, tx, saleID); err != nil {
				return fmt.Errorf("item %s: %w", it.id, err)
			}
			it.limit = sale.ItemLimitOf(row, it.row)
		}
		return nil
	})
}

func (it *itemState) readRecord(ctx context.Context, tx *ent.Tx, saleID id.Sale) (err error) {
	if it.row, err = tx.SaleItem.Get(ctx, it.id); err != nil {
		return fmt.Errorf("read the stock: %w", err)
	}
	if it.ledger, err = readLedger(ctx, tx, it.id); err != nil {
		return err
	}
	if it.orders, err = readOrders(ctx, tx, saleID, it.id); err != nil {
		return err
	}
	if it.failures, err = readFailures(ctx, tx, saleID, it.id); err != nil {
		return err
	}
	if it.places, err = readPlaces(ctx, tx, it); err != nil {
		return err
	}
	if it.payments, err = readMoney(ctx, tx, saleID, it.id); err != nil {
		return err
	}
	if it.late, err = readLate(ctx, tx, it); err != nil {
		return err
	}
	if it.moving, err = readMoving(ctx, tx, it.id); err != nil {
		return err
	}
	for _, o := range it.orders {
		if o.returnDue { // withdrawn units may still be in the gate
			it.moving += o.refunded
		}
	}
	return nil
}

// readPlaces reads the waitlist entries that have an offer, or that have units reserved
// in Redis.
func readPlaces(ctx context.Context, tx *ent.Tx, it *itemState) (map[id.Waitlist]*waitlist.Entry, error) {
	var names []id.Waitlist
	for _, h := range it.gate.reservations {
		if _, ordered := it.orders[h.task]; !ordered {
			names = append(names, id.Waitlist(h.task))
		}
	}
	places, err := waitlist.Holds(ctx, tx.WaitlistEntry, it.id, names...)
	if err != nil {
		return nil, err
	}
	return collect.Index(places, func(e *waitlist.Entry) id.Waitlist { return e.ID }), nil
}

// readMoving sums the changes of stock that are written to one store and possibly not to
// the other yet.
func readMoving(ctx context.Context, tx *ent.Tx, item id.Item) (int, error) {
	acts, err := tx.Intervention.Query().Where(
		intervention.ItemID(item), intervention.KindEQ(intervention.KindADJUST_STOCK),
		intervention.StateIn(intervention.StateTAKING, intervention.StateRETURNING, intervention.StateFINISHING),
	).All(ctx)
	if err != nil {
		return 0, fmt.Errorf("read changes of stock: %w", err)
	}
	units := 0
	for _, act := range acts {
		units += max(act.Quantity, -act.Quantity)
	}
	return units, nil
}

// readLedger sums the units of each kind of movement.
func readLedger(ctx context.Context, tx *ent.Tx, item id.Item) (map[order.Movement]int, error) {
	var sums []struct {
		Kind string `json:"kind"`
		Sum  int    `json:"sum"`
	}
	err := tx.StockMovement.Query().Where(stockmovement.ItemID(item)).GroupBy(stockmovement.FieldKind).
		Aggregate(ent.Sum(stockmovement.FieldQuantity)).Scan(ctx, &sums)
	if err != nil {
		return nil, fmt.Errorf("sum the ledger: %w", err)
	}
	ledger := make(map[order.Movement]int, len(sums))
	for _, s := range sums {
		ledger[order.Movement(s.Kind)] = s.Sum
	}
	return ledger, nil
}

func readOrders(ctx context.Context, tx *ent.Tx, sale id.Sale, item id.Item) (map[id.Task]orderRow, error) {
	orders := map[id.Task]orderRow{}
	for last := (id.Order{}); ; {
		rows, err := tx.Order.Query().Where(entorder.SaleID(sale), entorder.ItemID(item), entorder.IDGT(last)).
			Order(entorder.ByID()).Limit(page).
			Select(entorder.FieldID, entorder.FieldUserID, entorder.FieldQuantity, entorder.FieldRefundedQuantity,
				entorder.FieldStatus,
				entorder.FieldClaimID, entorder.FieldReturnDue, entorder.FieldPersonKeys).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read orders: %w", err)
		}
		for _, row := range rows {
			o := order.FromRow(row)
			orders[id.Task(row.ID)] = orderRow{
				user: row.UserID, quantity: row.Quantity, refunded: o.RefundedUnits(), status: o.Status,
				reservation: o.Reservation().Name, returnDue: row.ReturnDue, code: o.Persons.Code,
			}
			last = row.ID
		}
		if len(rows) < page {
			return orders, nil
		}
	}
}

func readFailures(ctx context.Context, tx *ent.Tx, saleID id.Sale, item id.Item) (map[id.Task]failure, error) {
	failures := map[id.Task]failure{}
	for last := (id.Task{}); ; {
		where := []predicate.OrderFailure{orderfailure.SaleID(saleID), orderfailure.ItemID(item), orderfailure.IDGT(last)}
		rows, err := tx.OrderFailure.Query().Where(where...).Order(orderfailure.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read failed tasks: %w", err)
		}
		for _, row := range rows {
			failures[row.ID] = failure{quantity: row.Quantity, released: row.Released, lost: row.Reason == order.ReasonLost}
			last = row.ID
		}
		if len(rows) < page {
			return failures, nil
		}
	}
}
