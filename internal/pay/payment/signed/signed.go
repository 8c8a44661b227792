// Package signed takes payments through any service that answers four signed HTTP
// requests: create, query, close, refund. The service reports by signed webhooks.
// examples/payment-service is such a service; its README describes the protocol.
//
// Requests, replies and webhooks are signed after the Standard Webhooks specification
// (https://www.standardwebhooks.com) with one shared secret. A reply carries the id of its
// request, so that it cannot be replayed, and differs from it. The package does not own payments,
// whose states and money belong to package payment.
package signed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

const (
	// tolerance is the greatest difference between the time of a signature and ours.
	tolerance = 5 * time.Minute
	// callTimeout bounds one call, below the timeout of package payment.
	callTimeout = 4 * time.Second
	// maxReply bounds a reply in bytes; a reply has a few short fields.
	maxReply = 16 << 10
	// maxText bounds the service's numbers of transactions and payments in bytes.
	maxText = 128
	// maxDescription bounds the description for the buyer in bytes.
	maxDescription = 500
)

// Config holds the dependencies of a Provider.
type Config struct {
	Name    string // in the path of the webhooks, and in the database
	Terms   payment.Terms
	URL     string // of the service, without a trailing slash
	Secret  []byte
	ShopURL string // where the shop is reached, without a trailing slash
	Client  *http.Client
	Clock   clock.Clock
}

// Provider implements payment.Provider. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	signer *standardwebhooks.Webhook
}

// New returns the provider. It calls nothing.
func New(cfg Config) (*Provider, error) {
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: callTimeout}
	}
	cfg.Clock = clock.OrSystem(cfg.Clock)
	signer, err := standardwebhooks.NewWebhookRaw(cfg.Secret)
	if err != nil {
		return nil, fmt.Errorf("secret of payment service %s: %w", cfg.Name, err)
	}
	return &Provider{cfg: cfg, signer: signer}, nil
}

// Name returns the configured name.
func (p *Provider) Name() string { return p.cfg.Name }

// Terms returns the configured terms.
func (p *Provider) Terms() payment.Terms { return p.cfg.Terms }

// charge is the body of a request about a payment. Fields are only ever added.
type charge struct {
	Payment     id.Payment `json:"payment"`
	Order       id.Order   `json:"order"`
	Number      string     `json:"orderNumber"` // as the buyer knows it
	Product     string     `json:"product"`     // its name
	Quantity    int        `json:"quantity"`    // units of the product
	Description string     `json:"description"` // product, quantity and number in the buyer's language
	Language    string     `json:"language"`    // of the buyer: en or zh
	AmountMinor int64      `json:"amountMinor"`
	Amount      string     `json:"amount"` // the same with the decimals of the currency, as buyers read it
	Currency    string     `json:"currency"`
	ExpiresAt   time.Time  `json:"expiresAt"`
	ReturnURL   string     `json:"returnUrl"`
	WebhookURL  string     `json:"webhookUrl"`
	Ref         string     `json:"ref,omitempty"`
}

func (p *Provider) charge(known payment.Known) charge {
	return charge{
		Payment: known.Payment, Order: known.Order, Number: known.Number, Product: known.Product,
		Quantity: known.Quantity, Description: known.Description(maxDescription), Language: string(known.Language),
		AmountMinor: known.AmountMinor, Currency: known.Currency,
		Amount:    money.Amount{Minor: known.AmountMinor, Currency: known.Currency}.Decimal(),
		ExpiresAt: known.ExpiresAt.UTC(), ReturnURL: known.ReturnURL,
		WebhookURL: p.cfg.ShopURL + "/webhooks/payments/" + p.cfg.Name, Ref: known.Ref,
	}
}

// Create opens a payment.
func (p *Provider) Create(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	var made struct {
		Ref         string `json:"ref"`
		QRCode      string `json:"qrCode"`
		RedirectURL string `json:"redirectUrl"`
	}
	err := p.call(ctx, "create", p.charge(payment.Known{CreateInput: in}), &made)
	if err == nil && made.QRCode == "" && made.RedirectURL == "" {
		err = errors.New("create: the reply has neither qrCode nor redirectUrl")
	}
	return payment.Created{Ref: made.Ref, QRCode: made.QRCode, RedirectURL: made.RedirectURL}, err
}

// Query returns the state of a payment.
func (p *Provider) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	return p.state(ctx, "query", known)
}

// Close closes a payment, unless it was paid.
func (p *Provider) Close(ctx context.Context, known payment.Known) (payment.State, error) {
	return p.state(ctx, "close", known)
}

