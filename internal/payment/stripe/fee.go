package stripe

import (
	"context"
	"fmt"
	"strings"

	api "github.com/stripe/stripe-go/v82"

	"seckill/internal/money"
)

// fee returns what Stripe keeps of a payment, in the currency of the account; nil while the
// charge has no balance transaction.
func (p *Provider) fee(ctx context.Context, intent string) (*money.Amount, error) {
	i, err := p.client.V1PaymentIntents.Retrieve(ctx, intent, &api.PaymentIntentRetrieveParams{
		Expand: []*string{api.String("latest_charge.balance_transaction")},
	})
	if err != nil {
		return nil, fmt.Errorf("read fee of %s: %w", intent, err)
	}
	if i.LatestCharge == nil || i.LatestCharge.BalanceTransaction == nil || i.LatestCharge.BalanceTransaction.Currency == "" {
		return nil, nil //nolint:nilnil // none yet is an answer
	}
	kept := i.LatestCharge.BalanceTransaction
	return &money.Amount{Minor: kept.Fee, Currency: strings.ToUpper(string(kept.Currency))}, nil
}
