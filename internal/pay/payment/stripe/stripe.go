// Package stripe takes payments at Stripe: the buyer pays on a page of Stripe Checkout, which
// leads back to the order, or with a publishable key on the page of the order, by Stripe's
// Payment Element. The shop sees no card data. Money of entries of draws is held by an intent that
// is captured later, or the card is saved by a setup intent (hold.go). A payment keeps its way if the setting changes:
// its reference is that of a session or of a payment intent.
//
// The ids of our payments and refunds are the idempotency keys. The page takes cards and
// their wallets only, because other methods may confirm days after the payment window. The package
// does not own payments, whose states and money belong to package payment.
package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// Name is the provider's name.
const Name = "stripe"

const (
	// outlives is how long after the deadline of a payment its page expires by itself:
	// Stripe requires 30 minutes from its creation. The shop closes the page at the
	// deadline. The minute more allows for clocks that differ.
	outlives = 31 * time.Minute
	// longest is how long after its beginning the page of a payment expires at the latest: Stripe
	// allows 24 hours from the creation. The minutes less allow for clocks that differ.
	longest = 24*time.Hour - 2*time.Minute
	// callTimeout bounds one call, below the timeout of package payment.
	callTimeout = 4 * time.Second
)

// least is the least amount by currency, in minor units, after Stripe's table of minimum
// charge amounts. Currencies whose minor unit Stripe counts in another way than ISO 4217
// are left out.
var least = map[string]int64{
	"AED": 200, "AUD": 50, "BGN": 100, "BRL": 50, "CAD": 50, "CHF": 50, "CNY": 400, "CZK": 1500, "DKK": 250, "EUR": 50,
	"GBP": 30, "HKD": 400, "HUF": 17500, "INR": 50, "JPY": 50, "MXN": 1000, "MYR": 200, "NOK": 300, "NZD": 50, "PLN": 200,
	"RON": 200,
	"SEK": 300, "SGD": 50, "THB": 1000, "USD": 50,
}

// digits bounds amounts: Stripe takes at most eight digits.
const digits = 99_999_999

var most = func() map[string]int64 {
	bounds := map[string]int64{}
	for currency := range least {
		bounds[currency] = digits
	}
	return bounds
}()

// Config holds the dependencies of a Provider.
type Config struct {
	Key           string // secret or restricted key of the account
	WebhookSecret string // of the endpoint that sends the events
	APIURL        string // "" = Stripe's
	// PublishableKey is the account's key for browsers: buyers pay on the page of the order, by
	// the Payment Element. "" = they pay on pages of Checkout.
	PublishableKey string
	ScriptURL      string // of Stripe.js; "" = Stripe's
	Client         *http.Client
	Clock          clock.Clock
}

// Provider implements payment.Provider. It is safe for concurrent use.
type Provider struct {
	client *api.Client
	secret string
	clock  clock.Clock

	publishable, script string // of the Payment Element
}

// New returns the provider. It calls nothing.
func New(cfg Config) *Provider {
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: callTimeout}
	}
	cfg.Clock = clock.OrSystem(cfg.Clock)
	backend := api.GetBackendWithConfig(api.APIBackend, &api.BackendConfig{
		URL: api.String(cmp.Or(cfg.APIURL, api.APIURL)), HTTPClient: cfg.Client, EnableTelemetry: api.Bool(false),
		LeveledLogger:     &api.LeveledLogger{Level: api.LevelNull}, // errors are returned
		MaxNetworkRetries: api.Int64(0),                             // package payment repeats
	})
	client := api.NewClient(cfg.Key, api.WithBackends(&api.Backends{API: backend, Connect: backend, Uploads: backend,
		MeterEvents: backend}))
	return &Provider{
		client: client, secret: cfg.WebhookSecret, clock: cfg.Clock,
		publishable: cfg.PublishableKey, script: cmp.Or(cfg.ScriptURL, ScriptURL),
	}
}

// Name returns "stripe".
func (*Provider) Name() string { return Name }

// Terms returns what buyers see.
func (p *Provider) Terms() payment.Terms {
	terms := payment.Terms{Label: payment.Label{English: "Card", Chinese: "银行卡"}, Kind: payment.Redirect, Icon: "card",
		Least: least, Most: most}
	if p.publishable != "" {
		terms.Kind = payment.Embedded
	}
	return terms
}

