package payment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
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
	// Terms returns what buyers see of the provider, and what it takes.
	Terms() Terms
	// Create opens a payment that can be paid until it expires. A provider with narrower bounds
	// for the time moves the expiry: money that comes late is settled, and the shop closes
	// the payment at its deadline. A RequestRefused means that no payment was made.
	Create(ctx context.Context, in CreateInput) (Created, error)
	// Query returns the state of a payment.
	Query(ctx context.Context, p Known) (State, error)
	// Close ensures that a payment can no longer be paid, and returns its state: a
	// payment that was paid first stays paid.
	Close(ctx context.Context, p Known) (State, error)
	// Refund refunds money of a payment. It returns nil once the provider has durably
	// accepted the refund; a RefundFailed means that it has given up, and that a repeated
	// call would not help. A refund that fails after it was accepted is an event.
	Refund(ctx context.Context, in RefundInput) error
	// Callback verifies and decodes a call-back. ErrForged means that it is not from
	// the provider, or too old; any other error means that it is malformed. An event
	// with an empty id needs no action.
	Callback(header http.Header, body []byte) (Event, error)
}

// Terms are what buyers see of a provider, and what it takes.
type Terms struct {
	Label Label
	Kind  Kind
	// Device is where the provider can be paid at; a client that runs on the other one
	// does not offer it. "" = any.
	Device Device
	Icon   string // a word that clients have a picture for: bank, card, wallet
	// Least maps the currencies that the provider takes to their least amounts in minor
	// units; nil = any amount in any currency.
	Least map[string]int64
	Most  map[string]int64 // greatest amounts, in minor units; none for a currency = no greatest
	Reply Reply            // to its call-backs
	Test  bool             // takes no real money
}

func (t Terms) takes(o *order.Order) bool {
	return t.takesAmount(money.Amount{Minor: o.TotalMinor(), Currency: o.Currency})
}

// Embedder is a Provider whose payments are made on the page, by a script of the provider.
type Embedder interface {
	// Embedding returns what pages load; false when payments are made elsewhere.
	Embedding() (Embedding, bool)
}

// PayerNamer is a Provider whose reports do not name the means of payment.
type PayerNamer interface {
	// Payer returns the means of payment of a transaction as the provider names it, such as the
	// fingerprint of a card; "" = it does not say.
	Payer(ctx context.Context, transaction string) (string, error)
}

// Hold is what a payment does before it takes money.
type Hold string

// Kinds of holds.
const (
	NoHold Hold = "NONE"
	// HoldMoney keeps the money for the shop until Capture or Close, or until it lapses.
	HoldMoney Hold = "AUTHORIZE"
	// HoldCard saves the card: Capture charges it while the buyer is away, Close forgets it.
	HoldCard Hold = "SAVE"
)

// On reports whether money or a card is held.
func (h Hold) On() bool { return h == HoldMoney || h == HoldCard }

// Authorizer is a Provider that takes CreateInput.Hold. Its payments are PhaseAuthorized once the
// buyer has confirmed them.
type Authorizer interface {
	Provider
	// Holds returns how long money is held at least.
	Holds() time.Duration
	// Capture takes the whole money of an authorized payment, once, however often it is called.
	// PhaseDeclined and PhaseClosed mean that it can no longer be taken.
	Capture(ctx context.Context, p Known) (State, error)
}

// Embedding is what a page needs, beside the client secret of a payment.
type Embedding struct {
	Key    string // of the account for browsers: not secret
	Script string // URL of the provider's script
}

// Label is the name of a provider for buyers.
type Label struct {
	English string
	Chinese string // "" = the English one
}

// In returns the name in a language.
func (l Label) In(language locale.Language) string {
	if language == locale.Chinese {
		return cmp.Or(l.Chinese, l.English)
	}
	return l.English
}

// Kind is how a buyer pays.
type Kind string

// Kinds of payments.
const (
	QR       Kind = "QR"       // by scanning a code
	Embedded Kind = "EMBEDDED" // on the page, by Created.ClientSecret
	Redirect Kind = "REDIRECT" // on a page of the provider that leads back to the order
)

