package stripe

import (
	"context"
	"strings"

	api "github.com/stripe/stripe-go/v82"

	"seckill/internal/money"
)

// fee returns what Stripe keeps of a payment, in the currency of the account; nil while it
// is unknown. A restricted key may lack the right to read charges: that is no failure of
// the query.
func (p *Provider) fee(ctx context.Context, intent string) *money.Amount {
	i, err := p.client.V1PaymentIntents.Retrieve(ctx, intent, &api.PaymentIntentRetrieveParams{
		Expand: []*string{api.String("latest_charge.balance_transaction")},
	})
	if err != nil || i.LatestCharge == nil || i.LatestCharge.BalanceTransaction == nil || i.LatestCharge.BalanceTransaction.Currency == "" {
		return nil
	}
	kept := i.LatestCharge.BalanceTransaction
	return &money.Amount{Minor: kept.Fee, Currency: strings.ToUpper(string(kept.Currency))}
}
