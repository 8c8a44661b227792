// Package waitlist owns the line for an item that is sold out for now: places in
// it, and the offers that are made of units that come back.
//
// It does not own the units. An offer holds them in the gate (internal/reservation)
// under the place's id, as an order would under its own; redeeming turns that hold
// into an order task in one step. What comes of the task is internal/order's.
//
//	WAITING ──► OFFERED ──► REDEEMED
//	   │           │  └───► EXPIRED       not taken in time, or the sale is over
//	   └──► LEFT ◄─┘
//
// First come, first served: while somebody waits, the gate keeps units that come
// back for the line, and offers go out in the order of the places' ids, several
// times a second, by any process. A place that ends with units held says so in its
// row, and a loop gives them back: to the next in line, or to the open sale when
// nobody waits any more. A place that ended before its redeeming was written is
// REDEEMED as soon as the buyer repeats. Every step may be done twice: units are
// held once per place, and each change of a row is a compare-and-set. When the sale
// is over, so are its places. While it is held no offer lapses, and when it goes on
// those that are out have their whole time again.
package waitlist

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/waitlistentry"
	"seckill/internal/batch"
	"seckill/internal/clock"
	"seckill/internal/fault"
	"seckill/internal/order"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
)

// OfferFor is how long an offer is held unless configured otherwise.
const OfferFor = time.Minute

// Status is how a place stands.
type Status string

// States of a place.
const (
	Waiting  Status = "WAITING"
	Offered  Status = "OFFERED"  // units are held until OfferExpiresAt
	Redeemed Status = "REDEEMED" // became an order task
	Expired  Status = "EXPIRED"  // the offer lapsed, or the sale is over
	Left     Status = "LEFT"     // left by the person
)

// IsOpen tells whether something may still come of the place.
func (s Status) IsOpen() bool { return s == Waiting || s == Offered }