// Device is where a buyer pays.
type Device string

// Devices of buyers.
const (
	AnyDevice Device = "ANY"
	Desktop   Device = "DESKTOP" // next to a phone that scans the code
	Phone     Device = "PHONE"
)

// Reply acknowledges a call-back that was stored or needs no action. Zero = 200 without a
// body. Any other call-back is answered with a status of 400 or more, which every provider
// understands.
type Reply struct {
	Status      int
	ContentType string
	Body        string
}

func (r Reply) write(w http.ResponseWriter) {
	if r.ContentType != "" {
		w.Header().Set("Content-Type", r.ContentType)
	}
	w.WriteHeader(cmp.Or(r.Status, http.StatusOK))
	_, _ = io.WriteString(w, r.Body) // the provider repeats the call-back
}

// ErrForged reports that a call-back does not come from the provider.
var ErrForged = errors.New("call-back is not the provider's")

// CreateInput is the input of Create.
type CreateInput struct {
	Payment     id.Payment // idempotency key
	Order       id.Order
	Number      string // of the order, as the buyer knows it
	Product     string // its name; "" in payments of former releases
	Quantity    int    // units of the product
	AmountMinor int64  // of all units
	Currency    string
	Language    locale.Language // of the buyer; "" in payments of former releases
	CreatedAt   time.Time       // when the shop began it: the same in repeated calls
	ExpiresAt   time.Time
	Address     string      // the buyer's IP address; "" unless the buyer is there
	ReturnURL   string      // where the provider's page leads back to
	Hold        Hold        // NoHold unless the provider is an Authorizer
	Entry       id.Waitlist // of a draw, with Hold: there is no order, or its number came later
}

// OrderText returns what the order is called, in the buyer's language.
func (in CreateInput) OrderText() string {
	if in.Hold.On() {
		if in.Language == locale.Chinese {
			return "抽签报名"
		}
		return "Draw entry"
	}
	if in.Language == locale.Chinese {
		return "订单 " + in.Number
	}
	return "Order " + in.Number
}

// Description returns product, quantity and number of the order for the buyer, in at most
// most bytes. A product whose name is too long loses the end of the name.
func (in CreateInput) Description(most int) string {
	tail := in.OrderText()
	if in.Product == "" {
		return tail
	}
	tail = " · " + tail
	if in.Quantity > 1 {
		tail = " × " + strconv.Itoa(in.Quantity) + tail
	}
	return fault.Shorten(in.Product, most-len(tail)) + tail
}

// Known is what the shop knows of a payment that it created, or tried to create.
type Known struct {
	CreateInput
	Ref         string // the provider's reference; "" while the reply to Create is unknown
	Transaction string // the one that paid it; "" until then
}

// Created is a payment as created by the provider.
type Created struct {
	Ref         string // the provider's reference
	QRCode      string // text to show as a QR code; may be empty
	RedirectURL string // where to redirect the buyer; may be empty
	// ClientSecret is what the buyer's browser pays with; "" unless the kind is EMBEDDED.
	ClientSecret string
}

// RefundInput is the input of Refund.
type RefundInput struct {
	Refund      id.Refund // idempotency key
	Paid        Known
	Transaction string // the transaction to refund; "" = Paid.Transaction
	AmountMinor int64
	Currency    string
	Reason      string
}

// RefundFailed reports that a provider has given up a refund, and keeps the money for the
// shop.
type RefundFailed struct{ Why string } // in the provider's words

func (e RefundFailed) Error() string { return "the provider has given up the refund: " + e.Why }

// Phase is the state of a payment at its provider.
type Phase string

// Phases of a payment at its provider.
const (
	PhaseUnknown    Phase = "UNKNOWN" // the provider does not know it
	PhaseOpen       Phase = "OPEN"
	PhaseAuthorized Phase = "AUTHORIZED" // of CreateInput.Hold
	PhasePaid       Phase = "PAID"
	PhaseDeclined   Phase = "DECLINED"
	PhaseClosed     Phase = "CLOSED"
)

