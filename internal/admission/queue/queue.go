// Package queue is the waiting room: past the permits of an item, or while a sale
// limits its inflow, a person gets a place instead of a refusal.
//
//	            enter              head of the line, a permit is free
//	person ─────────────► WAITING ───────────────────────────────────► ADMITTED (has a path)
//	                         │ leaves, signs out, or is silent for 30 s    │ leaves, signs out
//	                         ├────────────────────────────────────► LEFT ◄─┘
//	                         │ the sale is over, or every unit is paid for
//	                         └────────────────────────────────────► CLOSED
//
// Who comes after the opening is served in order. Who came before is drawn: each
// gets a number from crypto/rand when entering and the early stand in the order
// of their numbers, before everybody who comes later. This is fair: the numbers are
// independent and uniform, so every order of the early is equally likely, whoever
// came first, had the faster line or knew more; leaving changes nobody else's
// odds. The number is told to nobody, and no position before the opening, so that
// nobody can leave and enter again until the draw is good.
//
// A person may wait for several items of a sale, and has one unused path in it at
// a time. Whose turn comes while a path to another item is unused keeps the place
// and is passed over until it is used, given up or lapses: no turn costs another.
//
// All state lies in Redis, under keys of the sale's shard, and outlives every
// process. The package owns places, their order and the loop that admits. It does
// not own what an admitted person does: the path it gives is that of package path,
// used up by package reservation; nor captchas, whose rule its script embeds.
package queue

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/admission/captcha"
	"seckill/internal/admission/path"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/reservation"
)

const (
	// Patience is how long a place is kept for somebody who is not heard of.
	Patience = 30 * time.Second
	// recordLife is how long tickets and rooms are kept after the last entry.
	recordLife = 48 * time.Hour
	// drawBits is the range of the draw: what a score, a float64, holds exactly.
	drawBits = 52
)

// Status is how a place stands; see the package's picture.
type Status string

// Statuses.
const (
	Waiting  Status = "WAITING"
	Admitted Status = "ADMITTED"
	Closed   Status = "CLOSED"
	Left     Status = "LEFT"
)

// Ticket is a place in the waiting room of an item.
type Ticket struct {
	ID       uuid.UUID // carries the shard, as a task's does
	Sale     uuid.UUID
	Item     uuid.UUID
	User     uuid.UUID
	Status   Status
	Position *Position  // nil before the draw, and when no longer waiting
	Path     *path.Path // the right to try, while it can be used; ADMITTED only
	At       time.Time  // Redis time of what it says
}

// Position is where a place stands. Ahead never grows.
type Position struct {
	Ahead  int
	Wait   *time.Duration // about how long; nil = nobody was admitted lately
	Chance *int           // percent that a unit is left; nil = not known
}

// Rules are the rules of a sale that the room follows, as they are now.
type Rules struct {
	PerMille int  // unused paths at a time per thousand units left; 0 = any number
	Inflow   int  // people admitted each second; 0 = any number
	Over     bool // nothing will ever be sold again: everybody is told
}

// Config is what a Service needs.
type Config struct {
	Client   redis.UniversalClient // without retries
	Keys     reservation.Keys
	Captchas *captcha.Service
	Life     time.Duration // of a path; 0 = path.DefaultLife
	Patience time.Duration // 0 = Patience
	// Rules returns the rules of an item of a sale.
	Rules func(ctx context.Context, sale, item uuid.UUID) (Rules, error)
	// Admitted is told how many people of a sale were given a path; nil = nobody
	// counts.
	Admitted func(sale uuid.UUID, n int)
	// Gone tells whether an item of which no unit is left will have none again: all
	// are paid for. It is asked once a pass while people wait for such an item; nil
	// = there is always hope.
	Gone func(ctx context.Context, item uuid.UUID) (bool, error)
}

// Service keeps the waiting rooms. It is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Life == 0 {
		cfg.Life = path.DefaultLife
	}
	if cfg.Admitted == nil {
		cfg.Admitted = func(uuid.UUID, int) {}
	}
	if cfg.Patience == 0 {
		cfg.Patience = Patience
	}
	return &Service{cfg: cfg}
}

