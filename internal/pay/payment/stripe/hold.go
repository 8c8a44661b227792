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

// holds is how long Stripe keeps money for the shop, at the least: 7 days with most cards. The hour
// less allows for the time that a capture takes.
const holds = 7*24*time.Hour - time.Hour

// ofEntry is the metadata of what holds money for an entry of a draw. Its intents are
// reported themselves, also those of Checkout.
const ofEntry = "entry"

// Holds returns how long money is held at least.
func (*Provider) Holds() time.Duration { return holds }

// isSetup reports whether a reference is that of a setup intent.
func isSetup(ref string) bool { return strings.HasPrefix(ref, "seti_") }

func metadata(in payment.CreateInput) map[string]string {
	if in.Hold.On() {
		return map[string]string{"payment": in.Payment.String(), ofEntry: in.Entry.String()}
	}
	return map[string]string{"payment": in.Payment.String(), "order": in.Order.String()}
}

func captureMethod(in payment.CreateInput) *string {
	if in.Hold == payment.HoldMoney {
		return api.String("manual")
	}
	return nil
}

// heldBy returns the intent by which a completed page of Checkout holds money or a card; "" = none.
func heldBy(s *api.CheckoutSession) string {
	switch {
	case s.Status != api.CheckoutSessionStatusComplete:
		return ""
	case s.SetupIntent != nil:
		return s.SetupIntent.ID
	case s.PaymentIntent != nil:
		return s.PaymentIntent.ID
	}
	return ""
}

// save creates what saves a card, for a customer of its own: its payments are found by the
// customer after Stripe has forgotten the idempotency key.
func (p *Provider) save(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	known := metadata(in)
	customer, err := p.client.V1Customers.Create(ctx, &api.CustomerCreateParams{
		Params: api.Params{IdempotencyKey: api.String(in.Payment.String() + "-customer")}, Metadata: known,
	})
	if err != nil {
		return payment.Created{}, fmt.Errorf("create customer: %w", refusal(err))
	}
	once := api.Params{IdempotencyKey: api.String(in.Payment.String())}
	if p.publishable != "" {
		i, err := p.client.V1SetupIntents.Create(ctx, &api.SetupIntentCreateParams{
			Params: once, Customer: api.String(customer.ID), Usage: api.String("off_session"), Metadata: known,
			PaymentMethodTypes: []*string{api.String("card")}, Description: api.String(in.Description(maxText)),
		})
		if err != nil {
			return payment.Created{}, fmt.Errorf("create setup intent: %w", refusal(err))
		}
		return payment.Created{Ref: i.ID, ClientSecret: i.ClientSecret}, nil
	}
	params := &api.CheckoutSessionCreateParams{
		Params: once, Mode: api.String("setup"), Customer: api.String(customer.ID), Metadata: known,
		PaymentMethodTypes: []*string{api.String("card")}, ClientReferenceID: api.String(in.Payment.String()),
		SuccessURL: api.String(in.ReturnURL), CancelURL: api.String(in.ReturnURL), ExpiresAt: api.Int64(expiry(in).Unix()),
		SetupIntentData: &api.CheckoutSessionCreateSetupIntentDataParams{Metadata: known,
			Description: api.String(in.Description(maxText))},
	}
	if in.Language != "" {
		params.Locale = api.String(string(in.Language))
	}
	s, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return payment.Created{}, fmt.Errorf("create checkout session: %w", refusal(err))
	}
	return payment.Created{Ref: s.ID, RedirectURL: s.URL}, nil
}

// querySetup returns the state of a setup intent, and of the payment by its card if there is one.
func (p *Provider) querySetup(ctx context.Context, ref string, of id.Payment) (payment.State, error) {
	i, err := p.client.V1SetupIntents.Retrieve(ctx, ref, nil)
	if err != nil {
		return payment.State{}, fmt.Errorf("read setup intent: %w", refusal(err))
	}
	state := payment.State{Phase: payment.PhaseOpen, Ref: i.ID, Transaction: i.ID, At: p.clock.Now()}
	switch i.Status { //nolint:exhaustive // all others can still be confirmed
	case api.SetupIntentStatusCanceled:
		state.Phase = payment.PhaseClosed
	case api.SetupIntentStatusSucceeded:
		state.Phase = payment.PhaseAuthorized
		charge, err := p.chargeOf(ctx, i, of)
		if err != nil {
			return payment.State{}, err
		}
		if charge != nil && charge.Status == api.PaymentIntentStatusSucceeded {
			return p.stateOfIntent(charge), nil
		}
	}
	return state, nil
}

// chargeOf returns the intent that charged the card of a setup intent, or tried to; nil = none.
func (p *Provider) chargeOf(ctx context.Context, i *api.SetupIntent, of id.Payment) (*api.PaymentIntent, error) {
	if i.Customer == nil {
		return nil, nil
	}
	params := &api.PaymentIntentListParams{Customer: api.String(i.Customer.ID)}
	for made, err := range p.client.V1PaymentIntents.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read payments of %s: %w", i.ID, err)
		}
		if made.Metadata["payment"] == of.String() {
			return made, nil
		}
	}
	return nil, nil
}

