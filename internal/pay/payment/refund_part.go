package payment

import (
	"context"
	"fmt"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/predicate"
	entrefund "seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
)

// UnitsOf returns the units of an order to refund: those that were asked for, or all that
// are left.
func UnitsOf(o *order.Order, asked *int) (int, error) {
	left := o.Left()
	switch {
	case asked == nil:
		return left, nil
	case *asked < 1 || *asked > left:
		return 0, fault.BadField{At: []string{"quantity"}, Rule: fault.Rule{Code: fmt.Sprintf("1 to %d", left)}}
	}
	return *asked, nil
}

// amountOf returns what is refunded for units of an order of whose payment an amount is left. The
// last units take all of it, and others no more than it.
func amountOf(o *order.Order, left int64, units int) int64 {
	if units == o.Left() {
		return left
	}
	return min(left, o.UnitPriceMinor*int64(units))
}

// units returns the units of the refund. Rows of the first releases have none: they are of
// all units.
func (r *Refund) units(o *order.Order) int {
	if r.Quantity == 0 && r.Cause.moves() {
		return o.Quantity
	}
	return r.Quantity
}

// move returns the move of an order that the refund ends, wholly or in part.
func (r *Refund) move(o *order.Order) order.Move {
	m := order.Move{Order: o, To: order.Refunded, KeepUnits: !r.Restock}
	units := r.units(o)
	if units < o.Quantity {
		m.Part = &order.Part{Refund: r.ID, Units: units}
	}
	if units < o.Left() {
		m.To = order.Paid
	}
	return m
}

// rejected counts the refunds that operators rejected.
func rejected(refunds []*Refund) (n int) {
	for _, r := range refunds {
		if r.Status == RefundRejected {
			n++
		}
	}
	return n
}

// finishedPart matches refunds of units whose money is back with the buyer.
func finishedPart() predicate.Refund {
	return entrefund.And(entrefund.QuantityGT(0), entrefund.StatusIn(entrefund.StatusSUCCEEDED, entrefund.StatusSETTLED))
}

// afterRefund returns the state of a payment once a refund of it has succeeded: REFUNDED
// when its provider keeps no money of it. The caller changes the payment with a
// compare-and-set, so that of two refunds at the same time the second one counts the first.
func afterRefund(ctx context.Context, tx *ent.Tx, r *Refund, p *Payment) (entpayment.Status, error) {
	if r.Quantity == 0 {
		return entpayment.StatusREFUNDED, nil
	}
	others, err := tx.Refund.Query().Where(ownMoney(p)...).
		Where(entrefund.IDNEQ(r.ID), entrefund.StatusEQ(entrefund.StatusSUCCEEDED)).All(ctx)
	if err != nil {
		return "", fmt.Errorf("read refunds of payment %s: %w", p.ID, err)
	}
	back := r.AmountMinor
	for _, other := range others {
		back += other.AmountMinor
	}
	if back < p.AmountMinor {
		return entpayment.StatusSUCCEEDED, nil
	}
	return entpayment.StatusREFUNDED, nil
}
