// Package waitlist owns the waitlist of a sold-out item: its entries, and the offers
// that are made of released units.
//
// It does not own the units. An offer is a reservation in the gate
// (internal/buy/reservation) under the entry's id, as an order has one under its own;
// redeeming turns it into an order task in one step. The task belongs to
// internal/buy/order.
//
//	WAITING ──► OFFERED ──► REDEEMED
//	 ▲ │           │  └───► EXPIRED       not taken in time, or the sale is over
//	 │ └──► LEFT ◄─┘
//	 │        ▲
//	ENTERED ──┘   in a draw, until it is drawn (drawing.go)
//
// In a draw, the order is that of the numbers which the entries drew. In a rush, first
// come, first served: while buyers wait, the gate keeps released units for the
// waitlist, and offers are made in the order of the entries' ids, several times a
// second, by any process. The row of an entry that ends with reserved units is marked,
// and a loop releases them: to the next buyer, or for sale if no buyer waits. An entry
// that ended before its redemption was written becomes REDEEMED when the buyer repeats
// the call. Every step is idempotent: units are reserved once per entry, and each
// change of a row is a compare-and-set. When the sale is over, its entries end. While
// it is paused, or its gate cannot be reached, no offer expires, and afterwards open
// offers get their whole time again.
package waitlist

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/predicate"
	"seckill/ent/waitlistentry"
	"seckill/internal/buy/draw"
	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/identity/person"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// OfferFor is the default lifetime of an offer.
const OfferFor = time.Minute

// Status is the state of an entry.
type Status string

// Statuses of an entry.
const (
	Entered  Status = "ENTERED" // in a draw, before it is drawn
	Waiting  Status = "WAITING"
	Offered  Status = "OFFERED"  // units are reserved until OfferExpiresAt
	Redeemed Status = "REDEEMED" // became an order task
	Expired  Status = "EXPIRED"  // the offer expired, or the sale is over
	Left     Status = "LEFT"     // the buyer left
)

// IsOpen reports whether the entry may still lead to an order.
func (s Status) IsOpen() bool { return s == Entered || s == Waiting || s == Offered }

