package audit

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	entpayment "seckill/ent/payment"
	entrefund "seckill/ent/refund"
	"seckill/internal/order"
	"seckill/internal/payment"
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

// paymentRow is a payment with its refund.
type paymentRow struct {
	order  uuid.UUID
	status payment.Status
	amount int64
	until  time.Time
	refund *refundRow // the refund that was not rejected; the database allows at most one
}

type refundRow struct {
	cause  payment.Cause
	status payment.RefundStatus
	amount int64
}

// came reports whether money was received.
func (p paymentRow) came() bool { return p.status == payment.Succeeded || p.status == payment.Refunded }

// pays reports whether the payment pays its order: not late, and not a second time.
func (p paymentRow) pays() bool {
	return p.came() && (p.refund == nil || p.refund.cause == payment.Asked || p.refund.cause == payment.Voided)
}

// readMoney reads the payments of an item's orders, by id.
func readMoney(ctx context.Context, tx *ent.Tx, sale, item uuid.UUID) (map[uuid.UUID]paymentRow, error) {
	ofItem := func(column string) func(*sql.Selector) {
		return func(s *sql.Selector) {
			orders := sql.Table(entorder.Table)
			s.Where(sql.In(s.C(column), sql.Select(orders.C(entorder.FieldID)).From(orders).
				Where(sql.And(sql.EQ(orders.C(entorder.FieldSaleID), sale), sql.EQ(orders.C(entorder.FieldItemID), item)))))
		}
	}
	money := map[uuid.UUID]paymentRow{}
	for last := uuid.Nil; ; {
		rows, err := tx.Payment.Query().Where(ofItem(entpayment.FieldOrderID), entpayment.IDGT(last)).
			Order(entpayment.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read payments: %w", err)
		}
		for _, row := range rows {
			money[row.ID] = paymentRow{order: row.OrderID, status: payment.Status(row.Status), amount: row.AmountMinor, until: row.ExpiresAt}
			last = row.ID
		}
		if len(rows) < page {
			break
		}
	}
	for last := uuid.Nil; ; {
		rows, err := tx.Refund.Query().
			Where(ofItem(entrefund.FieldOrderID), entrefund.IDGT(last), entrefund.Transaction(""), entrefund.StatusNEQ(entrefund.StatusREJECTED)).
			Order(entrefund.ByID()).Limit(page).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read refunds: %w", err)
		}
		for _, row := range rows {
			p := money[row.PaymentID]
			p.refund = &refundRow{cause: payment.Cause(row.Cause), status: payment.RefundStatus(row.Status), amount: row.AmountMinor}
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
	pays := map[uuid.UUID]int{}
	var wrong, open []uuid.UUID
	for payment, p := range it.payments {
		if p.pays() {
			pays[p.order]++
		}
		if !p.sound() {
			wrong = append(wrong, payment)
		}
		if p.status.IsOpen() && now.Sub(p.until) > overdue {
			open = append(open, payment)
		}
	}
	var unpaid, kept []uuid.UUID
	for task, o := range it.orders {
		switch o.status {
		case order.Paid, order.Refunding, order.Refunded:
			if pays[task] != 1 {
				unpaid = append(unpaid, task)
			}
		case order.PendingPayment, order.Cancelled, order.Expired:
			if pays[task] != 0 {
				kept = append(kept, task)
			}
		}
	}
	f.tasks(unpaid, "%d sold orders are not paid exactly once")
	f.tasks(kept, "%d orders are not sold, and their money is kept")
	f.tasks(wrong, "%d payments do not agree with their refunds")
	f.tasks(open, "%d payments have no end long after their time")
}

// sound reports whether a payment and its refund match. Held money may differ from the
// requested amount, and is refunded in the received amount: its refund is LATE.
func (p paymentRow) sound() bool {
	if p.refund == nil {
		return p.status != payment.Refunded
	}
	if p.refund.amount > p.amount && p.refund.cause != payment.Late {
		return false
	}
	return p.came() && (p.refund.status == payment.RefundSucceeded) == (p.status == payment.Refunded)
}

// sum adds the money of an item.
func (m *Money) sum(it *itemState) {
	for _, p := range it.payments {
		if p.came() {
			m.Paid += p.amount
		}
		if p.refund == nil {
			continue
		}
		switch p.refund.status {
		case payment.RefundSucceeded, payment.RefundSettled:
			m.Back += p.refund.amount
		case payment.RefundSending:
			m.Coming += p.refund.amount
		case payment.RefundRequested, payment.RefundRejected, payment.RefundGivenUp:
		}
	}
}
