package stripe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
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