// Entry is the entry of one buyer in the waitlist of an item.
type Entry struct {
	ID             id.Waitlist // UUIDv7: of entries with the same Line its order is that of the waitlist
	Sale           id.Sale
	Item           id.Item
	User           id.User
	Quantity       int
	Persons        person.Keys // by which the limits of the sale count the buyer
	Status         Status
	Version        int64      // grows by one with every change
	OfferExpiresAt *time.Time // set from OFFERED on
	Task           *id.Task   // the order task; set from REDEEMED on
	Nonce          string     // of the buyer, in the leaf of a draw; "" = not an entry of a draw
	Line           int64      // number in the draw, from 1 on; 0 = not drawn
	Card           Card
	Skipped        draw.Reason // why it ended without an offer; "" = the buyer left, or it did not
	ReturnDue      bool        // units reserved for it in the gate have to be released
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

func fromRow(row *ent.WaitlistEntry) *Entry {
	return &Entry{
		ID: row.ID, Sale: row.SaleID, Item: row.ItemID, User: row.UserID, Quantity: row.Quantity, Status: Status(row.Status),
		Persons: person.Keys{Contact: keyOf(row.ContactKey), Address: keyOf(row.AddressKey)}.
			WithAccess(postgres.Value(row.AccessKeys)),
		Version: row.Version, OfferExpiresAt: row.OfferExpiresAt, Task: row.OrderID, ReturnDue: row.ReturnDue,
		Nonce: postgres.Value(row.Nonce), Line: row.Line, Card: Card(row.Card), Skipped: draw.Reason(row.Skipped),
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

func keyOf(column *string) person.Key {
	if column == nil {
		return ""
	}
	return person.Key(*column)
}

// columnOf returns the column of a key or nonce.
func columnOf[T ~string](value T) *string {
	if value == "" {
		return nil
	}
	text := string(value)
	return &text
}

// Moment returns the revision of a user's entries as clients see them, so that nothing
// older is shown later: a later entry, or a later version of the same one, has a higher
// one.
func (e *Entry) Moment() int64 {
	sec, nsec := e.ID.UUID().Time().UnixTime()
	return (sec*1000+nsec/1e6)*momentsPerMilli + min(e.Version, momentsPerMilli-1)
}

// momentsPerMilli is the number of versions that Moment distinguishes.
const momentsPerMilli = 1000

// ref identifies the reservation of the entry in the gate. Expired is set for an
// offer that the buyer let expire; the gate counts it as an expiry.
func (e *Entry) ref() reservation.Ref {
	ignored := e.Status == Expired && e.OfferExpiresAt != nil && !e.UpdatedAt.Before(*e.OfferExpiresAt)
	return reservation.Ref{Sale: e.Sale, Item: e.Item, User: e.User, Task: id.Task(e.ID), Expired: ignored}
}

// Publish publishes entries after the commit. It may lose them.
type Publish func(ctx context.Context, entries []*Entry) error

// Config holds the dependencies of a Service.
type Config struct {
	DB       *postgres.DB
	Gate     *reservation.Gate
	Captchas *captcha.Service // nil = every join waives them
	Publish  Publish          // nil = not published
	Notices  *notice.Outbox   // nil = buyers get no notices
	// Registerer registers the metrics; nil = metrics are not exported.
	Registerer prometheus.Registerer
	OfferFor   time.Duration // of a rush; 0 = OfferFor
	Chain      *draw.Chain   // whose random values order draws; nil = draw.Quicknet
	Relays     *draw.Relays  // of Chain; nil = the values have another source
	Operators  bool          // enter the values, without Relays; else they are draw.SourceLocal
	// Sign signs what is published of a draw; nil = it is not signed.
	Sign    func(draw.Commitment) (string, error)
	Timeout time.Duration // of one batch of requests; 0 = DefaultTimeout
	Clock   clock.Clock   // nil = clock.System
	// Shared compares the clocks before an act that cannot be undone; nil = Clock alone.
	Shared *clock.Shared
	Log    *slog.Logger
}

// Service implements the use cases of the waitlist. It is safe for concurrent use, and
// for use by several processes.
type Service struct {
	cfg        Config
	metrics    *metrics
	countAgain time.Time   // of the waiting entries, used by Step alone
	waiting    atomic.Bool // an item had a waitlist in the last Step

	// Batchers of reads and writes that many buyers cause at the same moment: when an
	// item sells out, and when entries change.
	gates gates

	joins *batch.Batcher[JoinInput, joined]
	owns  *batch.Batcher[buyer, []*Entry]
	ranks *batch.Batcher[rank, int]
}

// New returns a service.
func New(cfg Config) *Service {
	cfg.OfferFor = cmp.Or(cfg.OfferFor, OfferFor)
	timeout := cmp.Or(cfg.Timeout, DefaultTimeout)
	if cfg.Chain == nil {
		cfg.Chain = draw.Quicknet()
	}
	cfg.Clock = clock.OrSystem(cfg.Clock)
	if cfg.Shared == nil {
		cfg.Shared = clock.NewShared(cfg.Clock, nil, nil, cfg.Log)
	}
	s := &Service{cfg: cfg, metrics: newMetrics(cfg.Registerer), gates: gates{seen: map[id.Item]service{}}}
	s.joins = batch.New(batch.Config[JoinInput, joined]{
		// one at a time: entries are appended in order
		Process: s.joinAll, MaxBatch: maxTogether, MaxInFlight: 1, MaxWaiting: maxAsking, Timeout: timeout,
	})
	s.owns = batch.New(batch.Config[buyer, []*Entry]{
		Process: s.inAll, MaxBatch: maxTogether, MaxInFlight: 2, MaxWaiting: maxAsking, Timeout: timeout,
	})
	s.ranks = batch.New(batch.Config[rank, int]{
		Process: s.aheadAll, MaxBatch: maxTogether, MaxInFlight: 1, MaxWaiting: maxAsking, Timeout: timeout,
	})
	return s
}

const (
	maxTogether = 256     // requests in one batch
	maxAsking   = 100_000 // queued requests of one kind in one process

	// DefaultTimeout is the timeout of one batch.
	DefaultTimeout = 5 * time.Second
)

func (s *Service) now() time.Time { return s.cfg.Clock.Now().UTC().Truncate(time.Microsecond) }

// publish publishes entries.
func (s *Service) publish(ctx context.Context, entries ...*Entry) {
	if s.cfg.Publish == nil {
		return
	}
	if err := s.cfg.Publish(ctx, entries); err != nil {
		s.cfg.Log.WarnContext(ctx, "publish waitlist entries", slog.Int("entries", len(entries)), slog.Any("error", err))
	}
}

// Leave ends an entry. Leaving again changes nothing.
func (s *Service) Leave(ctx context.Context, entry id.Waitlist, user id.User) (*Entry, error) {
	return s.leave(ctx, entry, user, "")
}

// leave ends an entry for a reason; "" = the buyer's.
func (s *Service) leave(ctx context.Context, entry id.Waitlist, user id.User, why draw.Reason) (*Entry, error) {
	at := []string{"waitlistEntryId"}
	for range maxRaces {
		e, err := s.Entry(ctx, entry)
		switch {
		case err != nil:
			return nil, err
		case e == nil || e.User != user:
			return nil, fault.Refused{Why: fault.Unknown, At: at}
		case e.Status == Left:
			return e, nil
		case !e.Status.IsOpen():
			return e, fault.Refused{Why: fault.Conflict, At: at}
		}
		// Units may be reserved for an entry that is still WAITING.
		moved, err := s.change(ctx, e, Left, func(u *ent.WaitlistEntryUpdate) {
			u.SetReturnDue(e.Status != Entered).SetSkipped(string(why))
		})
		if err != nil {
			return nil, err
		}
		if moved != nil {
			s.metrics.turned("left", 1)
			return moved, nil
		}
	}
	return nil, fault.New(fault.Unavailable, "The waitlist is being changed. Please try again.")
}

// maxRaces bounds the retries of a use case after a lost compare-and-set.
const maxRaces = 5

// transitions holds, for each status, those from which an entry may change to it. An offer may
// be renewed. An entry whose redemption was not recorded in time is recorded later.
var transitions = map[Status][]waitlistentry.Status{
	Waiting: {waitlistentry.StatusENTERED, waitlistentry.StatusOFFERED},
	Offered: {waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED},
	Redeemed: {
		waitlistentry.StatusWAITING, waitlistentry.StatusOFFERED, waitlistentry.StatusEXPIRED, waitlistentry.StatusLEFT,
	},
	Expired: openStatuses,
	Left:    openStatuses,
}

// transition returns the update that changes the status of entries, of those whose status allows
// it. Nothing else changes a status, but for writeLines.
func transition(tx *ent.Tx, to Status, at time.Time, which ...predicate.WaitlistEntry) *ent.WaitlistEntryUpdate {
	return tx.WaitlistEntry.Update().Where(waitlistentry.StatusIn(transitions[to]...)).Where(which...).
		SetStatus(waitlistentry.Status(to)).AddVersion(1).SetUpdatedAt(at)
}

// unchanged matches an entry that no process has changed since it was read.
func (e *Entry) unchanged() predicate.WaitlistEntry {
	return waitlistentry.And(waitlistentry.ID(e.ID), waitlistentry.Version(e.Version))
}

// change changes the status of an entry, and publishes it. It returns nil if another change came
// first.
func (s *Service) change(ctx context.Context, e *Entry, to Status, set func(*ent.WaitlistEntryUpdate)) (*Entry, error) {
	changed := 0
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		u := transition(tx, to, s.now(), e.unchanged())
		set(u)
		var err error
		if changed, err = u.Save(ctx); err != nil || changed == 0 || !e.counts() {
			return err
		}
		return uncountEntries(ctx, tx, e.Item, 1)
	})
	if err != nil {
		return nil, fmt.Errorf("change waitlist entry %s: %w", e.ID, err)
	}
	if changed == 0 {
		return nil, nil // another process was faster
	}
	moved, err := s.Entry(ctx, e.ID)
	if moved != nil {
		s.publish(ctx, moved)
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
