// Package queue is the waiting room: if no permit of an item is free, or a sale limits
// its inflow, a buyer gets a ticket instead of a refusal.
//
//	            enter              first in order, a permit is free
//	buyer  ─────────────► WAITING ───────────────────────────────────► ADMITTED (has a path token)
//	                         │ leaves, signs out, or no heartbeat for 30 s │ leaves, signs out
//	                         ├────────────────────────────────────► LEFT ◄─┘
//	                         │ the sale is over, or all units are paid   │ the sale is over, and
//	                         │                                           ▼ nothing was bought
//	                         └────────────────────────────────────► CLOSED
//
// An admission whose path token expires unused stays ADMITTED, without a path token and
// with PATH_INVALID as its reason, until the sale is over. It is reported once, as are
// the tickets that are closed before admission (Unserved).
//
// Buyers who enter after the opening are served in order of arrival. Buyers who entered
// before it are drawn: each gets a number, and they are served in the order of these
// numbers, the highest first, before all later buyers. The draw is fair: a number is the
// HMAC of a nonce that the client chose, with a secret seed to which the item committed
// (sale.DrawSeed), so the numbers are independent and uniform, and every order is equally
// likely, whatever the time of arrival or the speed of the connection; leaving does not
// change the chances of others. The number is secret, and no position is reported before
// the opening, so that leaving and entering again gains nothing.
//
// A buyer may wait for several items of a sale, and has one unused path token in it at
// a time. A buyer who is next while a path token for another item is unused keeps the
// ticket and is skipped until that token is used, voided or expired.
//
// All state is in Redis, under keys of the sale's shard, and survives every process.
// The package owns tickets, their order and the loop that admits. The path token of an
// admitted buyer belongs to package path and is used up by package reservation; its
// script includes the verification of captchas.
package queue

import (
	"context"
	"embed"
	"encoding"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

const (
	// HeartbeatTimeout is how long a ticket is kept without a heartbeat.
	HeartbeatTimeout = 30 * time.Second
	// recordLife is the TTL of tickets and rooms after the last entry.
	recordLife = 48 * time.Hour
)

// Status is the state of a ticket; see the package diagram.
type Status string

// Statuses.
const (
	Waiting  Status = "WAITING"
	Admitted Status = "ADMITTED"
	Closed   Status = "CLOSED"
	Left     Status = "LEFT"
)

// Ticket is a buyer's place in the waiting room of an item.
type Ticket struct {
	ID     id.Ticket // carries the shard, like the id of a task
	Sale   id.Sale
	Item   id.Item
	User   id.User
	Status Status
	Nonce  string // from which its number in the draw was computed; "" = it was not drawn by a seed
	// LEFT: why the buyer may no longer buy; PathInvalid: the admission expired unused; "" = not noted
	Ended    fault.Reason
	Position *Position  // nil before the draw, and when the ticket no longer waits
	Path     *path.Path // the path token, while it is unused; ADMITTED only
	At       time.Time  // Redis time of the read
}

// Position is the position of a ticket. Ahead never grows.
type Position struct {
	Ahead  int
	Wait   *time.Duration // estimate; nil = no recent admissions, or no chance
	Span   *Span          // around Wait; nil with it
	Chance *int           // probability in percent that a unit is left; nil = unknown
}

// Unserved is a buyer whose ticket brought nothing: it was closed before admission, or the
// admission expired unused.
type Unserved struct {
	Sale  id.Sale
	Item  id.Item
	User  id.User
	Why   fault.Reason // SoldOut, SaleClosed, or PathInvalid for an admission
	Ahead *int         // the last position that the buyer saw before the ticket was closed; nil = none
}

// Rules are the present rules of a sale for its waiting rooms.
type Rules struct {
	PerMille int  // unused path tokens at a time per thousand units left; 0 = no limit
	Inflow   int  // buyers admitted per second; 0 = no limit
	Over     bool // no unit will be sold again: all tickets are closed
}

// Config holds the dependencies and settings of a Service.
type Config struct {
	Client           redis.UniversalClient // without retries
	Keys             reservation.Keys
	Captchas         *captcha.Service
	Tokens           path.Tokens
	Life             time.Duration // lifetime of a path token; 0 = path.DefaultLife
	HeartbeatTimeout time.Duration // 0 = HeartbeatTimeout
	Sales            Sales
	Counts           Counts             // nil = nothing is counted
	Notices          *notice.Admissions // nil = admitted buyers get no notice
}

// Sales is what waiting rooms follow of the sales.
type Sales interface {
	// Queue returns the rules of a sale's waiting rooms.
	Queue(ctx context.Context, sale id.Sale) (Rules, error)
	// Gone reports whether a sold-out item will have no unit again: all are paid. It is
	// called once per pass while buyers wait for such an item.
	Gone(ctx context.Context, item id.Item) (bool, error)
}

// Counts counts the buyers that waiting rooms admitted, and those that they could not serve.
type Counts interface {
	// Admitted counts n admitted buyers of a sale.
	Admitted(sale id.Sale, n int)
	// Unserved keeps a buyer whose ticket brought nothing, once for each ticket.
	Unserved(u Unserved)
}

// nothing is Counts of a service without any.
type nothing struct{}

func (nothing) Admitted(id.Sale, int) {}
func (nothing) Unserved(Unserved)     {}

// Service manages the waiting rooms. It is safe for concurrent use.
type Service struct {
	cfg     Config
	rooms   atomic.Int64 // in the last Step
	open    openRooms
	entries [id.Shards]*batch.Batcher[*entry, entered]
}

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Life == 0 {
		cfg.Life = path.DefaultLife
	}
	if cfg.Counts == nil {
		cfg.Counts = nothing{}
	}
	if cfg.HeartbeatTimeout == 0 {
		cfg.HeartbeatTimeout = HeartbeatTimeout
	}
	s := &Service{cfg: cfg}
	for shard := range s.entries {
		s.entries[shard] = batch.New(batch.Config[*entry, entered]{
			Process: s.enterAll, MaxBatch: maxEntries, MaxInFlight: 1, MaxWaiting: maxEntriesWaiting,
			Timeout: reservation.DefaultTimeout,
		})
	}
	return s
}