// Create opens a page of Checkout, or creates what the Payment Element confirms.
func (p *Provider) Create(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	if in.Hold == payment.HoldCard {
		return p.save(ctx, in)
	}
	if p.publishable != "" {
		i, err := p.intend(ctx, in)
		if err != nil {
			return payment.Created{}, err
		}
		return payment.Created{Ref: i.ID, ClientSecret: i.ClientSecret}, nil
	}
	s, err := p.open(ctx, in)
	if err != nil {
		return payment.Created{}, err
	}
	return payment.Created{Ref: s.ID, RedirectURL: s.URL}, nil
}

// expiry returns when the page of a payment expires by itself. It is the same in repeated calls,
// as idempotency keys require.
func expiry(in payment.CreateInput) time.Time {
	at := in.ExpiresAt.Add(outlives)
	if last := in.CreatedAt.Add(longest); at.After(last) {
		return last
	}
	return at
}

// refusal marks refusals of a request, so that they do not count as faults of Stripe.
func refusal(err error) error {
	said, ok := errors.AsType[*api.Error](err)
	if !ok || said.Type == api.ErrorTypeIdempotency {
		return err
	}
	return payment.Refusal(said.HTTPStatusCode, err)
}

// maxText bounds the texts for the buyer, in bytes.
const maxText = 250

// lines returns the order as Checkout shows it. Payments of former releases are one line with the
// number, as they were sent: Stripe refuses other parameters under their idempotency key.
func lines(in payment.CreateInput) []*api.CheckoutSessionCreateLineItemParams {
	price := &api.CheckoutSessionCreateLineItemPriceDataParams{
		Currency: api.String(strings.ToLower(in.Currency)), UnitAmount: api.Int64(in.AmountMinor),
		ProductData: &api.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: api.String(in.OrderText())},
	}
	units := int64(1)
	if in.Product != "" {
		units = int64(in.Quantity)
		price.UnitAmount = api.Int64(in.AmountMinor / units)
		price.ProductData.Name = api.String(fault.Shorten(in.Product, maxText))
		price.ProductData.Description = api.String(in.OrderText())
	}
	return []*api.CheckoutSessionCreateLineItemParams{{Quantity: api.Int64(units), PriceData: price}}
}

func (p *Provider) open(ctx context.Context, in payment.CreateInput) (*api.CheckoutSession, error) {
	known := metadata(in)
	var language *string // nil = that of the browser
	if in.Language != "" {
		language = api.String(string(in.Language))
	}
	s, err := p.client.V1CheckoutSessions.Create(ctx, &api.CheckoutSessionCreateParams{
		Params: api.Params{IdempotencyKey: api.String(in.Payment.String())}, Mode: api.String("payment"),
		PaymentMethodTypes: []*string{api.String("card")}, ClientReferenceID: api.String(in.Payment.String()),
		SuccessURL: api.String(in.ReturnURL), CancelURL: api.String(in.ReturnURL), ExpiresAt: api.Int64(expiry(in).Unix()),
		Metadata: known, PaymentIntentData: &api.CheckoutSessionCreatePaymentIntentDataParams{Metadata: known,
			Description: api.String(in.Description(maxText)), CaptureMethod: captureMethod(in)},
		Locale: language, LineItems: lines(in),
	})
	if err != nil {
		return nil, fmt.Errorf("create checkout session: %w", refusal(err))
	}
	return s, nil
}

// Query returns the state of a page. Without its reference nothing can be found.
func (p *Provider) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	if known.Ref == "" {
		return payment.State{Phase: payment.PhaseUnknown}, nil
	}
	if isIntent(known.Ref) {
		state, err := p.queryIntent(ctx, known.Ref)
		return p.withFee(ctx, known, state), err
	}
	if isSetup(known.Ref) {
		return p.querySetup(ctx, known.Ref, known.Payment)
	}
	s, err := p.client.V1CheckoutSessions.Retrieve(ctx, known.Ref, nil)
	if err != nil {
		return payment.State{}, fmt.Errorf("read checkout session: %w", refusal(err))
	}
	if held := heldBy(s); known.Hold.On() && held != "" {
		known.Ref = held
		return p.Query(ctx, known)
	}
	return p.withFee(ctx, known, p.state(s)), nil
}

