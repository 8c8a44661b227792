package stripe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

func TestADeclinedCardSaysWhy(t *testing.T) {
	t.Parallel()
	p := provider(t, "http://127.0.0.1:1")
	ours := id.Payment(uuid.New())
	const text = `{"id":"pi_1","object":"payment_intent","amount":69900,"currency":"cny","metadata":{"payment":%q},"last_payment_error":{"type":"card_error","code":%q,"decline_code":%q}}`
	for _, c := range []struct {
		code, decline string
		want          payment.Decline
	}{
		{"card_declined", "insufficient_funds", payment.InsufficientFunds},
		{"card_declined", "generic_decline", payment.CardDeclined},
		{"card_declined", "stolen_card", payment.CardDeclined}, // not disclosed
		{"card_declined", "card_velocity_exceeded", payment.LimitExceeded},
		{"card_declined", "currency_not_supported", payment.NotSupported},
		{"expired_card", "expired_card", payment.CardExpired},
		{"incorrect_cvc", "", payment.WrongDetails},
		{"processing_error", "", payment.ProcessingError},
		{"payment_intent_authentication_failure", "", payment.AuthenticationFailed},
		{"a_code_of_tomorrow", "", payment.CardDeclined},
	} {
		body := event(string(api.EventTypePaymentIntentPaymentFailed), fmt.Sprintf(text, ours, c.code, c.decline))
		e, err := p.Callback(sign(body, secret, time.Now()), []byte(body))
		if err != nil || e.Kind != payment.EventAttemptDeclined || e.Payment != ours || e.Decline != c.want || e.ID != "evt_1" {
			t.Errorf("%s %s: %+v, %v, want %s", c.code, c.decline, e, err, c.want)
		}
	}
}

func TestTheFeeIsReadOncePaidAndMayBeUnknown(t *testing.T) {
	t.Parallel()
	session := fmt.Sprintf(paid, uuid.New())
	charge := `{"id":"pi_1","object":"payment_intent","latest_charge":{"id":"ch_1","object":"charge","balance_transaction":{"id":"txn_1","object":"balance_transaction","fee":2058,"currency":"hkd"}}}`
	for name, c := range map[string]struct {
		answers     map[string]string
		transaction string
		want        *money.Amount
	}{
		"known":        {map[string]string{"GET /v1/checkout/sessions/cs_1": session, "GET /v1/payment_intents/pi_1": charge}, "pi_1", &money.Amount{Minor: 2058, Currency: "HKD"}},
		"not recorded": {map[string]string{"GET /v1/checkout/sessions/cs_1": session, "GET /v1/payment_intents/pi_1": charge}, "", nil},
		"not allowed":  {map[string]string{"GET /v1/checkout/sessions/cs_1": session, "GET /v1/payment_intents/pi_1": `{"error":{"type":"invalid_request_error"}}`}, "pi_1", nil},
	} {
		state, err := provider(t, answers(t, c.answers)).Query(t.Context(), known("cs_1", c.transaction))
		if err != nil || state.Phase != payment.PhasePaid || (state.Fee == nil) != (c.want == nil) || c.want != nil && *state.Fee != *c.want {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
		if (state.FeeError != nil) != (name == "not allowed") {
			t.Errorf("%s: the fee could not be read: %v", name, state.FeeError)
		}
	}
}
