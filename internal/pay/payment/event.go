package payment

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
)

func (s *Service) apply(ctx context.Context, tx *ent.Tx, m order.Move) (*order.Order, error) {
	m.Facts = s.cfg.Facts
	return order.Apply(ctx, tx, m)
}

// unmatchedData is held money as other systems receive it. Fields are only ever added.
type unmatchedData struct {
	HeldPaymentID string `json:"heldPaymentId"`
	PaymentID     string `json:"paymentId"` // as the provider names it; may be unknown
	Provider      string `json:"provider"`
	Transaction   string `json:"transaction"`
	Amount        struct {
		Amount   string `json:"amount"`
		Currency string `json:"currencyCode"`
	} `json:"amount"`
	Reason string `json:"reason"`
}

// writeUnmatched writes the event of money that waits for an operator, in the transaction
// that holds it.
func (s *Service) writeUnmatched(ctx context.Context, tx *ent.Tx, e *ent.PaymentEvent, why outcome,
	now time.Time) error {
	return s.cfg.Outbox.Write(ctx, tx, webhook.PaymentUnmatched, func() []webhook.Event {
		held := e.ID.Public()
		data := unmatchedData{
			HeldPaymentID: held, PaymentID: e.PaymentID.Public(), Provider: e.Provider,
			Transaction: e.Transaction, Reason: outcomeLabels[why],
		}
		data.Amount.Amount = money.Amount{Minor: e.AmountMinor, Currency: e.Currency}.Decimal()
		data.Amount.Currency = e.Currency
		return []webhook.Event{{Kind: webhook.PaymentUnmatched, Subject: held, At: now, Data: data}}
	})
}

// Receipts writes what buyers receive about their money, in the caller's transaction.
type Receipts interface {
	// Paid is called once for the money that paid an order. method names how, in each language.
	Paid(ctx context.Context, tx *ent.Tx, o *order.Order, method func(locale.Language) string) error
	// Refunded is called once for each refund whose money is back with the buyer, with the
	// units that the money paid.
	Refunded(ctx context.Context, tx *ent.Tx, o *order.Order, amount money.Amount, units int) error
}

func (s *Service) writePaid(ctx context.Context, tx *ent.Tx, o *order.Order, provider string) error {
	if s.cfg.Receipts == nil {
		return nil
	}
	if err := s.cfg.Receipts.Paid(ctx, tx, o, s.Option(provider).Label.In); err != nil {
		return fmt.Errorf("write receipt of order %s: %w", o.ID, err)
	}
	return nil
}

func (s *Service) writeRefunded(ctx context.Context, tx *ent.Tx, o *order.Order, r *Refund) error {
	if s.cfg.Receipts == nil {
		return nil
	}
	units := cmp.Or(r.units(o), o.Quantity)
	if err := s.cfg.Receipts.Refunded(ctx, tx, o, money.Amount{Minor: r.AmountMinor, Currency: r.Currency},
		units); err != nil {
		return fmt.Errorf("write receipt of refund %s: %w", r.ID, err)
	}
	return nil
}
