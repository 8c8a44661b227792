package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/ent/saleitem"
	"seckill/ent/stockmovement"
	"seckill/internal/id"
	"seckill/internal/postgres"
)

// What can come between a move and its commit. Each leaves the transaction to be
// rolled back.
var (
	// ErrMoved says that somebody else moved the order first: read it again.
	ErrMoved = errors.New("order was moved by somebody else")
	// ErrNoUnit says that the stock has not enough units for the move.
	ErrNoUnit = errors.New("no unit left")
	// ErrOtherLive says that the user has another live order of the item.
	ErrOtherLive = errors.New("user has another live order")
)

// Move is a wanted change of state.
type Move struct {
	Order     *Order // as it was read; its status and version are the guard
	To        Status
	At        time.Time
	KeepUnits bool // leave the units where they are, where the table allows the choice
}

// Apply changes an order's state and moves its units in the caller's
// transaction: a compare-and-set on status and version, a ledger line, and a
// guarded update of the item, which is locked last. It returns the order as it
// stands then. A move that is not in the table is an error of the caller.
func Apply(ctx context.Context, tx *ent.Tx, m Move) (*Order, error) {
	e, ok := edgeOf(m.Order.Status, m.To)
	if !ok {
		return nil, fmt.Errorf("order %s: no move from %s to %s", m.Order.ID, m.Order.Status, m.To)
	}
	moved := m.Order.moved(m.To, instant(m.At))
	if err := compareAndSet(ctx, tx, m.Order, moved); err != nil {
		return nil, err
	}
	if e.stock == NoMovement || (m.KeepUnits && e.optional) {
		return moved, nil
	}
	return moved, moveStock(ctx, tx, e.stock, moved)
}

// moved is the order after a move.
func (o *Order) moved(to Status, at time.Time) *Order {
	next := *o
	next.Status = to
	next.Version++
	next.UpdatedAt = at
	if to == Paid && o.PaidAt == nil {
		next.PaidAt = &at
	}
	if to != PendingPayment {
		next.PaymentDeadline = nil
	}
	return &next
}

func compareAndSet(ctx context.Context, tx *ent.Tx, was, is *Order) error {
	update := tx.Order.Update().
		Where(entorder.ID(was.ID), entorder.StatusEQ(entorder.Status(was.Status)), entorder.Version(was.Version)).
		SetStatus(entorder.Status(is.Status)).SetVersion(is.Version).SetUpdatedAt(is.UpdatedAt)
	if is.PaymentDeadline == nil {
		update.ClearPaymentDeadline()
	}
	if is.PaidAt != nil {
		update.SetPaidAt(*is.PaidAt)
	}
	n, err := update.Save(ctx)
	switch {
	case postgres.IsUnique(err):
		return ErrOtherLive
	case err != nil:
		return fmt.Errorf("move order %s from %s to %s: %w", was.ID, was.Status, is.Status, err)
	case n == 0:
		return ErrMoved
	}
	return nil
}

// moveStock writes the ledger line, whose key makes the move happen once, and
// moves the units.
func moveStock(ctx context.Context, tx *ent.Tx, kind Movement, o *Order) error {
	err := tx.StockMovement.Create().SetID(id.New()).SetOrderID(o.ID).SetItemID(o.Item).
		SetKind(stockmovement.Kind(kind)).SetQuantity(o.Quantity).SetCreatedAt(o.UpdatedAt).Exec(ctx)
	if err != nil {
		return fmt.Errorf("ledger %s of order %s: %w", kind, o.ID, err)
	}
	guard, change := stockChange(tx, kind, o.Quantity)
	n, err := change.Where(saleitem.ID(o.Item), guard).AddRevision(1).Save(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("move stock %s of order %s: %w", kind, o.ID, err)
	case n == 0:
		return ErrNoUnit
	}
	return nil
}

// stockChange returns the columns that a movement changes, and the guard that
// keeps them from falling below zero.
func stockChange(tx *ent.Tx, kind Movement, n int) (predicate.SaleItem, *ent.SaleItemUpdate) {
	update := tx.SaleItem.Update()
	switch kind {
	case Hold:
		return saleitem.AvailableGTE(n), update.AddAvailable(-n).AddHeld(n)
	case Sell:
		return saleitem.HeldGTE(n), update.AddHeld(-n).AddSold(n)
	case Release:
		return saleitem.HeldGTE(n), update.AddHeld(-n).AddAvailable(n)
	case Retake:
		return saleitem.AvailableGTE(n), update.AddAvailable(-n).AddSold(n)
	case Restock:
		return saleitem.SoldGTE(n), update.AddSold(-n).AddAvailable(n)
	case NoMovement:
	}
	panic(fmt.Sprintf("order: no change of stock for movement %q", kind)) // the table names no other
}
