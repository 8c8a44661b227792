package stripe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
)

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
