// Package payment owns how orders are paid and refunded: payments at a provider, the
// events that providers report, and refunds. It contains the use cases pay, cancel,
// void, request a refund and decide on it, which all lock the order's row.
//
// It does not own orders and their moves (internal/buy/order), the gate in Redis, or any
// provider. Providers implement the interface Provider; the built-in one is
// internal/pay/payment/sandbox.
//
//	payment   CREATING ──► PENDING ──► SUCCEEDED ◄──► REFUNDED
//	             │            │            ▲
//	             └────────────┴──► CLOSED ─┘          (paid after it was closed)
//
//	of an entry of a draw (entry.go), which leads to an order if it is drawn
//	          CREATING ──► PENDING ──► AUTHORIZED ──► SUCCEEDED
//	             │            │            │
//	             └────────────┴────────────┴──► CLOSED
//
//	refund    REQUESTED ──► REJECTED
//	             │
//	             ▼
//	          SENDING ──► SUCCEEDED                   (retried until it succeeds)
//	             ▲  │         │
//	             │  ▼         │                       (an operator orders another attempt)
//	            FAILED ◄──────┘                       (the provider gave up, maybe days later)
//	               │
//	               ▼
//	            SETTLED                               (an operator gave the money back in another way)
//
// A provider's event is first stored, once, and settled afterwards, by a message or, if
// the message is lost, by a loop. Money that was received ends in a paid order or is
// refunded in full:
//
//	order unpaid            paid
//	order expired           its units are reacquired if possible, else refund
//	order cancelled         refund
//	order already paid      refund
//	other amount, currency  held: an operator decides
//
// An order is refunded whole, or by units in several refunds, one after the other: it is
// REFUNDING until a refund is finished, then PAID again while units are left. A payment is
// REFUNDED once all of its money has gone back.
//
// When a provider does not respond, the state stays unchanged and the provider is
// queried later. All calls to providers carry one of our ids as idempotency key.
package payment

import (
	"time"

	"seckill/ent"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/money"
	"seckill/internal/platform/postgres"
)

// Status is the state of a payment.
type Status string

// States of a payment.
const (
	Creating Status = "CREATING" // the provider's reply is not known yet
	Pending  Status = "PENDING"  // waits for the buyer
	// Authorized money is held, or its card is saved, until it is captured or released.
	Authorized Status = "AUTHORIZED"
	Closed     Status = "CLOSED" // declined, or not paid in time
	Succeeded  Status = "SUCCEEDED"
	Refunded   Status = "REFUNDED"
)

// IsOpen reports whether the payment can still be paid.
func (s Status) IsOpen() bool { return s == Creating || s == Pending || s == Authorized }

// Payment is one attempt to pay an order, or to authorize the money of an entry of a draw.
type Payment struct {
	ID             id.Payment  // also the provider's idempotency key
	Order          id.Order    // of an entry that is not drawn: the entry's id
	Entry          id.Waitlist // zero = a payment that began with the order
	Hold           Hold
	User           id.User
	Provider       string
	IdempotencyKey string
	Status         Status
	AmountMinor    int64
	Currency       string
	Product        string          // its name when the payment began; empty in those of former releases
	Language       locale.Language // of the buyer, for the provider's pages
	ReturnURL      string          // that the buyer's client asked for; empty = the page of the order
	ProviderRef    string          // the provider's reference; empty while CREATING
	Transaction    string          // the provider's transaction number, once paid
	Declined       bool            // closed because the provider refused it
	Decline        Decline         // why it declined the last attempt; "" = it did not
	QRCode         string          // text to show as a QR code; may be empty
	RedirectURL    string          // where to redirect the buyer; may be empty
	ClientSecret   string          // for the buyer's browser only; may be empty
	Fee            *money.Amount   // what the provider keeps; nil until it is known
	Dispute        Dispute
	Version        int64
	ExpiresAt      time.Time
	CreatedAt      time.Time
	PaidAt         *time.Time
	UpdatedAt      time.Time
}

// hasOrder reports whether the payment is of an order, and not of an entry that is not drawn.
func (p *Payment) hasOrder() bool { return p.Order != id.Order(p.Entry) }

