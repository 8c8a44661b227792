package operator

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/refund"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
	"seckill/internal/platform/spreadsheet"
)

// moneyOf is the money of the payment that paid an order, and what went back of it.
// Without such a payment it is that of the last one whose money came late.
type moneyOf struct {
	payment    *ent.Payment // nil = none
	refund     *ent.Refund  // the newest; nil = none
	refunded   money.Amount // the sum of finished refunds
	refundedAt *time.Time   // when the last of them finished; nil = none
}

// money reads the payments and refunds of a page of orders.
func (e *Export) money(ctx context.Context, rows []*ent.Order) (map[id.Order]*moneyOf, error) {
	found := make(map[id.Order]*moneyOf, len(rows))
	ids := make([]id.Order, len(rows))
	for i, row := range rows {
		ids[i], found[row.ID] = row.ID, &moneyOf{refunded: money.Amount{Currency: row.Currency}}
	}
	payments, err := e.s.cfg.DB.Ent.Payment.Query().
		Where(entpayment.OrderIDIn(ids...), entpayment.StatusIn(entpayment.StatusSUCCEEDED, entpayment.StatusREFUNDED)).
		Order(ent.Asc(entpayment.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("export payments: %w", err)
	}
	refunds, err := e.s.cfg.DB.Ent.Refund.Query().Where(refund.OrderIDIn(ids...), refund.Transaction("")).
		Order(ent.Asc(refund.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("export refunds: %w", err)
	}
	unused := make(map[id.Payment]bool) // their money went back by itself
	for _, r := range refunds {
		if (r.Cause == refund.CauseLATE || r.Cause == refund.CauseDOUBLE) && r.Status != refund.StatusREJECTED {
			unused[r.PaymentID] = true
		}
	}
	for _, p := range payments {
		if m := found[p.OrderID]; m.payment == nil || unused[m.payment.ID] {
			m.payment = p
		}
	}
	for _, r := range refunds {
		m := found[r.OrderID]
		if m.payment == nil || m.payment.ID != r.PaymentID {
			continue
		}
		m.refund = r
		if r.Status == refund.StatusSUCCEEDED || r.Status == refund.StatusSETTLED {
			m.refunded.Minor += r.AmountMinor
			m.refundedAt = &r.UpdatedAt
		}
	}
	return found, nil
}

// columns returns the columns of the money of exportHeader.
func (m *moneyOf) columns() []string {
	columns := make([]string, 5)
	if m.payment != nil {
		columns[0], columns[1] = spreadsheet.Safe(m.payment.Provider), spreadsheet.Safe(m.payment.Transaction)
	}
	if m.refund != nil {
		columns[2] = string(m.refund.Status)
		columns[3] = m.refunded.Decimal()
		columns[4] = stamp(m.refundedAt)
	}
	return columns
}