//go:embed lua/*.lua
var sources embed.FS

func source(name string) string {
	text, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // embedded above
	}
	return string(text)
}

func script(name, before string) *redis.Script { return redis.NewScript(before + source(name)) }

var (
	enterScript = script("enter", reservation.GateLua+captcha.AnswerLua+path.BuyersLua+source("outlook"))
	admitScript = script("admit", reservation.GateLua+captcha.AnswerLua+path.BuyersLua)
	lookScript  = script("look", reservation.GateLua+source("outlook"))
	leaveScript = script("leave", "")
)

// Own reads a user's ticket and writes its heartbeat, for clients that poll. It returns
// nil if the user has no such ticket.
func (s *Service) Own(ctx context.Context, ticketID id.Ticket, user id.User) (*Ticket, error) {
	t, err := s.find(ctx, ticketID)
	if t == nil || err != nil || t.User != user {
		return nil, err
	}
	return s.look(ctx, *t, true)
}

// Of returns the waiting ticket of a user in a sale, or nil. While no buyer waits for an
// item it reads nothing but, at most once a second, the list of the rooms.
func (s *Service) Of(ctx context.Context, saleID id.Sale, items []id.Item, user id.User) (*Ticket, error) {
	shard := id.ShardOf(saleID)
	rooms, err := s.openRooms(ctx, shard)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if !rooms[saleID.String()+"|"+item.String()] {
			continue
		}
		text, err := s.cfg.Client.HGet(ctx, s.cfg.Keys.WaitingRoomTickets(shard, item), user.String()).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, unavailable("find ticket", err)
		}
		ticketID, err := id.ParseUUID[id.Ticket](text)
		if err != nil {
			return nil, fmt.Errorf("ticket %q of %s: %w", text, user, err)
		}
		t, err := s.look(ctx, Ticket{ID: ticketID, Sale: saleID, Item: item, User: user}, false)
		if err != nil || (t != nil && t.Status == Waiting) {
			return t, err
		}
	}
	return nil, nil
}