// known returns what the calls to the payment's provider need.
func (p *Payment) known(number string, quantity int) Known {
	return Known{Ref: p.ProviderRef, Transaction: p.Transaction, CreateInput: CreateInput{
		Payment: p.ID, Order: p.Order, Number: number, Product: p.Product, Quantity: quantity, AmountMinor: p.AmountMinor,
		Currency: p.Currency, Language: p.Language, CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt, ReturnURL: p.ReturnURL,
		Hold: p.Hold, Entry: p.Entry,
	}}
}

func fromRow(row *ent.Payment) *Payment {
	p := &Payment{
		ID: row.ID, Order: row.OrderID, User: row.UserID, Provider: row.Provider, IdempotencyKey: row.IdempotencyKey,
		Status: Status(row.Status), AmountMinor: row.AmountMinor, Currency: row.Currency, ProviderRef: row.ProviderRef,
		Product: row.Product, Language: locale.Language(row.Language), ReturnURL: row.ReturnURL,
		Transaction: row.Transaction, Declined: row.Declined, Decline: Decline(row.FailureCode), QRCode: row.QrCode,
		RedirectURL: row.RedirectURL, ClientSecret: row.ClientSecret, Version: row.Version,
		ExpiresAt: row.ExpiresAt.UTC(), CreatedAt: row.CreatedAt.UTC(), PaidAt: row.PaidAt, UpdatedAt: row.UpdatedAt.UTC(),
		Dispute: Dispute(row.Dispute), Hold: Hold(row.Hold), Entry: postgres.Value(row.EntryID),
	}
	if row.FeeMinor != nil {
		p.Fee = &money.Amount{Minor: *row.FeeMinor, Currency: row.FeeCurrency}
	}
	return p
}

// RefundStatus is the state of a refund.
type RefundStatus string

// States of a refund.
const (
	RefundRequested RefundStatus = "REQUESTED" // waits for an operator
	RefundRejected  RefundStatus = "REJECTED"
	RefundSending   RefundStatus = "SENDING" // decided; sent to the provider until it succeeds
	RefundSucceeded RefundStatus = "SUCCEEDED"
	RefundGivenUp   RefundStatus = "FAILED"  // the provider gave up: an operator decides
	RefundSettled   RefundStatus = "SETTLED" // given back outside the provider, as an operator has said
)

// Cause is the reason of a refund.
type Cause string

// Causes of refunds.
const (
	Asked  Cause = "ASKED"  // requested by the buyer
	Voided Cause = "VOIDED" // by an operator
	Late   Cause = "LATE"   // paid after the order had ended
	Double Cause = "DOUBLE" // paid twice
	// Outside is a part that went back on the provider's pages. It is of no units.
	Outside Cause = "OUTSIDE"
)

// moves reports whether a refund of this cause changes the order; one of late or double
// money does not.
func (c Cause) moves() bool { return c == Asked || c == Voided }

// Refund is a requested or decided refund.
type Refund struct {
	ID             id.Refund
	Order          id.Order
	Payment        id.Payment
	Transaction    string // the transaction to refund; "" = the one that paid the payment
	IdempotencyKey string
	Cause          Cause
	Status         RefundStatus
	AmountMinor    int64
	Currency       string
	Quantity       int    // units of the order; 0 = none, or all in rows of the first releases
	Applied        bool   // whether it has moved the order; see endRefund
	Reason         string // as entered by the requester
	Restock        bool   // whether the units return to stock
	DecidedBy      *id.User
	DecidedAt      *time.Time // nil while it waits for an operator
	Decision       string     // operator's remark
	Attempts       int        // ordered at the provider, from 1
	Failure        string     // of the last attempt, in the provider's words
	Version        int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

func refundFromRow(row *ent.Refund) *Refund {
	return &Refund{
		ID: row.ID, Order: row.OrderID, Payment: row.PaymentID, Transaction: row.Transaction,
		IdempotencyKey: row.IdempotencyKey,
		Cause:          Cause(row.Cause), Status: RefundStatus(row.Status), AmountMinor: row.AmountMinor,
		Currency: row.Currency,
		Reason:   row.Reason, Restock: row.Restock, DecidedBy: row.DecidedBy, DecidedAt: row.DecidedAt,
		Decision: row.Decision, Version: row.Version,
		Attempts: row.Attempts, Failure: row.Failure, Quantity: row.Quantity, Applied: row.Applied,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}
