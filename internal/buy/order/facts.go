package order

import (
	"context"
	"time"

	"seckill/ent"
	"seckill/internal/platform/id"
)

// Facts receives what happened to orders and stock, in the transaction in which it happened,
// so that neither is stored without the other. Package orderfacts implements it.
type Facts interface {
	// Moved receives orders that made the same move; new orders move from "".
	Moved(ctx context.Context, tx *ent.Tx, from Status, orders ...*Order) error
	// Refunded receives an order of which some or all units were refunded.
	Refunded(ctx context.Context, tx *ent.Tx, o *Order, units int) error
	// RecipientChanged receives an order with another recipient.
	RecipientChanged(ctx context.Context, tx *ent.Tx, o *Order) error
	// FulfilmentChanged receives an order whose goods are further on their way.
	FulfilmentChanged(ctx context.Context, tx *ent.Tx, o *Order) error
	// Reviewed receives an unpaid order that was held for review, or released.
	Reviewed(ctx context.Context, tx *ent.Tx, o *Order) error
	// NotCharged receives an unpaid order of a drawn entry whose card was declined.
	NotCharged(ctx context.Context, tx *ent.Tx, o *Order) error
	// UnitsLost receives what an item lost. Its row is locked.
	UnitsLost(ctx context.Context, tx *ent.Tx, item id.Item, lost LostUnits) error
}

// LostUnits are the units that a change took from an item.
type LostUnits struct {
	Available int // units that are no longer available
	Total     int // units that left the item
	At        time.Time
}

// orNone returns f, or Facts that ignore everything for nil.
func orNone(f Facts) Facts {
	if f == nil {
		return noFacts{}
	}
	return f
}

type noFacts struct{}

func (noFacts) Moved(context.Context, *ent.Tx, Status, ...*Order) error      { return nil }
func (noFacts) Refunded(context.Context, *ent.Tx, *Order, int) error         { return nil }
func (noFacts) RecipientChanged(context.Context, *ent.Tx, *Order) error      { return nil }
func (noFacts) FulfilmentChanged(context.Context, *ent.Tx, *Order) error     { return nil }
func (noFacts) Reviewed(context.Context, *ent.Tx, *Order) error              { return nil }
func (noFacts) NotCharged(context.Context, *ent.Tx, *Order) error            { return nil }
func (noFacts) UnitsLost(context.Context, *ent.Tx, id.Item, LostUnits) error { return nil }
