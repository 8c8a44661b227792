// Package order owns orders and order tasks: their states and moves, the message that
// requests an order, the writer that turns requests into rows, reads, and the return of
// units of ended orders and failed tasks.
//
// It does not own the stock gate in Redis (internal/buy/reservation), the streams
// (internal/platform/stream), or payments (internal/pay/payment). Postgres is the source of truth;
// the records in Redis are copies that may be lost.
//
// A task is the attempt to buy; an order is its success. Both have the same id, chosen
// before stock is reserved:
//
//	                  SUBMITTED ──► FAILED           (row in order_failures)
//	                      │
//	                      ▼
//	                  SUCCEEDED                      (row in orders)
//	                      ║
//	               PENDING_PAYMENT ──► CANCELLED
//	                  │        │
//	                  ▼        ▼
//	REFUNDING ◄──► PAID ◄── EXPIRED                  (paid late, unit reacquired)
//	    │
//	    ▼
//	REFUNDED
//
// A PENDING_PAYMENT order may be under review (Review): it has no deadline and cannot be paid until
// it is released, which changes neither its status nor its units.
//
// Every move of an order is a compare-and-set on (status, version), in one transaction
// with its move of stock:
//
//	HOLD     available → held     a task becomes an order
//	SELL     held → sold          an order is paid
//	RELEASE  held → available     an order is cancelled or expires
//	RETAKE   available → sold     an expired order is paid late
//	RESTOCK  sold → available     a unit of a paid order is returned
//
// The key (order, kind) of the stock ledger makes each of them happen at most once. Units
// of a partial refund have the refund in place of the order: the order moves from
// REFUNDING to PAID, and its row has the number of its refunded units.
// Orders that are written together share one HOLD line, which names the first of them;
// the primary key of the orders table ensures that a task becomes an order at most
// once.
package order

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/internal/identity/person"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Order is a purchase at one version.
type Order struct {
	ID     id.Order `json:"id"` // also the id of its task
	Number string   `json:"number"`
	Sale   id.Sale  `json:"sale"`
	Item   id.Item  `json:"item"`
	User   id.User  `json:"user"`
	Kind   Kind     `json:"kind"`
	Status Status   `json:"status"`

	Quantity         int `json:"quantity"`
	RefundedQuantity int `json:"refundedQuantity,omitempty"` // see RefundedUnits

	UnitPriceMinor int64  `json:"unitPriceMinor"` // price of one unit at the time of the order, in minor units
	Currency       string `json:"currency"`       // ISO 4217

	Version int64 `json:"revision"` // incremented with every change
	Epoch   int64 `json:"epoch"`    // gate epoch of the reservation

	ReservedAt      time.Time  `json:"reservedAt"`
	CreatedAt       time.Time  `json:"createdAt"`
	UpdatedAt       time.Time  `json:"updatedAt"`
	PaymentDeadline *time.Time `json:"paymentDeadline,omitempty"` // nil once the order can no longer expire
	PaidAt          *time.Time `json:"paidAt,omitempty"`

	// ClaimID is the name of the reservation in Redis when it is not the order's id:
	// the order expired and reacquired its units. See Reservation.
	ClaimID *id.Task `json:"claim,omitempty"`

	// Persons are the keys by which the limits of the sale count the buyer, until the sale is
	// settled.
	Persons person.Keys `json:"-"`

	// Origin is where the attempt came from, until the sale is settled.
	Origin person.Origin `json:"-"`

	// Review is the check before payment; nil = the order was never held.
	Review *Review `json:"review,omitempty"`

	// Noted reports that Note made this version: the status did not change.
	Noted bool `json:"-"`
}

// Kind is how an order was created.
type Kind string

// Kinds of orders.
const (
	Ordinary Kind = "ORDINARY"
	Seckill  Kind = "SECKILL"
)

// TotalMinor returns the total price of the order, in minor units.
func (o *Order) TotalMinor() int64 { return o.UnitPriceMinor * int64(o.Quantity) }

// RefundedUnits returns the units of the order whose money went back.
func (o *Order) RefundedUnits() int {
	if o.Status == Refunded {
		return o.Quantity
	}
	return o.RefundedQuantity
}

