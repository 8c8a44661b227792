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
)

// Refund refunds money of a payment. A charge that has been refunded in full, by this call
// or in Stripe's dashboard, counts as refunded.
func (p *Provider) Refund(ctx context.Context, in payment.RefundInput) error {
	intent := cmp.Or(in.Transaction, in.Paid.Transaction)
	if intent == "" {
		return fmt.Errorf("refund %s: the payment has no payment intent", in.Refund)
	}
	if in.AmountMinor < in.Paid.AmountMinor {
		if made, err := p.made(ctx, intent, in.Refund); err != nil || made != nil {
			return cmp.Or(err, outcome(made))
		}
	}
	r, err := p.client.V1Refunds.Create(ctx, &api.RefundCreateParams{
		Params: api.Params{IdempotencyKey: api.String(in.Refund.String())}, PaymentIntent: api.String(intent),
		Amount:   api.Int64(in.AmountMinor),
		Metadata: map[string]string{"refund": in.Refund.String(), "payment": in.Paid.Payment.String()},
	})
	if refusal, ok := errors.AsType[*api.Error](err); ok && refusal.Code == api.ErrorCodeChargeAlreadyRefunded {
		return nil
	}
	if err != nil {
		return fmt.Errorf("refund %s: %w", in.Refund, err)
	}
	return outcome(r)
}

// outcome returns the error of a refund that Stripe has given up.
func outcome(r *api.Refund) error {
	if r != nil && (r.Status == api.RefundStatusFailed || r.Status == api.RefundStatusCanceled) {
		return payment.RefundFailed{Why: cmp.Or(string(r.FailureReason), string(r.Status))}
	}
	return nil
}

// made returns the refund of a payment intent that was made with a key, or nil. Stripe
// forgets idempotency keys after a day, and would repeat the refund of a part.
func (p *Provider) made(ctx context.Context, intent string, key id.Refund) (*api.Refund, error) {
	params := &api.RefundListParams{PaymentIntent: api.String(intent)}
	params.Limit = api.Int64(100) // of a page
	for r, err := range p.client.V1Refunds.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read refunds of %s: %w", intent, err)
		}
		if r.Metadata["refund"] == key.String() {
			return r, nil
		}
	}
	return nil, nil
}

// refunded decodes an event about how much of a charge was refunded so far, by the shop or in
// Stripe's dashboard. It names its payment by the payment intent.
func refunded(e api.Event) (payment.Event, error) {
	var c api.Charge
	if err := json.Unmarshal(e.Data.Raw, &c); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	if c.PaymentIntent == nil || c.AmountRefunded <= 0 {
		return payment.Event{}, nil // of a charge that Checkout did not make
	}
	return payment.Event{
		ID: e.ID, Kind: payment.EventRefunded, Transaction: c.PaymentIntent.ID, AmountMinor: c.AmountRefunded,
		Currency: strings.ToUpper(string(c.Currency)), At: time.Unix(e.Created, 0),
	}, nil
}
