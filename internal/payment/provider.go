package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Provider takes payments and refunds them. A second provider has to implement only
// this interface; the domain names no provider.
//
// Every method that changes something is idempotent by the id that it is given. An
// error means that the outcome is unknown: the same call is repeated later, or Query is
// called. Only a result without an error is used.
type Provider interface {
	// Name returns the provider's name, as in the database and in the path of its
	// call-backs, /webhooks/payments/<name>.
	Name() string
	// Create opens a payment that can be paid until it expires.
	Create(ctx context.Context, in CreateInput) (Created, error)
	// Query returns the state of a payment.
	Query(ctx context.Context, payment uuid.UUID) (State, error)
	// Close ensures that a payment cannot be paid any more, and returns its state: a
	// payment that was paid first stays paid.
	Close(ctx context.Context, payment uuid.UUID) (State, error)
	// Refund refunds money of a payment. It returns nil once the provider has durably
	// accepted the refund.
	Refund(ctx context.Context, in RefundInput) error
	// Callback verifies and decodes a call-back. ErrForged means that it is not from
	// the provider, or too old; any other error means that it is malformed. An event
	// with an empty id needs no action.
	Callback(header http.Header, body []byte) (Event, error)
}

// ErrForged reports that a call-back does not come from the provider.
var ErrForged = errors.New("call-back is not the provider's")

// CreateInput is the input of Create.
type CreateInput struct {
	Payment     uuid.UUID // idempotency key
	Description string    // shown to the buyer
	AmountMinor int64
	Currency    string
	ExpiresAt   time.Time
}

// Created is a payment as created by the provider.
type Created struct {
	Ref         string // the provider's reference
	QRCode      string // text to show as a QR code; may be empty
	RedirectURL string // where to redirect the buyer; may be empty
}

// RefundInput is the input of Refund.
type RefundInput struct {
	Refund      uuid.UUID // idempotency key
	Payment     uuid.UUID
	Transaction string // the transaction to refund; "" = the one that paid the payment
	AmountMinor int64
	Currency    string
	Reason      string
}

// Phase is the state of a payment at its provider.
type Phase string

// Phases of a payment at its provider.
const (
	PhaseUnknown  Phase = "UNKNOWN" // the provider does not know it
	PhaseOpen     Phase = "OPEN"
	PhasePaid     Phase = "PAID"
	PhaseDeclined Phase = "DECLINED"
	PhaseClosed   Phase = "CLOSED"
)

// State is what a provider reports about a payment when queried.
type State struct {
	Phase       Phase
	Ref         string
	Transaction string // number of the transaction, once PAID
	AmountMinor int64  // received amount, once PAID
	Currency    string
	At          time.Time // when it entered this state
}

// EventKind is the kind of a provider's event.
type EventKind string

// Kinds of events.
const (
	EventSucceeded EventKind = "SUCCEEDED" // money was received
	EventDeclined  EventKind = "DECLINED"
	EventClosed    EventKind = "CLOSED"
)

// Event is a provider's report about a payment.
type Event struct {
	ID          string // the provider's, unique; the same event may be delivered many times
	Payment     uuid.UUID
	Kind        EventKind
	Ref         string
	Transaction string
	AmountMinor int64
	Currency    string
	At          time.Time
}

// event converts a queried state to the event that a call-back would have reported. Its
// id is derived from its content, so that repeated queries give the same event.
func (s State) event(payment uuid.UUID) (Event, bool) {
	kind, ok := map[Phase]EventKind{
		PhasePaid: EventSucceeded, PhaseDeclined: EventDeclined, PhaseClosed: EventClosed,
	}[s.Phase]
	return Event{
		ID: "asked:" + string(kind) + ":" + payment.String() + ":" + s.Transaction, Payment: payment, Kind: kind, Ref: s.Ref,
		Transaction: s.Transaction, AmountMinor: s.AmountMinor, Currency: s.Currency, At: s.At,
	}, ok
}