// withFee adds the fee, and what was refunded, to the state of a payment that the shop knows as
// paid.
func (p *Provider) withFee(ctx context.Context, known payment.Known, s payment.State) payment.State {
	if s.Phase == payment.PhasePaid && known.Transaction != "" {
		s.Fee, s.Refunded, s.FeeError = p.fee(ctx, s.Transaction)
	}
	return s
}

// Close expires a page. Where the reply to Create was lost, the call is repeated with its
// idempotency key: it returns the page that exists, or opens one that is closed at once.
func (p *Provider) Close(ctx context.Context, known payment.Known) (payment.State, error) {
	switch {
	case isIntent(known.Ref):
		return p.cancelIntent(ctx, known.Ref)
	case isSetup(known.Ref):
		return p.forget(ctx, known)
	case known.Ref == "" && known.Hold == payment.HoldCard:
		made, err := p.save(ctx, known.CreateInput)
		if _, ok := errors.AsType[payment.RequestRefused](err); ok {
			return payment.State{Phase: payment.PhaseClosed, At: p.clock.Now()}, nil // never taken
		}
		if err != nil {
			return payment.State{}, err
		}
		known.Ref = made.Ref
		return p.Close(ctx, known)
	case known.Ref == "" && p.publishable != "":
		i, err := p.intend(ctx, known.CreateInput)
		if _, ok := errors.AsType[payment.RequestRefused](err); ok {
			return payment.State{Phase: payment.PhaseClosed, At: p.clock.Now()}, nil // never taken
		}
		if err != nil {
			return payment.State{}, err
		}
		return p.cancelIntent(ctx, i.ID)
	case known.Ref == "":
		s, err := p.open(ctx, known.CreateInput)
		if _, ok := errors.AsType[payment.RequestRefused](err); ok {
			// too late to open one, or never taken: there is none
			return payment.State{Phase: payment.PhaseClosed, At: p.clock.Now()}, nil
		}
		if err != nil {
			return payment.State{}, err
		}
		known.Ref = s.ID
	}
	s, err := p.client.V1CheckoutSessions.Expire(ctx, known.Ref, nil)
	if refusal, ok := errors.AsType[*api.Error](err); ok && refusal.HTTPStatusCode == http.StatusBadRequest {
		state, err := p.Query(ctx, known) // paid, authorized or expired already
		if err == nil && state.Phase == payment.PhaseAuthorized {
			known.Ref = state.Ref
			return p.Close(ctx, known)
		}
		return state, err
	}
	if err != nil {
		return payment.State{}, fmt.Errorf("expire checkout session: %w", err)
	}
	return p.state(s), nil
}

func (p *Provider) state(s *api.CheckoutSession) payment.State {
	state := payment.State{
		Phase: payment.PhaseOpen, Ref: s.ID, AmountMinor: s.AmountTotal, Currency: strings.ToUpper(string(s.Currency)),
		At: p.clock.Now(),
	}
	if s.PaymentIntent != nil {
		state.Transaction = s.PaymentIntent.ID
	}
	switch {
	case s.Status == api.CheckoutSessionStatusComplete && s.PaymentStatus == api.CheckoutSessionPaymentStatusPaid:
		state.Phase = payment.PhasePaid
	case s.Status == api.CheckoutSessionStatusExpired:
		state.Phase = payment.PhaseClosed
	}
	return state
}

