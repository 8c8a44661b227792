package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// declines maps Stripe's codes of declines and of errors of cards to ours. Reasons that
// would help a thief, such as that a card is stolen, are CARD_DECLINED to the buyer, as
// Stripe asks for.
var declines = map[string]payment.Decline{
	"insufficient_funds": payment.InsufficientFunds, "withdrawal_count_limit_exceeded": payment.LimitExceeded,
	"card_velocity_exceeded": payment.LimitExceeded,
	"expired_card":           payment.CardExpired, "invalid_expiry_month": payment.WrongDetails,
	"invalid_expiry_year": payment.WrongDetails,
	"incorrect_number":    payment.WrongDetails, "invalid_number": payment.WrongDetails,
	"incorrect_cvc": payment.WrongDetails, "invalid_cvc": payment.WrongDetails,
	"incorrect_zip": payment.WrongDetails, "incorrect_pin": payment.WrongDetails, "invalid_pin": payment.WrongDetails,
	"invalid_account":                       payment.WrongDetails,
	"authentication_required":               payment.AuthenticationFailed,
	"payment_intent_authentication_failure": payment.AuthenticationFailed,
	"card_not_supported":                    payment.NotSupported, "currency_not_supported": payment.NotSupported,
	"transaction_not_allowed": payment.NotSupported,
	"processing_error":        payment.ProcessingError, "issuer_not_available": payment.ProcessingError,
	"reenter_transaction": payment.ProcessingError,
	"try_again_later":     payment.ProcessingError,
}

// attemptDeclined decodes an event about a declined card. The page stays open, and the
// buyer may try another card there. Intents that other software of the account made are
// ignored.
func attemptDeclined(e api.Event) (payment.Event, error) {
	var i api.PaymentIntent
	if err := json.Unmarshal(e.Data.Raw, &i); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	ours, err := id.ParseUUID[id.Payment](i.Metadata["payment"])
	if err != nil {
		return payment.Event{}, nil // not ours
	}
	why := payment.CardDeclined
	if last := i.LastPaymentError; last != nil {
		why = cmp.Or(declines[string(last.DeclineCode)], declines[string(last.Code)], payment.CardDeclined)
	}
	return payment.Event{
		ID: e.ID, Payment: ours, Kind: payment.EventAttemptDeclined, Decline: why, AmountMinor: i.Amount,
		Currency: strings.ToUpper(string(i.Currency)), At: time.Unix(e.Created, 0),
	}, nil
}

// dispute decodes an event about a dispute. It names its payment by the payment intent.
// Steps between the opening and the decision are ignored.
func dispute(e *api.Event) (payment.Event, error) {
	var d api.Dispute
	if e.Data == nil {
		return payment.Event{}, errors.New("event without data")
	}
	if err := json.Unmarshal(e.Data.Raw, &d); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	kind := payment.EventDisputed
	switch {
	case e.Type == api.EventTypeChargeDisputeClosed && d.Status == api.DisputeStatusLost:
		kind = payment.EventDisputeLost
	case e.Type == api.EventTypeChargeDisputeClosed:
		kind = payment.EventDisputeWon
	case e.Type != api.EventTypeChargeDisputeCreated:
		return payment.Event{}, nil
	}
	if d.PaymentIntent == nil {
		return payment.Event{}, nil // of a charge that Checkout did not make
	}
	return payment.Event{
		ID: e.ID, Kind: kind, Transaction: d.PaymentIntent.ID, AmountMinor: d.Amount,
		Currency: strings.ToUpper(string(d.Currency)), At: time.Unix(e.Created, 0),
	}, nil
}

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
