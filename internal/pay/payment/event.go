package payment

import (
	"context"
	"time"

	"seckill/ent"
	"seckill/internal/buy/order"
	"seckill/internal/outbox/webhook"
	"seckill/internal/platform/money"
)

func (s *Service) apply(ctx context.Context, tx *ent.Tx, m order.Move) (*order.Order, error) {
	m.Facts = s.facts
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
	return s.outbox.Write(ctx, tx, webhook.PaymentUnmatched, func() []webhook.Event {
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
