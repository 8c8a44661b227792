package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// EnterInput is a request for a ticket of the waiting room.
type EnterInput struct {
	Sale    id.Sale
	Item    id.Item
	User    id.User
	From    netip.Addr     // address of the request
	Session id.Session     // its sign-out removes the ticket; Nil = none
	Captcha captcha.Answer // to a challenge for this sale; zero = none was sent
	Waived  bool           // the sale requires no captcha now
	Opens   time.Time      // by the catalogue; for the refusal while the gate is not loaded
	Seed    sale.DrawSeed  // of the draw of the item; nil = the number is random
	Nonce   string         // of the client, from which its number is computed; "" = the id of the ticket
}

// Enter returns a new ticket, or the user's present one without a captcha. Refusals, in
// the order of the checks: sale.NotOpen (the gate is not loaded, paused or ended),
// reservation.AlreadyOrdered, reservation.LimitReached (of the sale), captcha.Required or captcha.Invalid, reservation.NoneLeft.
// An answer is used up only by a new ticket.
func (s *Service) Enter(ctx context.Context, in EnterInput) (*Ticket, error) {
	var err error
	if in.Captcha, err = s.cfg.Captchas.Exchange(ctx, in.scope(), in.Captcha); err != nil {
		return nil, err
	}
	ticket := id.NewIn[id.Ticket](id.ShardOf(in.Sale)) // in the form of a task id: the shard is found from it
	place := in.draw(ticket)
	r, err := s.enter(ctx, in, ticket, place)
	if lost(ctx, err) {
		r, err = s.enter(ctx, in, ticket, place) // returns the ticket of the first run
	}
	if err != nil {
		return nil, unavailable("enter", err)
	}
	if r.outcome != "placed" {
		return nil, s.refusal(ctx, in, r)
	}
	if ticket, err = id.ParseUUID[id.Ticket](r.detail); err != nil {
		return nil, fmt.Errorf("enter: ticket: %w", err)
	}
	t, err := s.look(ctx, Ticket{ID: ticket, Sale: in.Sale, Item: in.Item, User: in.User}, false)
	return t, err
}

// drawn is the number of a ticket in the draw.
type drawn struct {
	number uint64
	nonce  string // from which it was computed; "" = it is random
}

// draw returns the number of a ticket.
func (in EnterInput) draw(ticket id.Ticket) drawn {
	if len(in.Seed) == 0 {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails
		return drawn{number: binary.BigEndian.Uint64(raw[:])>>(64-sale.DrawBits) + 1}
	}
	nonce := cmp.Or(in.Nonce, ticket.Public())
	return drawn{in.Seed.Number(nonce), nonce}
}

// lost reports whether the script may have run although no reply arrived.
func lost(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	_, answered := errors.AsType[redis.Error](err)
	return !answered
}

// entered is the reply of lua/enter.lua.
type entered struct {
	outcome string
	now     time.Time
	opens   time.Time // zero = the gate has none
	detail  string
}

func (in EnterInput) session() string {
	if in.Session.IsZero() {
		return ""
	}
	return in.Session.String()
}

// recordLife is the TTL of a record of captchas: it outlives the path token that it names.
func (s *Service) recordLife() time.Duration { return max(s.cfg.Captchas.RecordLife(), s.cfg.Life) }

func (in EnterInput) scope() captcha.Scope {
	return captcha.Scope{Purpose: captcha.Seckill, Sale: in.Sale, User: in.User, From: in.From}
}

func (s *Service) enter(ctx context.Context, in EnterInput, ticket id.Ticket, place drawn) (entered, error) {
	shard, scope, k := id.ShardOf(in.Sale), in.scope(), s.cfg.Keys
	claim := s.cfg.Captchas.Claim(scope, in.Captcha)
	values, err := enterScript.Run(ctx, s.cfg.Client, []string{
		k.Item(shard, in.Item), k.Reservations(shard, in.Item), k.Path(shard, in.Item, in.User), k.Captcha(shard, in.Sale, in.User),
		k.WaitingRoom(shard, in.Item), k.WaitingRoomTickets(shard, in.Item), k.WaitingRoomBeats(shard, in.Item),
		k.WaitingRoomStats(shard, in.Item), k.WaitingRooms(shard), k.Ticket(shard, ticket),
		k.Expiries(shard, in.Sale, in.User), k.SessionTickets(shard, in.Session), k.Permits(shard, in.Item), k.Units(shard, in.Sale),
		k.Admissions(shard, in.Item),
	}, in.User.String(), ticket.String(), place.number, claim.Text(), s.recordLife().Milliseconds(), !in.Waived, k.TicketPrefix(shard),
		in.Sale.String(), in.Item.String(), recordLife.Milliseconds(), reservation.MaxExpired, in.session(),
		reservation.ExpiredWait.Milliseconds(), k.ExpiriesPrefix(shard, in.Sale), place.nonce).StringSlice()
	if err != nil {
		return entered{}, err
	}
	if len(values) != 4 {
		return entered{}, fmt.Errorf("enter replied %d values", len(values))
	}
	now, err1 := millis(values[1])
	opens, err2 := millis(values[2])
	if opens.UnixMilli() == 0 {
		opens = time.Time{}
	}
	return entered{outcome: values[0], now: now, opens: opens, detail: values[3]}, errors.Join(err1, err2)
}

// refusal maps an outcome other than placed to a refusal.
func (s *Service) refusal(ctx context.Context, in EnterInput, r entered) error {
	switch r.outcome {
	case "not_loaded":
		phase := sale.PhasePaused
		if r.now.Before(in.Opens) {
			phase = sale.PhaseUpcoming
		}
		return sale.NewNotOpen(phase, in.Opens, r.now)
	case "paused":
		return sale.NewNotOpen(sale.PhasePaused, r.opens, r.now)
	case "ended":
		return sale.NewNotOpen(sale.PhaseEnded, r.opens, r.now)
	case "holding":
		task, err := id.ParseUUID[id.Task](r.detail)
		if err != nil {
			return fmt.Errorf("enter: reservation in %s: %w", in.Item, err)
		}
		return reservation.AlreadyOrdered{Task: task, At: []string{"itemId"}}
	case "limit":
		return reservation.SaleLimitReached(r.detail)
	case "expiries":
		wait, err := strconv.ParseInt(r.detail, 10, 64)
		if err != nil {
			return fmt.Errorf("enter: wait of %s: %w", in.User, err)
		}
		return fault.Throttled{RetryAfter: time.Duration(wait) * time.Millisecond, Cause: fault.ExpiredReservations}
	case "captcha":
		return s.cfg.Captchas.Refuse(ctx, captcha.WrongAnswer{
			Scope: in.scope(), Answer: in.Captcha, Verdict: captcha.Verdict(r.detail), Kind: s.cfg.Captchas.Claim(in.scope(), in.Captcha).Kind,
		})
	case "sold_out":
		return reservation.NoneLeft{Item: in.Item}
	}
	return fmt.Errorf("enter: unexpected outcome %q", r.outcome)
}
