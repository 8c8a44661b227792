package order

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/orderevent"
	"seckill/internal/id"
)

// maxTimeline bounds the log that is read of one order.
const maxTimeline = 50

// ActorKind tells on whose behalf something happened.
type ActorKind string

// Kinds of actors.
const (
	Buyer    ActorKind = "BUYER"
	Operator ActorKind = "OPERATOR"
	Clock    ActorKind = "CLOCK"    // a deadline passed
	Provider ActorKind = "PROVIDER" // a payment provider said so
)

// Actor is who did something.
type Actor struct {
	Kind ActorKind
	User uuid.UUID // of BUYER and OPERATOR
}

// Code is what happened to an order.
type Code string

// What can happen to an order after it was made.
const (
	CodePaid            Code = "PAID"
	CodePaidLate        Code = "PAID_LATE" // after the deadline; there was a unit
	CodeCancelled       Code = "CANCELLED"
	CodeExpired         Code = "LAPSED"
	CodeVoided          Code = "VOIDED"
	CodeRefundAsked     Code = "REFUND_ASKED"
	CodeRefundApproved  Code = "REFUND_APPROVED"
	CodeRefundRejected  Code = "REFUND_REJECTED"
	CodeRefunded        Code = "REFUNDED"
	CodePaymentDeclined Code = "PAYMENT_DECLINED"
	CodePaymentReturned Code = "PAYMENT_RETURNED" // money that came too late, or twice, goes back
	CodePaymentHeld     Code = "PAYMENT_HELD"     // money that does not match; a person looks at it
)

// Entry is what is written to an order's log.
type Entry struct {
	By   Actor
	Code Code
	Note string // remark for the person; may be empty
}

// LogEntry is a line of an order's log.
type LogEntry struct {
	Entry
	At     time.Time
	Status Status // how the order stood afterwards
}

// Log writes a line to an order's log in the caller's transaction.
func Log(ctx context.Context, tx *ent.Tx, o *Order, at time.Time, e Entry) error {
	if err := logRow(tx, o, at, e).Exec(ctx); err != nil {
		return fmt.Errorf("log %s of order %s: %w", e.Code, o.ID, err)
	}
	return nil
}

func logRow(tx *ent.Tx, o *Order, at time.Time, e Entry) *ent.OrderEventCreate {
	row := tx.OrderEvent.Create().SetID(id.New()).SetOrderID(o.ID).SetStatus(orderevent.Status(o.Status)).
		SetVersion(o.Version).SetActor(orderevent.Actor(e.By.Kind)).SetCode(orderevent.Code(e.Code)).
		SetNote(e.Note).SetCreatedAt(instant(at))
	if e.By.User != uuid.Nil {
		row.SetActorID(e.By.User)
	}
	return row
}

// Timeline returns what happened to an order, oldest first, at most 50 lines. Its
// making is the first; that line has no code.
func (s *Store) Timeline(ctx context.Context, o *Order) ([]LogEntry, error) {
	rows, err := s.db.Ent.OrderEvent.Query().Where(orderevent.OrderID(o.ID)).
		Order(ent.Asc(orderevent.FieldID)).Limit(maxTimeline - 1).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log of order %s: %w", o.ID, err)
	}
	made := LogEntry{Entry: Entry{By: Actor{Kind: Buyer, User: o.User}}, At: o.CreatedAt, Status: PendingPayment}
	entries := append(make([]LogEntry, 0, len(rows)+1), made)
	for _, row := range rows {
		e := LogEntry{
			Entry: Entry{By: Actor{Kind: ActorKind(row.Actor)}, Code: Code(row.Code), Note: row.Note},
			At:    row.CreatedAt.UTC(), Status: Status(row.Status),
		}
		if row.ActorID != nil {
			e.By.User = *row.ActorID
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Action is what a buyer may do with an order.
type Action string

// Actions of a buyer.
const (
	ActionPay    Action = "PAY"
	ActionCancel Action = "CANCEL"
	ActionRefund Action = "REFUND" // ask for the money back
)

// Actions returns what the buyer may do with an order at an instant.
func (o *Order) Actions(now time.Time) []Action {
	switch o.Status {
	case PendingPayment:
		if o.PaymentDeadline != nil && now.Before(*o.PaymentDeadline) {
			return []Action{ActionPay, ActionCancel}
		}
		return []Action{ActionCancel}
	case Paid:
		return []Action{ActionRefund}
	case Cancelled, Expired, Refunding, Refunded:
	}
	return nil
}