// State is what a provider reports about a payment when queried.
type State struct {
	Phase       Phase
	Ref         string
	Transaction string // number of the transaction, once PAID
	AmountMinor int64  // received amount, once PAID
	Currency    string
	Payer       string  // means of payment as the provider names it, once PAID; "" = it does not say
	Decline     Decline // why, once DECLINED; other codes, and none, are OtherDecline
	// Fee is what the provider keeps, once PAID; nil = it does not say. It is only asked for
	// with Known.Transaction.
	Fee *money.Amount
	// Refunded is how much went back so far, once PAID, in minor units; 0 = none, or it does not
	// say. It is only asked for with Known.Transaction.
	Refunded int64
	// FeeError is why the fee could not be read, such as a key without the right to it. The rest
	// of the state is known.
	FeeError error
	At       time.Time // when it entered this state
}

// EventKind is the kind of a provider's event.
type EventKind string

// Kinds of events.
const (
	EventSucceeded    EventKind = "SUCCEEDED"  // money was received
	EventAuthorized   EventKind = "AUTHORIZED" // money or a card is held; Ref and Transaction name the hold
	EventDeclined     EventKind = "DECLINED"
	EventClosed       EventKind = "CLOSED"
	EventRefundFailed EventKind = "REFUND_FAILED" // money that went back has come back to the shop
	// EventRefunded reports how much of a payment went back so far, by the shop or on the
	// provider's pages: the amount is the sum of all refunds of the transaction.
	EventRefunded EventKind = "REFUNDED"
	// EventRefundedPart reports one refund of a payment: the amount is its own, the event's id is
	// that of the refund, and Refund is zero unless the shop made it.
	EventRefundedPart EventKind = "REFUNDED_PART"
	EventDisputed     EventKind = "DISPUTED" // the buyer disputes the payment at their bank
	EventDisputeWon   EventKind = "DISPUTE_WON"
	EventDisputeLost  EventKind = "DISPUTE_LOST" // the bank has taken the money back
	// EventAttemptDeclined reports a declined attempt on a payment that stays open.
	EventAttemptDeclined EventKind = "ATTEMPT_DECLINED"
)

// Event is a provider's report about a payment.
type Event struct {
	ID          string     // the provider's, unique; the same event may be delivered many times
	Payment     id.Payment // zero in a call-back where only Transaction is known
	Kind        EventKind
	Ref         string
	Transaction string
	AmountMinor int64
	Currency    string
	Payer       string    // SUCCEEDED: means of payment, such as the account of a wallet; "" = not in the report
	Decline     Decline   // DECLINED, ATTEMPT_DECLINED: why; other codes, and none, are OtherDecline
	Refund      id.Refund // REFUND_FAILED, REFUNDED_PART: RefundInput.Refund of the refund
	Reason      string    // REFUND_FAILED: in the provider's words; the first 200 bytes are kept
	At          time.Time
}

// event converts a queried state to the event that a call-back would have reported. Its
// id is derived from its content, so that repeated queries give the same event.
func (s State) event(payment id.Payment) (Event, bool) {
	kind, ok := map[Phase]EventKind{
		PhasePaid: EventSucceeded, PhaseAuthorized: EventAuthorized, PhaseDeclined: EventDeclined, PhaseClosed: EventClosed,
	}[s.Phase]
	name := "asked:" + string(kind) + ":" + payment.String() + ":"
	if len(name)+len(s.Transaction) <= maxEventID {
		name += s.Transaction
	} else {
		sum := sha256.Sum256([]byte(s.Transaction))
		name += hex.EncodeToString(sum[:])
	}
	return Event{
		ID: name, Payment: payment, Kind: kind, Ref: s.Ref,
		Transaction: s.Transaction, AmountMinor: s.AmountMinor, Currency: s.Currency, Payer: s.Payer, Decline: s.Decline,
		At: s.At,
	}, ok
}