//go:embed lua/*.lua
var sources embed.FS

func script(name, before string) *redis.Script {
	text, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // embedded above
	}
	return redis.NewScript(before + string(text))
}

var (
	enterScript = script("enter", reservation.GateLua+captcha.AnswerLua)
	admitScript = script("admit", reservation.GateLua)
	lookScript  = script("look", reservation.GateLua)
	leaveScript = script("leave", "")
)

// Own reads a person's place, and keeps it: who cannot be pushed to asks again and
// again instead. nil = the person has no such place.
func (s *Service) Own(ctx context.Context, ticketID, user uuid.UUID) (*Ticket, error) {
	t, err := s.find(ctx, ticketID)
	if t == nil || err != nil || t.User != user {
		return nil, err
	}
	return s.look(ctx, *t, true)
}

// Leave gives a place up. It returns nil when the person has no such place.
func (s *Service) Leave(ctx context.Context, ticketID, user uuid.UUID) (*Ticket, error) {
	t, err := s.find(ctx, ticketID)
	if t == nil || err != nil || t.User != user {
		return nil, err
	}
	shard := id.ShardOf(t.Sale)
	keys := []string{
		s.cfg.Keys.WaitingRoom(shard, t.Item), s.cfg.Keys.WaitingRoomTickets(shard, t.Item), s.cfg.Keys.WaitingRoomBeats(shard, t.Item),
		s.cfg.Keys.Permits(shard, t.Item), s.cfg.Keys.Ticket(shard, t.ID),
	}
	if err := leaveScript.Run(ctx, s.cfg.Client, keys, t.ID.String(), user.String()).Err(); err != nil {
		return nil, unavailable("leave", err)
	}
	return s.look(ctx, *t, false)
}

// find reads what of a ticket never changes; nil when there is none.
func (s *Service) find(ctx context.Context, ticketID uuid.UUID) (*Ticket, error) {
	shard, err := id.TaskShard(ticketID)
	if err != nil {
		return nil, nil //nolint:nilerr // no ticket has such an id
	}
	values, err := s.cfg.Client.HMGet(ctx, s.cfg.Keys.Ticket(shard, ticketID), "sale", "item", "user").Result()
	if err != nil {
		return nil, unavailable("read ticket", err)
	}
	t := Ticket{ID: ticketID}
	for i, into := range []*uuid.UUID{&t.Sale, &t.Item, &t.User} {
		text, ok := values[i].(string)
		if !ok {
			return nil, nil
		}
		if *into, err = uuid.Parse(text); err != nil {
			return nil, fmt.Errorf("ticket %s: %w", ticketID, err)
		}
	}
	return &t, nil
}

// look reads how a place stands now; beat also keeps it. nil = it is gone.
func (s *Service) look(ctx context.Context, t Ticket, beat bool) (*Ticket, error) {
	rules, err := s.cfg.Rules(ctx, t.Sale, t.Item)
	if err != nil {
		return nil, err
	}
	shard := id.ShardOf(t.Sale)
	keys := []string{
		s.cfg.Keys.Item(shard, t.Item), s.cfg.Keys.WaitingRoom(shard, t.Item), s.cfg.Keys.WaitingRoomBeats(shard, t.Item),
		s.cfg.Keys.WaitingRoomStats(shard, t.Item), s.cfg.Keys.Permits(shard, t.Item), s.cfg.Keys.Ticket(shard, t.ID),
	}
	reply, err := lookScript.Run(ctx, s.cfg.Client, keys, t.ID.String(), beat, rules.Inflow).Slice()
	if err != nil {
		return nil, unavailable("read place", err)
	}
	return t.seen(reply)
}

func unavailable(what string, err error) error {
	return fault.Wrap(fault.Unavailable, "the waiting room does not answer; try again shortly", fmt.Errorf("waiting room: %s: %w", what, err))
}