// kinds maps the types of events to ours. Sessions that are complete but not paid, and
// refunds that have not failed, are not reported.
var kinds = map[api.EventType]payment.EventKind{
	api.EventTypeCheckoutSessionCompleted:             payment.EventSucceeded,
	api.EventTypeCheckoutSessionAsyncPaymentSucceeded: payment.EventSucceeded,
	api.EventTypeCheckoutSessionAsyncPaymentFailed:    payment.EventDeclined,
	api.EventTypeCheckoutSessionExpired:               payment.EventClosed,
	api.EventTypePaymentIntentPaymentFailed:           payment.EventAttemptDeclined,
	api.EventTypePaymentIntentSucceeded:               payment.EventSucceeded,
	api.EventTypePaymentIntentCanceled:                payment.EventClosed,
	api.EventTypePaymentIntentAmountCapturableUpdated: payment.EventAuthorized,
	api.EventTypeSetupIntentSucceeded:                 payment.EventAuthorized,
	api.EventTypeChargeRefunded:                       payment.EventRefunded,
	api.EventTypeRefundFailed:                         payment.EventRefundFailed,
	api.EventTypeRefundUpdated:                        payment.EventRefundFailed,
	api.EventTypeChargeRefundUpdated:                  payment.EventRefundFailed,
}

// Callback verifies and decodes an event. The fields that it reads are the same in all
// versions of the API, so that the version of the endpoint does not matter. Sessions that
// other software of the account opened are ignored.
func (p *Provider) Callback(header http.Header, body []byte) (payment.Event, error) {
	e, err := webhook.ConstructEventWithOptions(body, header.Get("Stripe-Signature"), p.secret,
		webhook.ConstructEventOptions{
			Tolerance: webhook.DefaultTolerance, IgnoreAPIVersionMismatch: true,
		})
	if err != nil {
		if errors.Is(err, webhook.ErrInvalidHeader) || errors.Is(err, webhook.ErrNoValidSignature) ||
			errors.Is(err, webhook.ErrNotSigned) || errors.Is(err, webhook.ErrTooOld) {
			err = fmt.Errorf("%w: %w", payment.ErrForged, err)
		}
		return payment.Event{}, err
	}
	if strings.HasPrefix(string(e.Type), "charge.dispute.") {
		return dispute(&e)
	}
	kind, ok := kinds[e.Type]
	if !ok {
		return payment.Event{}, nil
	}
	if e.Data == nil {
		return payment.Event{}, errors.New("event without data")
	}
	if kind == payment.EventRefundFailed {
		return refundFailed(e)
	}
	if kind == payment.EventRefunded {
		return refunded(e)
	}
	if kind == payment.EventAttemptDeclined {
		return attemptDeclined(e)
	}
	if e.Type == api.EventTypeSetupIntentSucceeded {
		return cardSaved(e)
	}
	if strings.HasPrefix(string(e.Type), "payment_intent.") {
		return intentEnded(e, kind)
	}
	var s api.CheckoutSession
	if err := json.Unmarshal(e.Data.Raw, &s); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	ours, err := id.ParseUUID[id.Payment](s.ClientReferenceID)
	state := p.state(&s)
	if err != nil || kind == payment.EventSucceeded && state.Phase != payment.PhasePaid {
		return payment.Event{}, nil // not ours, or not paid yet
	}
	return payment.Event{
		ID: e.ID, Payment: ours, Kind: kind, Ref: s.ID, Transaction: state.Transaction,
		AmountMinor: state.AmountMinor, Currency: state.Currency, At: time.Unix(e.Created, 0),
	}, nil
}

// refundFailed decodes an event about a refund. A refund may fail up to 30 days after
// Stripe took it: the buyer's bank returns the money. Refunds that were made in Stripe's
// dashboard are ignored.
func refundFailed(e api.Event) (payment.Event, error) {
	var r api.Refund
	if err := json.Unmarshal(e.Data.Raw, &r); err != nil {
		return payment.Event{}, fmt.Errorf("event %s: %w", e.ID, err)
	}
	refund, err1 := id.ParseUUID[id.Refund](r.Metadata["refund"])
	paid, err2 := id.ParseUUID[id.Payment](r.Metadata["payment"])
	if err1 != nil || err2 != nil || r.Status != api.RefundStatusFailed && r.Status != api.RefundStatusCanceled {
		return payment.Event{}, nil // not ours, or not failed
	}
	return payment.Event{
		ID: e.ID, Payment: paid, Kind: payment.EventRefundFailed, Refund: refund,
		Reason:      cmp.Or(string(r.FailureReason), string(r.Status)),
		AmountMinor: r.Amount, Currency: strings.ToUpper(string(r.Currency)), At: time.Unix(e.Created, 0),
	}, nil
}