// RefundedMinor returns the price of the refunded units, in minor units.
func (o *Order) RefundedMinor() int64 { return o.UnitPriceMinor * int64(o.RefundedUnits()) }

// Left returns the units that were not refunded.
func (o *Order) Left() int { return o.Quantity - o.RefundedUnits() }

// Reservation returns the reservation of an order in Redis, with the units that it has
// once all refunded units have returned.
func (o *Order) Reservation() Reservation {
	c := Reservation{Name: id.Task(o.ID), Order: o.ID, Sale: o.Sale, Item: o.Item, User: o.User, Quantity: o.Quantity,
		Expired: o.Status == Expired, Persons: o.Persons}
	if o.Status.IsLive() {
		c.Quantity = o.Left()
	}
	if o.ClaimID != nil {
		c.Name = *o.ClaimID
	}
	return c
}

// Reservation identifies reserved units in Redis and their user.
type Reservation struct {
	Name      id.Task // the task id in the reservation's record
	Order     id.Order
	Sale      id.Sale
	Item      id.Item
	User      id.User
	Quantity  int
	Expired   bool // not paid in time, or cancelled late: it counts as an expiry
	Oversold  bool // Postgres had no units for it; the gate removes them
	Withdrawn bool // a refund took the units off the sale; the gate removes them
	Persons   person.Keys
	// Keep is how many units stay reserved, because their order was refunded in part; 0 = the
	// reservation ends.
	Keep int
	// Refund is the partial refund whose units return; zero = all units of the order.
	Refund id.Refund
}

// Task returns the ended task of the order.
func (o *Order) Task() Task {
	return Task{
		ID: id.Task(o.ID), User: o.User, Sale: o.Sale, Item: o.Item, Quantity: o.Quantity,
		Status: Succeeded, Revision: RevisionEnded, OrderID: o.ID,
		CreatedAt: o.ReservedAt, UpdatedAt: o.CreatedAt,
	}
}

// FromRow converts a row of the orders table.
func FromRow(row *ent.Order) *Order {
	persons := person.Keys{}
	if row.PersonKeys != nil {
		persons, _ = person.Parse(*row.PersonKeys) // only this package writes them
	}
	return &Order{
		Persons: persons, Origin: person.Origin{Network: person.Key(postgres.Value(row.NetworkKey)),
			Device: person.Key(postgres.Value(row.DeviceKey))}, Review: reviewOf(row),
		ID: row.ID, Number: row.Number, Sale: row.SaleID, Item: row.ItemID, User: row.UserID,
		Kind: Kind(row.Kind), Status: Status(row.Status), Quantity: row.Quantity, RefundedQuantity: row.RefundedQuantity,
		UnitPriceMinor: row.UnitPriceMinor, Currency: row.Currency,
		Version: row.Version, Epoch: row.Epoch,
		ReservedAt: row.ReservedAt.UTC(), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
		PaymentDeadline: clock.UTC(row.PaymentDeadline), PaidAt: clock.UTC(row.PaidAt), ClaimID: row.ClaimID,
	}
}

// instant truncates a time to the precision of the database, so that a written row
// equals the row read back.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// numberDigits is how many characters follow the date: 35 bits. Two orders of a day
// have the same characters with probability 1 in 34 billion. With 100,000 orders, about
// one batch in 2,000 contains a taken number. The unique index detects it, and the next
// attempt uses a longer number.
const numberDigits = 7

// crockford omits I, L, O and U, which are easily confused with other characters.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// Number returns the readable number of an order, such as "20261120-7H3K9QX": the UTC
// date of its creation, and characters derived from its id. Attempt starts at 0 and
// grows each time the number is already taken; each attempt adds two characters.
func Number(id id.Order, at time.Time, attempt int) string {
	sum := sha256.Sum256(fmt.Append(id[:], attempt))
	text := crockford.EncodeToString(sum[:])
	return at.UTC().Format("20060102") + "-" + text[:min(numberDigits+2*attempt, 20)]
}
