package payment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Totals are the money of an order or of a sale in one currency, in minor units, as its
// providers reported it.
type Totals struct {
	Currency    string
	Charged     int64
	Refunded    int64 // went back to buyers, in whatever way, or was lost in a dispute
	Fees        int64
	FeesUnknown int // payments whose fee is not known
}

// Net returns what is left.
func (t Totals) Net() int64 { return t.Charged - t.Refunded - t.Fees }

// TotalsOf sums a ledger, one entry per currency, in the order of their codes.
func TotalsOf(ledger []LedgerEntry) []Totals {
	by := map[string]*Totals{}
	known := map[id.Payment]bool{}
	of := func(amount money.Amount) *Totals {
		t := by[amount.Currency]
		if t == nil {
			t = &Totals{Currency: amount.Currency}
			by[amount.Currency] = t
		}
		return t
	}
	for _, e := range ledger {
		t := of(e.Amount)
		switch e.Kind {
		case LedgerCharged:
			t.Charged += e.Amount.Minor
		case LedgerRefunded, LedgerDisputeLost, LedgerSettled:
			t.Refunded += e.Amount.Minor
		case LedgerFee:
			t.Fees += e.Amount.Minor
			known[e.Payment] = true
		}
	}
	counted := map[id.Payment]bool{}
	for _, e := range ledger {
		if e.Kind == LedgerCharged && !known[e.Payment] && !counted[e.Payment] {
			counted[e.Payment] = true
			of(e.Amount).FeesUnknown++
		}
	}
	return inOrder(by)
}

func inOrder(by map[string]*Totals) []Totals {
	list := make([]Totals, 0, len(by))
	for _, t := range by {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(x, y Totals) int { return cmp.Compare(x.Currency, y.Currency) })
	return list
}

// saleTotals sums the ledgers of all orders of a sale, and of its entries that were not drawn: what
// LedgerEntry says of one. A transaction that several events report counts once. Columns: what,
// currency, sum, count.
const saleTotals = `
WITH paid AS (SELECT p.* FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.sale_id = $1
  UNION SELECT p.* FROM payments p JOIN waitlist_entries w ON w.id = p.entry_id WHERE w.sale_id = $1 AND p.paid_at IS NOT NULL),
reported AS (SELECT e.payment_id, e.kind, e."transaction", e.currency, max(e.amount_minor) AS amount
  FROM payment_events e JOIN paid p ON p.id = e.payment_id
  WHERE e.kind IN ('SUCCEEDED', 'DISPUTE_LOST') GROUP BY e.payment_id, e.kind, e."transaction", e.currency)
SELECT 'charged', currency, sum(amount), count(*) FROM reported WHERE kind = 'SUCCEEDED' GROUP BY currency
UNION ALL
SELECT 'back', currency, sum(amount), count(*) FROM reported WHERE kind = 'DISPUTE_LOST' GROUP BY currency
UNION ALL
SELECT 'back', r.currency, sum(r.amount_minor), count(*) FROM refunds r JOIN paid p ON p.id = r.payment_id
  WHERE r.status IN ('SUCCEEDED', 'SETTLED') GROUP BY r.currency
UNION ALL
SELECT 'fee', fee_currency, sum(fee_minor), count(*) FROM paid WHERE fee_minor IS NOT NULL AND paid_at IS NOT NULL GROUP BY fee_currency
UNION ALL
SELECT 'unknown', r.currency, 0, count(DISTINCT r.payment_id) FROM reported r JOIN paid p ON p.id = r.payment_id
  WHERE r.kind = 'SUCCEEDED' AND p.fee_minor IS NULL GROUP BY r.currency`

// SaleTotals returns the money of all orders and entries of a sale, one entry per currency.
func (s *Service) SaleTotals(ctx context.Context, sale id.Sale) (_ []Totals, err error) {
	rows, err := s.cfg.DB.SQL.QueryContext(ctx, saleTotals, sale)
	if err != nil {
		return nil, fmt.Errorf("read money of sale %s: %w", sale, err)
	}
	defer func() { _ = rows.Close() }()
	by := map[string]*Totals{}
	for rows.Next() {
		var what, currency string
		var sum, count int64
		if err := rows.Scan(&what, &currency, &sum, &count); err != nil {
			return nil, fmt.Errorf("read money of sale %s: %w", sale, err)
		}
		t := by[currency]
		if t == nil {
			t = &Totals{Currency: currency}
			by[currency] = t
		}
		switch what {
		case "charged":
			t.Charged += sum
		case "back":
			t.Refunded += sum
		case "fee":
			t.Fees += sum
		case "unknown":
			t.FeesUnknown += int(count)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read money of sale %s: %w", sale, err)
	}
	return inOrder(by), nil
}
