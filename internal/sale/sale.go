// Package sale owns what is on sale: goods, flash sales and their items, the
// rules of a sale's phases, and the catalogue that serves them from memory.
//
// It does not own live stock: units are taken in package reservation, and the
// record of them is moved by package order.
package sale

import (
	"time"

	"github.com/google/uuid"

	"seckill/internal/money"
)

// Status is where a sale stands in its making. Buyers see Phase.
type Status string

// Statuses, in the order of a sale's life.
const (
	Draft           Status = "DRAFT"
	PendingApproval Status = "PENDING_APPROVAL"
	Rejected        Status = "REJECTED"
	Approved        Status = "APPROVED"
	Scheduled       Status = "SCHEDULED"
	Preheated       Status = "PREHEATED"
	Live            Status = "LIVE"
	Paused          Status = "PAUSED"
	Ended           Status = "ENDED"
	Cancelled       Status = "CANCELLED"
)

// Public reports whether buyers may see a sale of this status.
func (s Status) Public() bool {
	switch s {
	case Scheduled, Preheated, Live, Paused, Ended, Cancelled:
		return true
	case Draft, PendingApproval, Rejected, Approved:
		return false
	}
	return false
}

// Loaded reports whether a sale of this status has its gate in Redis.
func (s Status) Loaded() bool {
	switch s {
	case Preheated, Live, Paused:
		return true
	case Draft, PendingApproval, Rejected, Approved, Scheduled, Ended, Cancelled:
		return false
	}
	return false
}

// Phase is what a buyer sees of a sale.
type Phase string

// Phases.
const (
	PhaseUpcoming  Phase = "UPCOMING"
	PhaseLive      Phase = "LIVE"
	PhaseSoldOut   Phase = "SOLD_OUT"
	PhasePaused    Phase = "PAUSED"
	PhaseEnded     Phase = "ENDED"
	PhaseCancelled Phase = "CANCELLED"
)

// Goods is a catalogue entry.
type Goods struct {
	ID          uuid.UUID
	Name        string
	Description string
	ImageURL    *string
	ListPrice   money.Amount
	CreatedAt   time.Time
}

// Item is one goods in a sale.
type Item struct {
	ID        uuid.UUID
	SaleID    uuid.UUID
	Goods     *Goods
	Position  int
	Price     money.Amount
	Total     int   // units put on sale, when the catalogue was read
	Available int   // units nobody had then; the live figure is the gate's
	Revision  int64 // of the stock row, when the catalogue was read
}

// Sale is a flash sale. It is shared between requests: read only.
type Sale struct {
	ID             uuid.UUID
	Slug           string
	Title          string
	Rules          string
	Status         Status
	StartsAt       time.Time
	EndsAt         time.Time
	PreheatAt      time.Time
	PaymentWindow  time.Duration
	PurchaseLimit  int
	HideExactStock bool
	Epoch          int64 // of the gate in Redis; 0 = never loaded
	Revision       int64
	Items          []*Item // by position
	CreatedBy      *uuid.UUID
	CreatedAt      time.Time
}

// Phase returns what a buyer sees at now. soldOut says that no item has a unit
// left at present.
func (s *Sale) Phase(now time.Time, soldOut bool) Phase {
	switch {
	case s.Status == Cancelled:
		return PhaseCancelled
	case s.Status == Ended, !now.Before(s.EndsAt):
		return PhaseEnded
	case s.Status == Paused:
		return PhasePaused
	case now.Before(s.StartsAt):
		return PhaseUpcoming
	case soldOut:
		return PhaseSoldOut
	}
	return PhaseLive
}

// NextTransition returns when the phase changes next by the clock alone; nil
// when it will not.
func (s *Sale) NextTransition(now time.Time) *time.Time {
	switch {
	case s.Status == Cancelled, s.Status == Ended, !now.Before(s.EndsAt):
		return nil
	case now.Before(s.StartsAt):
		return &s.StartsAt
	}
	return &s.EndsAt
}
