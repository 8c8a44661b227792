// Package sale owns the catalogue: products, flash sales and their items, the rules of
// a sale's phases, and the snapshot that serves them from memory.
//
// It does not own live stock: units are taken in package reservation, and their rows in
// Postgres are moved by package order.
//
// The states of a sale, and the role that may change them. The table is in status.go;
// every move is a compare-and-set on status and revision, logged in the same
// transaction:
//
//	   create            submit                      approve (admin, never its author)
//	──────────► DRAFT ──────────► PENDING_APPROVAL ──────────► APPROVED
//	              ▲                     │ reject (admin)          │ schedule
//	              │ update              ▼                         ▼
//	              └───────────────── REJECTED                 SCHEDULED ⟲ schedule
//	                                                              │ preheat (also the clock)
//	                      resume, before the opening              ▼
//	              ┌──────────────────────────────────────► PREHEATED
//	              │                    pause                   │  │ open (the clock alone)
//	            PAUSED ◄───────────────────────────────────────┘  ▼
//	              │ ▲                  pause                     LIVE
//	              │ └──────────────────────────────────────────── │ ▲
//	              └───────────────────────────────────────────────┼─┘
//	                                   resume                     │
//	                                                              ▼ end (admin, or the clock)
//	                  PREHEATED, PAUSED and SCHEDULED too ─────► ENDED ⟲ settle (the clock)
//
//	DRAFT, PENDING_APPROVAL, REJECTED, APPROVED, SCHEDULED, and PREHEATED or PAUSED
//	before the opening ── cancel (admin) ──► CANCELLED
package sale

import (
	"time"

	"seckill/internal/buy/access"
	"seckill/internal/platform/accent"
	"seckill/internal/platform/id"
	"seckill/internal/platform/money"
)

// Status is the internal state of a sale. Buyers see Phase.
type Status string

// Statuses, in their usual order.
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

// public reports whether buyers may see sales of this status. A cancelled sale is one that
// they saw before, or was never public.
func (s Status) public() bool {
	switch s {
	case Scheduled, Preheated, Live, Paused, Ended:
		return true
	case Draft, PendingApproval, Rejected, Approved, Cancelled:
		return false
	}
	return false
}

// Approved reports whether a sale of this status was approved and is not over.
func (s Status) Approved() bool {
	switch s {
	case Approved, Scheduled, Preheated, Live, Paused:
		return true
	case Draft, PendingApproval, Rejected, Ended, Cancelled:
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

// Phase is the state of a sale as buyers see it.
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

// Goods is a product of the catalogue.
type Goods struct {
	ID          id.Goods
	Name        string
	Description string
	ImageURL    *string
	ImageAlt    string // alternative text of the picture; "" = none
	ListPrice   money.Amount
	ExternalID  string // id in another system; "" = none
	SKU         string // stock keeping unit; "" = none
	Revision    int64
	CreatedAt   time.Time
}

// Item is a product in a sale.
type Item struct {
	ID       id.Item
	SaleID   id.Sale
	Goods    *Goods
	Position int
	Price    money.Amount
	// PurchaseLimit is the most units of the item per buyer.
	PurchaseLimit int
	Total         int        // stock, when the catalogue was read
	Available     int        // available units at that time; the gate has the live number
	Held          int        // units of unpaid orders at that time
	Sold          int        // units of paid orders at that time
	Revision      int64      // of the stock row, when the catalogue was read
	SoldOutAt     *time.Time // when the gate was first empty; nil = not yet
	DrawSeed      DrawSeed   // of the draw before the opening; nil = an item without one
	ReadAt        time.Time  // when the catalogue read these numbers; zero if they have another source
}

// Sale is a flash sale. It is shared between requests: read-only.
type Sale struct {
	ID                id.Sale
	Slug              string
	Title             string
	Rules             string
	Status            Status
	StartsAt          time.Time
	EndsAt            time.Time
	PreheatAt         time.Time
	PaymentWindow     time.Duration
	PurchaseLimit     int // units per buyer over all items; 0 = no limit
	HideExactStock    bool
	RequiresAddress   bool // orders have the address of their buyer
	Requires          Requirements
	LimitBy           LimitBy
	Access            access.Rules   // who may buy from when after the opening; none = everyone
	Codes             access.Batches // of codes that rules of the kind ByCode let in
	Private           bool           // only buyers whom a rule fits see the sale
	Draw              DrawRules      // zero = the sale is a rush
	Accent            accent.Accent  // zero = that of the installation
	Epoch             int64          // of the gate in Redis; 0 = never loaded
	Revision          int64
	Items             []*Item // by position
	WasPublic         bool    // of a cancelled sale: buyers saw it before
	CreatedBy         *id.User
	Preparers         []id.User // see PreparedBy; only in the catalogue, for sales that may sell
	CreatedAt         time.Time
	ExternalReference string     // id in another system; "" = none
	Notice            string     // why the sale is paused or over, for buyers
	SettledAt         *time.Time // when the last order had ended and the gate was removed from Redis
	Switches          Switches
}

// Public reports whether buyers may see the sale.
func (s *Sale) Public() bool { return s.Status.public() || s.Status == Cancelled && s.WasPublic }

// Requirements are what a sale requires of the accounts of its buyers.
type Requirements struct {
	VerifiedContact bool
	AccountAge      time.Duration // least age at the opening, in whole hours; 0 = any
}

// TooNew reports whether an account is younger than the sale requires. The age counts at
// the opening, so that the answer never changes during a sale.
func (s *Sale) TooNew(created time.Time) bool {
	return s.Requires.AccountAge > 0 && created.After(s.StartsAt.Add(-s.Requires.AccountAge))
}

// Phase returns the phase at now. soldOut means that no item has an available unit.
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

// StatusAt returns the status at now: the scheduler records the opening and the end after
// they have happened.
func (s *Sale) StatusAt(now time.Time) Status {
	switch {
	case (s.Status == Scheduled || s.Status.Loaded()) && !now.Before(s.EndsAt):
		return Ended
	case s.Status == Preheated && !now.Before(s.StartsAt):
		return Live
	}
	return s.Status
}

// NextTransition returns when the clock alone will next change the phase, or close the entries of
// a draw; nil if it will not.
func (s *Sale) NextTransition(now time.Time) *time.Time {
	switch {
	case s.Status == Cancelled, s.Status == Ended, !now.Before(s.EndsAt):
		return nil
	case now.Before(s.StartsAt):
		return &s.StartsAt
	}
	if closes := s.EntriesCloseAt(); now.Before(closes) {
		return &closes
	}
	return &s.EndsAt
}
