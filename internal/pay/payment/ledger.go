package payment

import (
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"seckill/ent"
	entpayment "seckill/ent/payment"
	"seckill/ent/paymentevent"
	"seckill/ent/refund"
	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// maxEntries bounds the entries of each kind in the ledger of an order: payments that moved
// money, what was reported about them, and refunds. Payments that were begun and left are
// not among them, however many.
const maxEntries = 100

// LedgerKind is what money did.
type LedgerKind string

// Kinds of movements of money.
const (
	LedgerCharged     LedgerKind = "CHARGED"      // came from the buyer
	LedgerFee         LedgerKind = "FEE"          // kept by the provider
	LedgerRefunded    LedgerKind = "REFUNDED"     // went back to the buyer
	LedgerSettled     LedgerKind = "SETTLED"      // given back to the buyer outside the provider
	LedgerDisputeLost LedgerKind = "DISPUTE_LOST" // taken back by the buyer's bank
)

// LedgerEntry is one movement of money of an order.
type LedgerEntry struct {
	At          time.Time
	Kind        LedgerKind
	Amount      money.Amount // positive
	Payment     id.Payment
	Provider    string
	Transaction string // may be empty
}

// Ledger returns the movements of the money of an order as its providers reported them,
// oldest first. Money that waits for an operator is in it, and so is what came twice.
func (s *Service) Ledger(ctx context.Context, of id.Order) ([]LedgerEntry, error) {
	rows, err := s.cfg.DB.Ent.Payment.Query().Where(entpayment.OrderID(of), movedMoney).Order(ent.Asc(entpayment.FieldID)).
		Limit(maxEntries).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ledger of order %s: %w", of, err)
	}
	known, ids := map[id.Payment]*Payment{}, make([]id.Payment, len(rows))
	var entries []LedgerEntry
	for i, row := range rows {
		p := fromRow(row)
		known[p.ID], ids[i] = p, p.ID
		if p.Fee != nil && p.PaidAt != nil {
			entries = append(entries, LedgerEntry{p.PaidAt.UTC(), LedgerFee, *p.Fee, p.ID, p.Provider, p.Transaction})
		}
	}
	reported, err := s.reported(ctx, ids)
	if err != nil {
		return nil, err
	}
	entries = append(entries, reported...)
	refunds, err := s.cfg.DB.Ent.Refund.Query().
		Where(refund.OrderID(of), refund.StatusIn(refund.StatusSUCCEEDED, refund.StatusSETTLED)).
		Order(ent.Asc(refund.FieldID)).Limit(maxEntries).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read refunds in the ledger of order %s: %w", of, err)
	}
	for _, r := range refunds {
		e := LedgerEntry{r.UpdatedAt.UTC(), LedgerRefunded, money.Amount{Minor: r.AmountMinor, Currency: r.Currency},
			r.PaymentID, "", r.Transaction}
		if r.Status == refund.StatusSETTLED {
			e.Kind = LedgerSettled
		}
		if p := known[r.PaymentID]; p != nil {
			e.Provider = p.Provider
			if e.Transaction == "" {
				e.Transaction = p.Transaction
			}
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(x, y LedgerEntry) int { return x.At.Compare(y.At) })
	return entries, nil
}

// movesMoney matches the events that are entries of a ledger.
func movesMoney(s *entsql.Selector) {
	paymentevent.KindIn(paymentevent.KindSUCCEEDED, paymentevent.KindDISPUTE_LOST)(s)
}

// movedMoney matches the payments with entries in a ledger.
func movedMoney(s *entsql.Selector) {
	events := entsql.Table(paymentevent.Table)
	reported := entsql.Dialect(s.Dialect()).Select(events.C(paymentevent.FieldPaymentID)).From(events)
	movesMoney(reported)
	s.Where(entsql.Or(entsql.NotNull(s.C(entpayment.FieldPaidAt)), entsql.In(s.C(entpayment.FieldID), reported)))
}

// reported returns the money that events of payments are about, each transaction once: a
// call-back and the answer to a query are two events.
func (s *Service) reported(ctx context.Context, payments []id.Payment) (entries []LedgerEntry, err error) {
	events, err := s.cfg.DB.Ent.PaymentEvent.Query().Where(paymentevent.PaymentIDIn(payments...), movesMoney).
		Order(ent.Asc(paymentevent.FieldID)).Limit(maxEntries).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read events of %d payments: %w", len(payments), err)
	}
	kinds := map[paymentevent.Kind]LedgerKind{paymentevent.KindSUCCEEDED: LedgerCharged,
		paymentevent.KindDISPUTE_LOST: LedgerDisputeLost}
	for _, e := range events {
		entry := LedgerEntry{e.HappenedAt.UTC(), kinds[e.Kind], money.Amount{Minor: e.AmountMinor, Currency: e.Currency},
			e.PaymentID, e.Provider, e.Transaction}
		if !slices.ContainsFunc(entries, func(x LedgerEntry) bool {
			return x.Kind == entry.Kind && x.Payment == entry.Payment && x.Transaction == entry.Transaction
		}) {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// keepFee records what a provider keeps of a payment, once it says so, with a
// compare-and-set. The first fee stays.
func (s *Service) keepFee(ctx context.Context, p *Payment, fee *money.Amount) error {
	for range maxRaces {
		if fee == nil || p == nil || p.Fee != nil {
			return nil
		}
		written := 0
		err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			written, err = tx.Payment.Update().Where(entpayment.ID(p.ID), entpayment.Version(p.Version)).
				SetFeeMinor(fee.Minor).SetFeeCurrency(fee.Currency).SetUpdatedAt(s.now()).AddVersion(1).Save(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("record fee of payment %s: %w", p.ID, err)
		}
		if written > 0 {
			return nil
		}
		if p, err = s.Payment(ctx, p.ID); err != nil {
			return err
		}
	}
	return order.ErrMoved
}
