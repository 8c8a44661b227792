package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Provider takes money and gives it back. It is all that a second provider has to
// implement; nothing in the domain names one.
//
// Every method that changes something is idempotent by the id of ours that it is
// given. An error means that the outcome is unknown: the same call is made
// again later, or Query asked. Only what is returned without an error is believed.
type Provider interface {
	// Name is the provider's name: in the database, and in the path of its
	// call-backs, /webhooks/payments/<name>.
	Name() string
	// Create opens a payment that can be paid until it expires.
	Create(ctx context.Context, in CreateInput) (Created, error)
	// Query returns how a payment stands.
	Query(ctx context.Context, payment uuid.UUID) (State, error)
	// Close makes sure that a payment cannot be paid any more, and returns how it
	// stands then: a payment that was paid first stays paid.
	Close(ctx context.Context, payment uuid.UUID) (State, error)
	// Refund gives the money of a payment back. It returns once the provider has
	// taken the order to do so for good.
	Refund(ctx context.Context, in RefundInput) error
	// Callback reads a call-back. ErrForged says that it is not the provider's,
	// or too old; any other error that it is malformed. An event with an empty id
	// needs no action.
	Callback(header http.Header, body []byte) (Event, error)
}

// ErrForged says that a call-back does not come from the provider.
var ErrForged = errors.New("call-back is not the provider's")

// CreateInput opens a payment.
type CreateInput struct {
	Payment     uuid.UUID // idempotency key
	Description string    // for the person
	AmountMinor int64
	Currency    string
	ExpiresAt   time.Time
}

// Created is a payment as the provider knows it.
type Created struct {
	Ref         string // the provider's name for it
	QRCode      string // text to show as a QR code; may be empty
	RedirectURL string // where to send the person; may be empty
}

// RefundInput gives money back.
type RefundInput struct {
	Refund      uuid.UUID // idempotency key
	Payment     uuid.UUID
	Transaction string // which transaction of the payment; "" = the one that paid it
	AmountMinor int64
	Currency    string
	Reason      string
}

// Phase is how a payment stands at its provider.
type Phase string

// Phases of a payment at its provider.
const (
	PhaseUnknown  Phase = "UNKNOWN" // the provider never heard of it
	PhaseOpen     Phase = "OPEN"
	PhasePaid     Phase = "PAID"
	PhaseDeclined Phase = "DECLINED"
	PhaseClosed   Phase = "CLOSED"
)

// State is what a provider says about a payment.
type State struct {
	Phase       Phase
	Ref         string
	Transaction string // number of the transaction, once PAID
	AmountMinor int64  // what came in, once PAID
	Currency    string
	At          time.Time // when it came to stand so
}

// EventKind is what a provider reports.
type EventKind string

// Kinds of events.
const (
	EventSucceeded EventKind = "SUCCEEDED" // money came in
	EventDeclined  EventKind = "DECLINED"
	EventClosed    EventKind = "CLOSED"
)

// Event is something that a provider reported about a payment.
type Event struct {
	ID          string // the provider's, unique; the same event may come many times
	Payment     uuid.UUID
	Kind        EventKind
	Ref         string
	Transaction string
	AmountMinor int64
	Currency    string
	At          time.Time
}

// event is a state, read by asking, as the call-back would have told it. Its id
// is made of what it says, so that asking again tells the same event.
func (s State) event(payment uuid.UUID) (Event, bool) {
	kind, ok := map[Phase]EventKind{
		PhasePaid: EventSucceeded, PhaseDeclined: EventDeclined, PhaseClosed: EventClosed,
	}[s.Phase]
	return Event{
		ID: "asked:" + string(kind) + ":" + payment.String() + ":" + s.Transaction, Payment: payment, Kind: kind, Ref: s.Ref,
		Transaction: s.Transaction, AmountMinor: s.AmountMinor, Currency: s.Currency, At: s.At,
	}, ok
}
