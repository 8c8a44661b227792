package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v85"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/id"
)

// ScriptURL is where Stripe.js is, in the version that belongs to that of the API.
const ScriptURL = "https://js.stripe.com/dahlia/stripe.js"

// shownBy is the metadata of payment intents that the page of the shop shows. Those of Checkout
// are reported by their sessions.
const (
	shownBy   = "shown_by"
	onElement = "element"
)

// Embedding returns what pages load for the Payment Element; false when buyers pay on pages of
// Checkout.
func (p *Provider) Embedding() (payment.Embedding, bool) {
	return payment.Embedding{Key: p.publishable, Script: p.script}, p.publishable != ""
}

// isIntent reports whether a reference is that of a payment intent, and not of a session.
func isIntent(ref string) bool { return strings.HasPrefix(ref, "pi_") }

// intend creates a payment intent, which the buyer confirms on the page.
func (p *Provider) intend(ctx context.Context, in payment.CreateInput) (*api.PaymentIntent, error) {
	known := metadata(in)
	known[shownBy] = onElement
	i, err := p.client.V1PaymentIntents.Create(ctx, &api.PaymentIntentCreateParams{
		Params: api.Params{IdempotencyKey: api.String(in.Payment.String())}, Amount: api.Int64(in.AmountMinor),
		Currency:           api.String(strings.ToLower(in.Currency)),
		PaymentMethodTypes: []*string{api.String("card")}, Description: api.String(in.Description(maxText)),
		Metadata: known, CaptureMethod: captureMethod(in),
	})
	if err != nil {
		return nil, fmt.Errorf("create payment intent: %w", refusal(err))
	}
	return i, nil
}

func (p *Provider) queryIntent(ctx context.Context, ref string) (payment.State, error) {
	i, err := p.client.V1PaymentIntents.Retrieve(ctx, ref, nil)
	if err != nil {
		return payment.State{}, fmt.Errorf("read payment intent: %w", refusal(err))
	}
	return p.stateOfIntent(i), nil
}

// cancelIntent cancels a payment intent, unless it was paid.
func (p *Provider) cancelIntent(ctx context.Context, ref string) (payment.State, error) {
	i, err := p.client.V1PaymentIntents.Cancel(ctx, ref, nil)
	if refusal, ok := errors.AsType[*api.Error](err); ok && refusal.HTTPStatusCode == http.StatusBadRequest {
		return p.queryIntent(ctx, ref) // paid or cancelled already
	}
	if err != nil {
		return payment.State{}, fmt.Errorf("cancel payment intent: %w", err)
	}
	return p.stateOfIntent(i), nil
}

func (p *Provider) stateOfIntent(i *api.PaymentIntent) payment.State {
	state := payment.State{
		Phase: payment.PhaseOpen, Ref: i.ID, Transaction: i.ID, AmountMinor: i.AmountReceived,
		Currency: strings.ToUpper(string(i.Currency)), At: p.clock.Now(),
	}
	switch i.Status { //nolint:exhaustive // all others can still be paid
	case api.PaymentIntentStatusSucceeded:
		state.Phase = payment.PhasePaid
	case api.PaymentIntentStatusRequiresCapture:
		state.Phase, state.AmountMinor = payment.PhaseAuthorized, i.AmountCapturable
	case api.PaymentIntentStatusCanceled:
		state.Phase = payment.PhaseClosed
	}
	return state
}

// intentEnded decodes an event about an intent that was paid, cancelled, or authorized for an entry. Those of Checkout,
// and of other software of the account, are ignored.
func intentEnded(e api.Event, kind payment.EventKind) (payment.Event, error) {
	var i api.PaymentIntent
	if err := json.Unmarshal(e.Data.Raw, &i); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	ours, err := id.ParseUUID[id.Payment](i.Metadata["payment"])
	held := i.Metadata[ofEntry] != ""
	if err != nil || i.Metadata[shownBy] != onElement && !held || kind == payment.EventAuthorized && !held {
		return payment.Event{}, nil // not of the page, nor of an entry
	}
	if held && kind == payment.EventClosed && i.CancellationReason == api.PaymentIntentCancellationReasonAutomatic {
		kind = payment.EventDeclined // it lapsed, and the shop did not release it
	}
	return payment.Event{
		ID: e.ID, Payment: ours, Kind: kind, Ref: i.ID, Transaction: i.ID, AmountMinor: i.AmountReceived,
		Currency: strings.ToUpper(string(i.Currency)), At: time.Unix(e.Created, 0),
	}, nil
}