// Entry is a place in line.
type Entry struct {
	ID             uuid.UUID // UUIDv7: its order is the line's
	Sale           uuid.UUID
	Item           uuid.UUID
	User           uuid.UUID
	Quantity       int
	Status         Status
	Version        int64      // grows by one with every change
	OfferExpiresAt *time.Time // once OFFERED
	Task           *uuid.UUID // the order task, once REDEEMED
	ReturnDue      bool       // units that are held for it in the gate go back
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

func fromRow(row *ent.WaitlistEntry) *Entry {
	return &Entry{
		ID: row.ID, Sale: row.SaleID, Item: row.ItemID, User: row.UserID, Quantity: row.Quantity, Status: Status(row.Status),
		Version: row.Version, OfferExpiresAt: row.OfferExpiresAt, Task: row.OrderID, ReturnDue: row.ReturnDue,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

// Moment numbers what one person sees of places in line, so that nothing older is
// shown after it: a later place, or a later version of the same, has a higher one.
func (e *Entry) Moment() int64 {
	sec, nsec := e.ID.Time().UnixTime()
	return (sec*1000+nsec/1e6)*momentsPerMilli + min(e.Version, momentsPerMilli-1)
}

// momentsPerMilli is how many versions of a place are told apart.
const momentsPerMilli = 1000

// hold names the units that are held for the place in the gate.
func (e *Entry) ref() reservation.Ref {
	return reservation.Ref{Sale: e.Sale, Item: e.Item, User: e.User, Task: e.ID}
}

// Announce tells the world how places stand, after the commit. It may lose what
// it was given.
type Announce func(ctx context.Context, entries []*Entry) error

// Config is what a Service is made of.
type Config struct {
	DB       *postgres.DB
	Gate     *reservation.Gate
	Announce Announce // nil = tell nobody
	// Registerer gets the metrics; nil = they are shown nowhere.
	Registerer prometheus.Registerer
	OfferFor   time.Duration // 0 = OfferFor
	Clock      clock.Clock   // nil = clock.System
	Log        *slog.Logger
}

// Service is the use cases of the waitlist. It is safe for concurrent use, on any
// number of processes.
type Service struct {
	db       *postgres.DB
	gate     *reservation.Gate
	announce Announce
	metrics  *metrics
	offerFor time.Duration
	clock    clock.Clock
	log      *slog.Logger

	// What a whole crowd asks at once: when an item is sold out, and when a place moves.
	joins *batch.Batcher[JoinInput, joined]
	owns  *batch.Batcher[person, *Entry]
	ranks *batch.Batcher[rank, int]
}

// New returns a service.
func New(cfg Config) *Service {
	s := &Service{
		db: cfg.DB, gate: cfg.Gate, announce: cfg.Announce, metrics: newMetrics(cfg.Registerer),
		offerFor: cfg.OfferFor, clock: cfg.Clock, log: cfg.Log,
	}
	if s.offerFor == 0 {
		s.offerFor = OfferFor
	}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	s.joins = batch.New(batch.Config[JoinInput, joined]{
		Process: s.joinAll, MaxBatch: maxTogether, MaxInFlight: 1, MaxWaiting: maxAsking, Timeout: tripTimeout, // one at a time: the line has one end
	})
	s.owns = batch.New(batch.Config[person, *Entry]{
		Process: s.inAll, MaxBatch: maxTogether, MaxInFlight: 2, MaxWaiting: maxAsking, Timeout: tripTimeout,
	})
	s.ranks = batch.New(batch.Config[rank, int]{
		Process: s.aheadAll, MaxBatch: maxTogether, MaxInFlight: 1, MaxWaiting: maxAsking, Timeout: tripTimeout,
	})
	return s
}

const (
	maxTogether = 256             // questions of one trip to Postgres
	maxAsking   = 100_000         // questions of one kind that wait in one process
	tripTimeout = 5 * time.Second // of one trip
)

func (s *Service) now() time.Time { return s.clock.Now().UTC().Truncate(time.Microsecond) }

// tell announces places.
func (s *Service) tell(ctx context.Context, entries ...*Entry) {
	if s.announce == nil {
		return
	}
	if err := s.announce(ctx, entries); err != nil {
		s.log.WarnContext(ctx, "announce places in line", slog.Int("places", len(entries)), slog.Any("error", err))
	}
}

// Leave gives a place up. Leaving again changes nothing.
func (s *Service) Leave(ctx context.Context, entry, user uuid.UUID) (*Entry, fault.Refusal, error) {
	at := []string{"input", "waitlistEntryId"}
	for range maxRaces {
		e, err := s.Entry(ctx, entry)
		switch {
		case err != nil:
			return nil, nil, err
		case e == nil || e.User != user:
			return nil, fault.Refused{Why: fault.Unknown, At: at}, nil
		case e.Status == Left:
			return e, nil, nil
		case !e.Status.IsOpen():
			return e, fault.Refused{Why: fault.Conflict, At: at}, nil
		}
		// Units may be held for a place that still says WAITING.
		moved, err := s.change(ctx, e, func(u *ent.WaitlistEntryUpdate) {
			u.SetStatus(waitlistentry.StatusLEFT).SetReturnDue(true)
		})
		if err != nil {
			return nil, nil, err
		}
		if moved != nil {
			s.metrics.turned("left", 1)
			return moved, nil, nil
		}
	}
	return nil, nil, fault.New(fault.Unavailable, "the place is being changed; try again")
}

// maxRaces bounds how often a use case starts again.
const maxRaces = 5

// change is the one way a place is written after it was made: guarded by its
// version. It returns nil when somebody else was faster.
func (s *Service) change(ctx context.Context, e *Entry, set func(*ent.WaitlistEntryUpdate)) (*Entry, error) {
	changed := 0
	err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		u := tx.WaitlistEntry.Update().Where(waitlistentry.ID(e.ID), waitlistentry.Version(e.Version)).
			AddVersion(1).SetUpdatedAt(s.now())
		set(u)
		var err error
		changed, err = u.Save(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change place %s: %w", e.ID, err)
	}
	if changed == 0 {
		return nil, nil //nolint:nilnil // somebody else was faster
	}
	moved, err := s.Entry(ctx, e.ID)
	if moved != nil {
		s.tell(ctx, moved)
	}
	return moved, err
}

func liveStatuses() []entorder.Status {
	var live []entorder.Status
	for _, status := range order.Live() {
		live = append(live, entorder.Status(status))
	}
	return live
}