// forget cancels a setup intent, or detaches its card. The card is detached before its payments
// are read: none can follow.
func (p *Provider) forget(ctx context.Context, known payment.Known) (payment.State, error) {
	i, err := p.client.V1SetupIntents.Cancel(ctx, known.Ref, nil)
	if err == nil {
		return payment.State{Phase: payment.PhaseClosed, Ref: i.ID, At: p.clock.Now()}, nil
	}
	if _, ok := errors.AsType[payment.RequestRefused](refusal(err)); !ok {
		return payment.State{}, fmt.Errorf("cancel setup intent: %w", err)
	}
	if i, err = p.client.V1SetupIntents.Retrieve(ctx, known.Ref, nil); err != nil {
		return payment.State{}, fmt.Errorf("read setup intent: %w", err)
	}
	if i.Status == api.SetupIntentStatusSucceeded && i.PaymentMethod != nil {
		_, err := p.client.V1PaymentMethods.Detach(ctx, i.PaymentMethod.ID, nil)
		if _, ok := errors.AsType[payment.RequestRefused](refusal(err)); err != nil && !ok { // refused: detached already
			return payment.State{}, fmt.Errorf("detach card of %s: %w", known.Ref, err)
		}
	}
	state, err := p.querySetup(ctx, known.Ref, known.Payment)
	if err == nil && state.Phase == payment.PhaseAuthorized {
		state.Phase = payment.PhaseClosed
	}
	return state, err
}

// Capture takes the money that an intent holds, or charges a saved card.
func (p *Provider) Capture(ctx context.Context, known payment.Known) (payment.State, error) {
	if isSetup(known.Ref) {
		return p.charge(ctx, known)
	}
	i, err := p.client.V1PaymentIntents.Capture(ctx, known.Ref, nil)
	if err == nil {
		return p.stateOfIntent(i), nil
	}
	why := declineOf(err)
	if _, ok := errors.AsType[payment.RequestRefused](refusal(err)); !ok {
		return payment.State{}, fmt.Errorf("capture %s: %w", known.Ref, err)
	}
	state, err := p.cancelIntent(ctx, known.Ref) // captured or cancelled already, or it cannot be captured
	if err == nil && state.Phase == payment.PhaseClosed {
		state.Phase, state.Decline = payment.PhaseDeclined, why
	}
	return state, err
}

// charge charges the saved card, unless that was tried before.
func (p *Provider) charge(ctx context.Context, known payment.Known) (payment.State, error) {
	setup, err := p.client.V1SetupIntents.Retrieve(ctx, known.Ref, nil)
	if err != nil {
		return payment.State{}, fmt.Errorf("read setup intent: %w", err)
	}
	if setup.Customer == nil || setup.PaymentMethod == nil || setup.Status != api.SetupIntentStatusSucceeded {
		return payment.State{}, fmt.Errorf("setup intent %s is %s", setup.ID, setup.Status)
	}
	made, err := p.chargeOf(ctx, setup, known.Payment)
	if err != nil {
		return payment.State{}, err
	}
	why := payment.OtherDecline
	if made == nil {
		made, err = p.client.V1PaymentIntents.Create(ctx, &api.PaymentIntentCreateParams{
			Params: api.Params{IdempotencyKey: api.String(known.Payment.String() + "-charge")},
			Amount: api.Int64(known.AmountMinor), Currency: api.String(strings.ToLower(known.Currency)),
			Customer:      api.String(setup.Customer.ID),
			PaymentMethod: api.String(setup.PaymentMethod.ID), PaymentMethodTypes: []*string{api.String("card")},
			OffSession: api.Bool(true), Confirm: api.Bool(true), Description: api.String(known.Description(maxText)),
			Metadata: metadata(known.CreateInput),
		})
		if _, ok := errors.AsType[payment.RequestRefused](refusal(err)); err != nil && !ok {
			return payment.State{}, fmt.Errorf("charge the card of %s: %w", setup.ID, err)
		}
		if err != nil {
			why, made = declineOf(err), nil
		}
	} else if last := made.LastPaymentError; last != nil {
		why = declineOf(last)
	}
	if made != nil {
		switch made.Status { //nolint:exhaustive // all others wait for the buyer, who is away
		case api.PaymentIntentStatusSucceeded:
			return p.stateOfIntent(made), nil
		case api.PaymentIntentStatusProcessing:
			return payment.State{}, fmt.Errorf("payment intent %s is being processed", made.ID)
		}
	}
	state, err := p.forget(ctx, known)
	if err == nil && state.Phase == payment.PhaseClosed {
		state.Phase, state.Decline = payment.PhaseDeclined, why
	}
	return state, err
}

// declineOf returns why a card was declined.
func declineOf(err error) payment.Decline {
	said, ok := errors.AsType[*api.Error](err)
	if !ok {
		return payment.OtherDecline
	}
	return cmp.Or(declines[string(said.DeclineCode)], declines[string(said.Code)], payment.CardDeclined)
}

// cardSaved decodes an event about a setup intent. Those of other software are ignored.
func cardSaved(e api.Event) (payment.Event, error) {
	var i api.SetupIntent
	if err := json.Unmarshal(e.Data.Raw, &i); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	ours, err := id.ParseUUID[id.Payment](i.Metadata["payment"])
	if err != nil || i.Metadata[ofEntry] == "" {
		return payment.Event{}, nil // not ours
	}
	return payment.Event{
		ID: e.ID, Payment: ours, Kind: payment.EventAuthorized, Ref: i.ID, Transaction: i.ID, At: time.Unix(e.Created, 0),
	}, nil
}
