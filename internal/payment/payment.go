// Package payment owns how orders are paid and how money goes back: tries to pay
// at a provider, what providers say about them, and refunds; with it the use cases
// pay, cancel, void, ask for a refund and decide on it, which all meet at the
// order's row.
//
// It does not own orders and their moves (internal/order), the gate in Redis, or
// any provider: those stand behind the Provider interface, and the built-in one
// is in internal/payment/sandbox.
//
//	payment   CREATING ──► PENDING ──► SUCCEEDED ──► REFUNDED
//	             │            │            ▲
//	             └────────────┴──► CLOSED ─┘          (money came all the same)
//
//	refund    REQUESTED ──► REJECTED
//	             │
//	             ▼
//	          SENDING ──► SUCCEEDED                   (asked again until it is done)
//
// What a provider says is stored first, once, and acted upon afterwards, by a
// message or, if that is lost, by a loop. Money that came in ends in a paid order
// or goes back in full:
//
//	order unpaid            paid
//	order expired            its units are reacquired if they can be, else refund
//	order cancelled         refund
//	order paid already      refund
//	another sum, currency   held: an operator decides
//
// A provider that does not answer leaves the state as it is: it is asked later,
// never guessed. All calls to providers carry an id of ours as idempotency key.
package payment

import (
	"time"

	"github.com/google/uuid"

	"seckill/ent"
)

// Status is how a payment stands.
type Status string

// States of a payment.
const (
	Creating  Status = "CREATING" // the provider's answer is not known yet
	Pending   Status = "PENDING"  // waits for the person
	Closed    Status = "CLOSED"   // declined, or not paid in time
	Succeeded Status = "SUCCEEDED"
	Refunded  Status = "REFUNDED"
)

// IsOpen reports whether money is still expected.
func (s Status) IsOpen() bool { return s == Creating || s == Pending }

// Payment is one try to pay an order.
type Payment struct {
	ID             uuid.UUID // also the provider's idempotency key
	Order          uuid.UUID
	User           uuid.UUID
	Provider       string
	IdempotencyKey string
	Status         Status
	AmountMinor    int64
	Currency       string
	ProviderRef    string // the provider's name for it; empty while CREATING
	Transaction    string // the provider's transaction number, once paid
	QRCode         string // text to show as a QR code; may be empty
	RedirectURL    string // where to send the person; may be empty
	Version        int64
	ExpiresAt      time.Time
	CreatedAt      time.Time
	PaidAt         *time.Time
}

func fromRow(row *ent.Payment) *Payment {
	return &Payment{
		ID: row.ID, Order: row.OrderID, User: row.UserID, Provider: row.Provider, IdempotencyKey: row.IdempotencyKey,
		Status: Status(row.Status), AmountMinor: row.AmountMinor, Currency: row.Currency, ProviderRef: row.ProviderRef,
		Transaction: row.Transaction, QRCode: row.QrCode, RedirectURL: row.RedirectURL, Version: row.Version,
		ExpiresAt: row.ExpiresAt.UTC(), CreatedAt: row.CreatedAt.UTC(), PaidAt: row.PaidAt,
	}
}

// RefundStatus is how a refund stands.
type RefundStatus string

// States of a refund.
const (
	RefundRequested RefundStatus = "REQUESTED" // waits for an operator
	RefundRejected  RefundStatus = "REJECTED"
	RefundSending   RefundStatus = "SENDING" // decided; the provider is asked until it says done
	RefundSucceeded RefundStatus = "SUCCEEDED"
)

// Cause is why money goes back.
type Cause string

// Causes of refunds.
const (
	Asked  Cause = "ASKED"  // by the buyer
	Voided Cause = "VOIDED" // by an operator
	Late   Cause = "LATE"   // paid after the order had ended
	Double Cause = "DOUBLE" // paid twice
)

// moves reports whether the refund ends the order: one of late or double money
// leaves it as it is.
func (c Cause) moves() bool { return c == Asked || c == Voided }

// Refund is money that goes back, or was asked back.
type Refund struct {
	ID             uuid.UUID // also the provider's idempotency key
	Order          uuid.UUID
	Payment        uuid.UUID
	Transaction    string // which transaction goes back; "" = the one that paid the payment
	IdempotencyKey string
	Cause          Cause
	Status         RefundStatus
	AmountMinor    int64
	Currency       string
	Reason         string // in the asker's words
	Restock        bool   // whether the units go back on sale
	DecidedBy      *uuid.UUID
	Decision       string // remark of the operator
	Version        int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

func refundFromRow(row *ent.Refund) *Refund {
	return &Refund{
		ID: row.ID, Order: row.OrderID, Payment: row.PaymentID, Transaction: row.Transaction, IdempotencyKey: row.IdempotencyKey,
		Cause: Cause(row.Cause), Status: RefundStatus(row.Status), AmountMinor: row.AmountMinor, Currency: row.Currency,
		Reason: row.Reason, Restock: row.Restock, DecidedBy: row.DecidedBy, Decision: row.Decision, Version: row.Version,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}