// roomsFor is how long a list of rooms is used.
const roomsFor = time.Second

// openRooms holds the rooms of each shard in which buyers wait, as last read.
type openRooms struct {
	mu    sync.Mutex
	rooms [id.Shards]map[string]bool // guarded by mu; "sale|item"
	until [id.Shards]time.Time       // guarded by mu
}

// openRooms returns the rooms of a shard in which buyers wait, at most roomsFor old.
func (s *Service) openRooms(ctx context.Context, shard int) (map[string]bool, error) {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	now := time.Now()
	if now.Before(s.open.until[shard]) {
		return s.open.rooms[shard], nil
	}
	names, err := s.cfg.Client.SMembers(ctx, s.cfg.Keys.WaitingRooms(shard)).Result()
	if err != nil {
		return nil, unavailable("list rooms", err)
	}
	rooms := collect.Set(names)
	s.open.rooms[shard], s.open.until[shard] = rooms, now.Add(roomsFor)
	return rooms, nil
}

// Leave ends a ticket. It returns nil if the user has no such ticket.
func (s *Service) Leave(ctx context.Context, ticketID id.Ticket, user id.User) (*Ticket, error) {
	t, err := s.find(ctx, ticketID)
	if t == nil || err != nil || t.User != user {
		return nil, err
	}
	shard := id.ShardOf(t.Sale)
	keys := []string{
		s.cfg.Keys.WaitingRoom(shard, t.Item), s.cfg.Keys.WaitingRoomTickets(shard, t.Item),
		s.cfg.Keys.WaitingRoomBeats(shard, t.Item),
		s.cfg.Keys.Permits(shard, t.Item), s.cfg.Keys.Ticket(shard, t.ID), s.cfg.Keys.Admissions(shard, t.Item),
	}
	if err := leaveScript.Run(ctx, s.cfg.Client, keys, t.ID.String(), user.String()).Err(); err != nil {
		return nil, unavailable("leave", err)
	}
	return s.look(ctx, *t, false)
}

// find reads the immutable fields of a ticket; nil if there is none.
func (s *Service) find(ctx context.Context, ticketID id.Ticket) (*Ticket, error) {
	shard, err := id.TaskShard(ticketID)
	if err != nil {
		return nil, nil // no ticket has such an id
	}
	values, err := s.cfg.Client.HMGet(ctx, s.cfg.Keys.Ticket(shard, ticketID), "sale", "item", "user").Result()
	if err != nil {
		return nil, unavailable("read ticket", err)
	}
	t := Ticket{ID: ticketID}
	for i, into := range []encoding.TextUnmarshaler{&t.Sale, &t.Item, &t.User} {
		text, ok := values[i].(string)
		if !ok {
			return nil, nil
		}
		if err := into.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("ticket %s: %w", ticketID, err)
		}
	}
	return &t, nil
}

// look reads the state of a ticket; beat also writes the heartbeat. nil = the ticket is
// gone.
func (s *Service) look(ctx context.Context, t Ticket, beat bool) (*Ticket, error) {
	rules, err := s.cfg.Sales.Queue(ctx, t.Sale)
	if err != nil {
		return nil, err
	}
	shard := id.ShardOf(t.Sale)
	keys := []string{
		s.cfg.Keys.Item(shard, t.Item), s.cfg.Keys.WaitingRoom(shard, t.Item), s.cfg.Keys.WaitingRoomBeats(shard, t.Item),
		s.cfg.Keys.WaitingRoomStats(shard, t.Item), s.cfg.Keys.Permits(shard, t.Item), s.cfg.Keys.Ticket(shard, t.ID),
		s.cfg.Keys.Reservations(shard, t.Item),
	}
	reply, err := lookScript.Run(ctx, s.cfg.Client, keys, t.ID.String(), beat, rules.Inflow, rules.Over).Slice()
	if err != nil {
		return nil, unavailable("read place", err)
	}
	return t.seen(reply, s.cfg.Tokens)
}

func unavailable(what string, err error) error {
	return fault.Wrap(fault.Unavailable, "The waiting room does not answer. Please try again shortly.",
		fmt.Errorf("waiting room: %s: %w", what, err))
}
