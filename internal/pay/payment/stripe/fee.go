package stripe

import (
	"context"
	"fmt"
	"strings"

	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/platform/money"
)

// fee returns what Stripe keeps of a payment, in the currency of the account; nil while the
// charge has no balance transaction. It also returns how much of the charge was refunded.
func (p *Provider) fee(ctx context.Context, intent string) (fee *money.Amount, refunded int64, err error) {
	i, err := p.client.V1PaymentIntents.Retrieve(ctx, intent, &api.PaymentIntentRetrieveParams{
		Expand: []*string{api.String("latest_charge.balance_transaction")},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read fee of %s: %w", intent, err)
	}
	if i.LatestCharge == nil {
		return nil, 0, nil
	}
	kept := i.LatestCharge.BalanceTransaction
	if kept == nil || kept.Currency == "" {
		return nil, i.LatestCharge.AmountRefunded, nil
	}
	return &money.Amount{Minor: kept.Fee, Currency: strings.ToUpper(string(kept.Currency))}, i.LatestCharge.AmountRefunded,
		nil
}

// Payer returns the fingerprint of the card of a payment, which is the same for all payments with
// its number at the account; "" for a means without one.
func (p *Provider) Payer(ctx context.Context, intent string) (string, error) {
	if isSetup(intent) {
		i, err := p.client.V1SetupIntents.Retrieve(ctx, intent,
			&api.SetupIntentRetrieveParams{Expand: []*string{api.String("payment_method")}})
		if err != nil {
			return "", fmt.Errorf("read card of %s: %w", intent, err)
		}
		if i.PaymentMethod == nil || i.PaymentMethod.Card == nil {
			return "", nil
		}
		return i.PaymentMethod.Card.Fingerprint, nil
	}
	i, err := p.client.V1PaymentIntents.Retrieve(ctx, intent,
		&api.PaymentIntentRetrieveParams{Expand: []*string{api.String("latest_charge")}})
	if err != nil {
		return "", fmt.Errorf("read card of %s: %w", intent, err)
	}
	if i.LatestCharge == nil || i.LatestCharge.PaymentMethodDetails == nil ||
		i.LatestCharge.PaymentMethodDetails.Card == nil {
		return "", nil
	}
	return i.LatestCharge.PaymentMethodDetails.Card.Fingerprint, nil
}
