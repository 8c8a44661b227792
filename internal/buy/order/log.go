package order

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/orderevent"
	"seckill/internal/platform/id"
)

// maxTimeline bounds the log entries read of one order.
const maxTimeline = 50

// ActorKind is the kind of an Actor.
type ActorKind string

// Kinds of actors.
const (
	Buyer    ActorKind = "BUYER"
	Operator ActorKind = "OPERATOR"
	Clock    ActorKind = "CLOCK"    // a deadline passed
	Provider ActorKind = "PROVIDER" // a payment provider reported it
)

// Actor is the originator of a log entry.
type Actor struct {
	Kind ActorKind
	User id.User // set for BUYER and OPERATOR
}

// Code identifies an event in the life of an order.
type Code string

// Events after the creation of an order.
const (
	CodePaid            Code = "PAID"
	CodeLimit           Code = "LIMIT_REACHED" // a payment by a means that used up a limit is refunded
	CodePaidLate        Code = "PAID_LATE"     // after the deadline; a unit was available
	CodeCancelled       Code = "CANCELLED"
	CodeExpired         Code = "LAPSED"
	CodeVoided          Code = "VOIDED"
	CodeRefundAsked     Code = "REFUND_ASKED"
	CodeRefundApproved  Code = "REFUND_APPROVED"
	CodeRefundRejected  Code = "REFUND_REJECTED"
	CodeRefunded        Code = "REFUNDED"
	CodeRefundFailed    Code = "REFUND_FAILED"  // an operator sends it again
	CodeRefundSettled   Code = "REFUND_SETTLED" // given back outside the provider
	CodePaymentDeclined Code = "PAYMENT_DECLINED"
	CodePaymentReturned Code = "PAYMENT_RETURNED" // a late or duplicate payment is refunded
	CodePaymentHeld     Code = "PAYMENT_HELD"     // a payment that does not match is held for review
	CodePaymentDisputed Code = "PAYMENT_DISPUTED" // the buyer disputes a payment at their bank
	CodeDisputeWon      Code = "DISPUTE_WON"      // the shop keeps the money
	CodePreparing       Code = "PREPARING"
	CodeShipped         Code = "SHIPPED"
	CodeDelivered       Code = "DELIVERED"
	CodeReturned        Code = "RETURNED"
	CodeRecipient       Code = "RECIPIENT_CHANGED"
	CodeHeld            Code = "HELD_FOR_REVIEW"
	CodeReviewAnswered  Code = "REVIEW_ANSWERED"
	CodeReviewReleased  Code = "REVIEW_RELEASED"
	CodeDisputeLost     Code = "DISPUTE_LOST" // the bank has taken the money back
)

// Entry is the content of a new log entry.
type Entry struct {
	By    Actor
	Code  Code
	Note  string // operator's remark; may be empty
	Units int    // units of the order that are refunded, or are to be; 0 = none
}

// LogEntry is a stored entry of an order's log.
type LogEntry struct {
	Entry
	At     time.Time
	Status Status // status after the event
}

// Log writes an entry to an order's log in the caller's transaction.
func Log(ctx context.Context, tx *ent.Tx, o *Order, at time.Time, e Entry) error {
	if err := logRow(tx, o, at, e).Exec(ctx); err != nil {
		return fmt.Errorf("log %s of order %s: %w", e.Code, o.ID, err)
	}
	return nil
}

func logRow(tx *ent.Tx, o *Order, at time.Time, e Entry) *ent.OrderEventCreate {
	row := tx.OrderEvent.Create().SetID(id.New[uuid.UUID]()).SetOrderID(o.ID).SetStatus(orderevent.Status(o.Status)).
		SetVersion(o.Version).SetActor(orderevent.Actor(e.By.Kind)).SetCode(orderevent.Code(e.Code)).
		SetNote(e.Note).SetQuantity(e.Units).SetCreatedAt(instant(at))
	if !e.By.User.IsZero() {
		row.SetActorID(e.By.User)
	}
	return row
}

// Timeline returns the log of an order, oldest first: its creation, which has no code, and
// the newest entries, at most maxTimeline in all.
func (s *Store) Timeline(ctx context.Context, o *Order) ([]LogEntry, error) {
	rows, err := s.db.Ent.OrderEvent.Query().Where(orderevent.OrderID(o.ID)).
		Order(ent.Desc(orderevent.FieldID)).Limit(maxTimeline - 1).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read log of order %s: %w", o.ID, err)
	}
	slices.Reverse(rows)
	made := LogEntry{Entry: Entry{By: Actor{Kind: Buyer, User: o.User}}, At: o.CreatedAt, Status: PendingPayment}
	entries := append(make([]LogEntry, 0, len(rows)+1), made)
	for _, row := range rows {
		e := LogEntry{
			Entry: Entry{By: Actor{Kind: ActorKind(row.Actor)}, Code: Code(row.Code), Note: row.Note, Units: row.Quantity},
			At:    row.CreatedAt.UTC(), Status: Status(row.Status),
		}
		if row.ActorID != nil {
			e.By.User = *row.ActorID
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Action is an operation that a buyer may perform on an order.
type Action string

// Actions of a buyer.
const (
	ActionPay    Action = "PAY"
	ActionCancel Action = "CANCEL"
	ActionRefund Action = "REFUND" // request a refund
)

// Actions returns the operations that the buyer may perform on the order at now.
func (o *Order) Actions(now time.Time) []Action {
	switch o.Status {
	case PendingPayment:
		if !o.UnderReview() && o.PaymentDeadline != nil && now.Before(*o.PaymentDeadline) {
			return []Action{ActionPay, ActionCancel}
		}
		return []Action{ActionCancel}
	case Paid:
		return []Action{ActionRefund}
	case Cancelled, Expired, Refunding, Refunded:
	}
	return nil
}
