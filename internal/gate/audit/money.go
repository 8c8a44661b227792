package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	entrefund "seckill/ent/refund"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/order"
	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// overdue is how long after its time a payment may stay open: its provider may be
// unavailable, and is polled at most every two minutes.
const overdue = 10 * time.Minute

// Money holds the figures of a sale's money in Postgres, in minor units.
type Money struct {
	Paid   int64 `json:"paid"`   // received, including what was refunded later
	Back   int64 `json:"back"`   // refunded
	Coming int64 `json:"coming"` // refund decided, and not complete yet
}

type paymentRow struct {
	order   id.Order
	status  payment.Status
	amount  int64
	until   time.Time
	refunds []refundRow // that were not rejected
}

type refundRow struct {
	cause    payment.Cause
	status   payment.RefundStatus
	amount   int64
	quantity int  // units of the order; 0 = none, or all in rows of the first releases
	applied  bool // whether it moved the order
}

// isLate reports whether the refund is of money that did not pay the order.
func (r refundRow) isLate() bool { return r.cause == payment.Late || r.cause == payment.Double }

// came reports whether money was received.
func (p paymentRow) came() bool { return p.status == payment.Succeeded || p.status == payment.Refunded }

// pays reports whether the payment pays its order: not late, and not a second time.
func (p paymentRow) pays() bool {
	return p.came() && !slices.ContainsFunc(p.refunds, refundRow.isLate)
}

// readMoney reads the payments of an item's orders, and those that ended entries of its draw may still
// hold, by id.
func readMoney(ctx context.Context, tx *ent.Tx, sale id.Sale, item id.Item) (map[id.Payment]paymentRow, error) {
	ofItem := func(s *sql.Selector, column string) *sql.Predicate {
		orders := sql.Table(entorder.Table)
		return sql.In(s.C(column), sql.Select(orders.C(entorder.FieldID)).From(orders).
			Where(sql.And(sql.EQ(orders.C(entorder.FieldSaleID), sale), sql.EQ(orders.C(entorder.FieldItemID), item))))
	}
	held := func(s *sql.Selector) {
		entries := sql.Table(waitlistentry.Table)
		ended := sql.Select(entries.C(waitlistentry.FieldID)).From(entries).Where(sql.And(
			sql.EQ(entries.C(waitlistentry.FieldItemID), item),
			sql.NEQ(entries.C(waitlistentry.FieldCard), waitlistentry.CardNONE),
			sql.In(entries.C(waitlistentry.FieldStatus), waitlistentry.StatusLEFT, waitlistentry.StatusEXPIRED)))
		s.Where(sql.Or(ofItem(s, entpayment.FieldOrderID), sql.And(sql.In(s.C(entpayment.FieldEntryID), ended),
			sql.In(s.C(entpayment.FieldStatus), payment.Creating, payment.Pending, payment.Authorized))))
	}
	money := map[id.Payment]paymentRow{}
	for last := (id.Payment{}); ; {
		rows, err := tx.Payment.Query().Where(held, entpayment.IDGT(last)).
			Order(entpayment.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read payments: %w", err)
		}
		for _, row := range rows {
			money[row.ID] = paymentRow{order: row.OrderID, status: payment.Status(row.Status), amount: row.AmountMinor,
				until: row.ExpiresAt}
			last = row.ID
		}
		if len(rows) < page {
			break
		}
	}
	for last := (id.Refund{}); ; {
		rows, err := tx.Refund.Query().
			Where(func(s *sql.Selector) { s.Where(ofItem(s, entrefund.FieldOrderID)) }, entrefund.IDGT(last),
				entrefund.Or(entrefund.Transaction(""), entrefund.CauseEQ(entrefund.CauseOUTSIDE)),
				entrefund.StatusNEQ(entrefund.StatusREJECTED)).
			Order(entrefund.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read refunds: %w", err)
		}
		for _, row := range rows {
			p := money[row.PaymentID]
			p.refunds = append(p.refunds, refundRow{
				cause: payment.Cause(row.Cause), status: payment.RefundStatus(row.Status), amount: row.AmountMinor,
				quantity: row.Quantity, applied: row.Applied,
			})
			money[row.PaymentID] = p
			last = row.ID
		}
		if len(rows) < page {
			return money, nil
		}
	}
}

// money checks that each sold order is paid once, that money received without an order is
// refunded, and that each payment reaches a final state.
func (f *findings) money(it *itemState, now time.Time) {
	pays, applied := map[id.Order]int{}, map[id.Order]int{}
	var (
		wrong, open []id.Payment
	)
	for payment, p := range it.payments {
		if p.pays() {
			pays[p.order]++
		}
		applied[p.order] += p.appliedUnits()
		if !p.matchesRefunds() {
			wrong = append(wrong, payment)
		}
		if p.status.IsOpen() && now.Sub(p.until) > overdue {
			open = append(open, payment)
		}
	}
	var (
		unpaid, kept, units []id.Task
	)
	for task, o := range it.orders {
		if o.refunded != applied[id.Order(task)] && (o.status != order.Refunded || applied[id.Order(task)] != 0) {
			units = append(units, task)
		}
		switch o.status {
		case order.Paid, order.Refunding, order.Refunded:
			if pays[id.Order(task)] != 1 {
				unpaid = append(unpaid, task)
			}
		case order.PendingPayment, order.Cancelled, order.Expired:
			if pays[id.Order(task)] != 0 {
				kept = append(kept, task)
			}
		}
	}
	f.tasks(unpaid, "%d sold orders are not paid exactly once")
	f.tasks(kept, "%d orders are not sold, and their money is kept")
	f.tasks(units, "%d orders do not agree with their refunds about the refunded units")
	named(f, id.KindPayment, wrong, "%d payments do not agree with their refunds")
	named(f, id.KindPayment, open, "%d payments have no end long after their time")
}

// appliedUnits returns the units of the refunds that moved the order.
func (p paymentRow) appliedUnits() (units int) {
	for _, r := range p.refunds {
		if r.applied {
			units += r.quantity
		}
	}
	return units
}

// matchesRefunds reports whether a payment and its refunds match. Held money may differ from the
// requested amount, and is refunded in the received amount: its refund is LATE.
func (p paymentRow) matchesRefunds() bool {
	if len(p.refunds) == 0 {
		return p.status != payment.Refunded
	}
	var sum, back int64
	whole := false
	for _, r := range p.refunds {
		if r.cause != payment.Late {
			sum += r.amount
		}
		if r.status == payment.RefundSucceeded {
			back, whole = back+r.amount, whole || r.quantity == 0 && r.cause != payment.Outside
		}
	}
	return sum <= p.amount && p.came() && (whole || back > 0 && back == p.amount) == (p.status == payment.Refunded)
}

func (m *Money) sum(it *itemState) {
	for _, p := range it.payments {
		if p.came() {
			m.Paid += p.amount
		}
		for _, r := range p.refunds {
			switch r.status {
			case payment.RefundSucceeded, payment.RefundSettled:
				m.Back += r.amount
			case payment.RefundSending:
				m.Coming += r.amount
			case payment.RefundRequested, payment.RefundRejected, payment.RefundGivenUp:
			}
		}
	}
}
