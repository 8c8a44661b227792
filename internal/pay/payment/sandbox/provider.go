package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"seckill/internal/pay/payment"
	"seckill/internal/platform/clock"
)

// Name is the provider's name.
const Name = "sandbox"

// maxDescription bounds the description of a charge, in bytes.
const maxDescription = 200

// Provider implements payment.Provider on the bank.
type Provider struct {
	bank    *Bank
	pageURL string
	signer  *Signer
	clock   clock.Clock
}

// NewProvider returns the provider. pageURL is the URL at which Pages is served,
// without a trailing slash, for example "http://localhost:8080/sandbox".
func NewProvider(bank *Bank, pageURL string, signer *Signer, c clock.Clock) *Provider {
	if c == nil {
		c = clock.System{}
	}
	return &Provider{bank: bank, pageURL: pageURL, signer: signer, clock: c}
}

// Name returns "sandbox".
func (*Provider) Name() string { return Name }

// Terms returns that the bank takes every amount.
func (*Provider) Terms() payment.Terms {
	return payment.Terms{Label: payment.Label{English: "Test bank", Chinese: "测试银行"}, Kind: payment.QR, Icon: "bank",
		Test: true}
}

// Create opens a charge.
func (p *Provider) Create(ctx context.Context, in payment.CreateInput) (payment.Created, error) {
	c, err := p.bank.Open(ctx, Charge{
		Merchant: in.Payment, Description: in.Description(maxDescription), Language: string(in.Language),
		ReturnURL: in.ReturnURL, AmountMinor: in.AmountMinor, Currency: in.Currency, ExpiresAt: in.ExpiresAt,
	})
	if err != nil {
		return payment.Created{}, err
	}
	page := p.pageURL + "/pay/" + c.ID.String()
	return payment.Created{Ref: c.ID.String(), QRCode: page, RedirectURL: page}, nil
}

// Query returns the state of a charge.
func (p *Provider) Query(ctx context.Context, known payment.Known) (payment.State, error) {
	return p.state(p.bank.ByMerchant(ctx, known.Payment))
}

// Close closes a charge.
func (p *Provider) Close(ctx context.Context, known payment.Known) (payment.State, error) {
	return p.state(p.bank.Close(ctx, known.Payment))
}

// Refund refunds money of a charge.
func (p *Provider) Refund(ctx context.Context, in payment.RefundInput) error {
	if in.Transaction != "" {
		c, err := p.bank.ByMerchant(ctx, in.Paid.Payment)
		if err != nil {
			return err
		}
		if c.Transaction != in.Transaction { // a charge has one transaction
			return fmt.Errorf("%w: transaction %q of payment %s", ErrUnknown, in.Transaction, in.Paid.Payment)
		}
	}
	return p.bank.Refund(ctx, in.Paid.Payment, in.Refund, in.AmountMinor)
}

func (p *Provider) state(c *Charge, err error) (payment.State, error) {
	if errors.Is(err, ErrUnknown) {
		return payment.State{Phase: payment.PhaseUnknown}, nil
	}
	if err != nil {
		return payment.State{}, err
	}
	now := p.clock.Now()
	s := payment.State{
		Phase: payment.Phase(c.Status), Ref: c.ID.String(), Transaction: c.Transaction,
		AmountMinor: c.AmountMinor, Currency: c.Currency, Decline: payment.Decline(c.Decline), Refunded: c.Refunded, At: now,
	}
	if c.PaidAt != nil {
		s.At = *c.PaidAt
	}
	if s.Phase == payment.PhaseOpen && !now.Before(c.ExpiresAt) {
		s.Phase = payment.PhaseClosed // it can no longer be approved
	}
	return s, nil
}

// Callback verifies and decodes a call-back.
func (p *Provider) Callback(header http.Header, body []byte) (payment.Event, error) {
	if err := p.signer.Verify(header.Get(SignatureHeader), body, p.clock.Now()); err != nil {
		return payment.Event{}, err
	}
	var n notice
	if err := json.Unmarshal(body, &n); err != nil {
		return payment.Event{}, fmt.Errorf("sandbox notice: %w", err)
	}
	kind, ok := map[string]payment.EventKind{
		"charge.paid": payment.EventSucceeded, "charge.declined": payment.EventDeclined, "charge.closed": payment.EventClosed,
	}[n.Type]
	if !ok {
		return payment.Event{}, nil // an event that a merchant may ignore
	}
	return payment.Event{
		ID: n.ID, Payment: n.Payment, Kind: kind, Ref: n.Charge.String(), Transaction: n.Transaction,
		AmountMinor: n.AmountMinor, Currency: n.Currency, Decline: payment.Decline(n.Reason), At: n.At,
	}, nil
}