func (p *Provider) state(ctx context.Context, path string, known payment.Known) (payment.State, error) {
	var s struct {
		Phase       payment.Phase `json:"phase"`
		Ref         string        `json:"ref"`
		Transaction string        `json:"transaction"`
		AmountMinor int64         `json:"amountMinor"`
		Currency    string        `json:"currency"`
		Payer       string        `json:"payer"`
		Reason      string        `json:"reason"`
		Refunded    int64         `json:"refundedMinor"`
		FeeMinor    *int64        `json:"feeMinor"`
		FeeCurrency string        `json:"feeCurrency"`
		At          time.Time     `json:"at"`
	}
	if err := p.call(ctx, path, p.charge(known), &s); err != nil {
		return payment.State{}, err
	}
	if s.Phase == payment.PhasePaid && (s.Transaction == "" || len(s.Currency) != 3) {
		return payment.State{}, fmt.Errorf("%s: PAID without a transaction or a currency", path)
	}
	if len(s.Transaction) > maxText || len(s.Ref) > maxText {
		return payment.State{}, fmt.Errorf("%s: the transaction or ref has more than %d bytes", path, maxText)
	}
	switch s.Phase {
	case payment.PhaseUnknown, payment.PhaseOpen, payment.PhasePaid, payment.PhaseDeclined, payment.PhaseClosed:
	default:
		return payment.State{}, fmt.Errorf("%s: phase %q", path, s.Phase)
	}
	if s.At.IsZero() {
		s.At = p.cfg.Clock.Now()
	}
	var fee *money.Amount
	if s.FeeMinor != nil && s.Phase == payment.PhasePaid {
		fee = &money.Amount{Minor: *s.FeeMinor, Currency: cmp.Or(s.FeeCurrency, s.Currency)}
	}
	return payment.State{
		Phase: s.Phase, Ref: cmp.Or(s.Ref, known.Ref), Transaction: s.Transaction, AmountMinor: s.AmountMinor,
		Currency: s.Currency,
		Payer:    s.Payer, Decline: payment.Decline(s.Reason), Refunded: s.Refunded, Fee: fee, At: s.At,
	}, nil
}

// Refund refunds money of a payment.
func (p *Provider) Refund(ctx context.Context, in payment.RefundInput) error {
	return p.call(ctx, "refund", struct {
		Refund      id.Refund  `json:"refund"`
		Payment     id.Payment `json:"payment"`
		Ref         string     `json:"ref,omitempty"`
		Transaction string     `json:"transaction"`
		AmountMinor int64      `json:"amountMinor"`
		Currency    string     `json:"currency"`
		Reason      string     `json:"reason,omitempty"`
	}{
		in.Refund, in.Paid.Payment, in.Paid.Ref, cmp.Or(in.Transaction, in.Paid.Transaction), in.AmountMinor, in.Currency,
		in.Reason,
	}, &struct{}{})
}

// call sends a signed request and decodes its signed reply.
func (p *Provider) call(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.cfg.URL+"/"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	message, now := "req_"+id.New[uuid.UUID]().String(), p.cfg.Clock.Now()
	signature, err := p.signer.Sign(message, now, body)
	if err != nil {
		return fmt.Errorf("sign %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, message)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	res, err := p.cfg.Client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	switch {
	case err != nil:
		return fmt.Errorf("%s: read the reply: %w", path, err)
	case res.StatusCode != http.StatusOK:
		return payment.Refusal(res.StatusCode, fmt.Errorf("%s: status %d", path, res.StatusCode))
	case res.Header.Get(standardwebhooks.HeaderWebhookID) != message:
		return fmt.Errorf("%s: the reply is to another request", path)
	}
	if bytes.Equal(reply, body) { // has the signature of the request
		return fmt.Errorf("%s: the reply repeats the request", path)
	}
	if err := p.verify(res.Header, reply); err != nil {
		return fmt.Errorf("%s: reply: %w", path, err)
	}
	if err := json.Unmarshal(reply, out); err != nil {
		return fmt.Errorf("%s: reply: %w", path, err)
	}
	return nil
}

func (p *Provider) verify(header http.Header, body []byte) error {
	if err := p.signer.VerifyIgnoringTimestamp(body, header); err != nil {
		return fmt.Errorf("%w: %w", payment.ErrForged, err)
	}
	seconds, err := strconv.ParseInt(header.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
	if age := p.cfg.Clock.Now().Sub(time.Unix(seconds, 0)); err != nil || age.Abs() > tolerance {
		return fmt.Errorf("%w: signed %s ago", payment.ErrForged, age)
	}
	return nil
}

var kinds = map[string]payment.EventKind{
	"payment.succeeded": payment.EventSucceeded, "payment.declined": payment.EventDeclined,
	"payment.closed":           payment.EventClosed,
	"payment.attempt_declined": payment.EventAttemptDeclined, "payment.refunded": payment.EventRefunded,
}

// Callback verifies and decodes a webhook. Other types than those of payments are ignored.
func (p *Provider) Callback(header http.Header, body []byte) (payment.Event, error) {
	if err := p.verify(header, body); err != nil {
		return payment.Event{}, err
	}
	var e struct {
		Type        string     `json:"type"`
		Payment     id.Payment `json:"payment"`
		Ref         string     `json:"ref"`
		Transaction string     `json:"transaction"`
		AmountMinor int64      `json:"amountMinor"`
		Currency    string     `json:"currency"`
		Refunded    int64      `json:"refundedMinor"`
		Payer       string     `json:"payer"`
		Reason      string     `json:"reason"`
		At          time.Time  `json:"at"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return payment.Event{}, fmt.Errorf("webhook of %s: %w", p.cfg.Name, err)
	}
	kind, ok := kinds[e.Type]
	if !ok {
		return payment.Event{}, nil
	}
	if kind == payment.EventSucceeded && e.Transaction == "" {
		return payment.Event{}, fmt.Errorf("webhook of %s: no transaction", p.cfg.Name)
	}
	if kind == payment.EventRefunded {
		e.AmountMinor = e.Refunded
	}
	return payment.Event{
		ID: header.Get(standardwebhooks.HeaderWebhookID), Payment: e.Payment, Kind: kind, Ref: e.Ref,
		Transaction: e.Transaction,
		AmountMinor: e.AmountMinor, Currency: e.Currency, Payer: e.Payer, Decline: payment.Decline(e.Reason), At: e.At,
	}, nil
}
