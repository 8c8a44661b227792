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
	"strings"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// EnterInput is a request for a ticket of the waiting room.
type EnterInput struct {
	Sale    id.Sale
	Item    id.Item
	User    id.User
	Persons person.Keys    // by which the limits of the sale count the user
	From    netip.Addr     // address of the request
	Session id.Session     // its sign-out removes the ticket; Nil = none
	Captcha captcha.Answer // to a challenge for this sale; zero = none was sent
	Waived  bool           // the sale requires no captcha now
	Opens   time.Time      // by the catalogue; for the refusal while the gate is not loaded
	Seed    sale.DrawSeed  // of the draw of the item; nil = the number is random
	Unasked bool           // path.Service.Issue was not called, because it returned NoPermit to others just now
	Nonce   string         // of the client, from which its number is computed; "" = the id of the ticket
}

// ErrUnusedPath is returned by Enter to a user with an unused path token if the gate was not
// asked for another (EnterInput.Unasked).
var ErrUnusedPath = errors.New("the user has an unused path token")

// Enter returns a new ticket, or the user's present one without a captcha. Refusals, in
// the order of the checks: sale.NotOpen (the gate is not loaded, paused or ended),
// reservation.AlreadyOrdered, reservation.LimitReached (of the sale), captcha.Required or
// captcha.Invalid, reservation.NoneLeft.
// An answer is used up only by a new ticket. Calls on a shard that arrive while a batch is in flight
// share the next one.
func (s *Service) Enter(ctx context.Context, in EnterInput) (*Ticket, error) {
	var err error
	if in.Captcha, err = s.cfg.Captchas.Exchange(ctx, in.scope(), in.Captcha); err != nil {
		return nil, err
	}
	ticket := id.NewIn[id.Ticket](id.ShardOf(in.Sale)) // in the form of a task id: the shard is found from it
	rules, err := s.cfg.Sales.Queue(ctx, in.Sale)
	if err != nil {
		return nil, err
	}
	e := &entry{EnterInput: in, ticket: ticket, drawn: in.draw(ticket),
		claim: s.cfg.Captchas.Claim(in.scope(), in.Captcha), inflow: rules.Inflow}
	r, err := s.entries[id.ShardOf(in.Sale)].Do(ctx, e)
	switch {
	case errors.Is(err, batch.ErrFull):
		return nil, &fault.Error{Code: fault.Overloaded, Message: "too many buyers at once", RetryAfter: overloadRetry,
			Err: err}
	case err != nil:
		return nil, unavailable("enter", err)
	case r.outcome != "placed":
		return nil, s.refusal(ctx, e, r)
	}
	t := Ticket{ID: ticket, Sale: in.Sale, Item: in.Item, User: in.User, Status: Waiting, Position: r.position, At: r.now}
	if r.detail == ticket.String() {
		if r.now.Before(r.opens) {
			t.Nonce = e.nonce
		}
		return &t, nil
	}
	if t.ID, err = id.ParseUUID[id.Ticket](r.detail); err != nil {
		return nil, fmt.Errorf("enter: ticket: %w", err)
	}
	return s.look(ctx, t, false)
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

// entered is the reply of lua/enter.lua.
type entered struct {
	outcome string
	now     time.Time
	opens   time.Time // zero = the gate has none
	detail  string
	// position is that of a new ticket; nil before the opening
	position *Position
}

func (in EnterInput) session() string {
	if in.Session.IsZero() {
		return ""
	}
	return in.Session.String()
}

func (in EnterInput) scope() captcha.Scope {
	return captcha.Scope{Purpose: captcha.Seckill, Sale: in.Sale, User: in.User, From: in.From}
}

const (
	// maxEntries bounds one script call: 128 entries occupy Redis for about 2 ms.
	maxEntries = 128
	// maxEntriesWaiting bounds the queued entries of a shard; above it Enter returns
	// OVERLOADED.
	maxEntriesWaiting = 4096
	// overloadRetry is the RetryAfter of OVERLOADED.
	overloadRetry = 500 * time.Millisecond
)

// entry is a call of Enter, in a batch.
type entry struct {
	EnterInput
	drawn
	ticket id.Ticket
	claim  captcha.Claim
	inflow int
}

// enterAll gives tickets to the buyers of one shard.
func (s *Service) enterAll(ctx context.Context, entries []*entry) []batch.Result[entered] {
	results := make([]batch.Result[entered], len(entries))
	for _, call := range path.OnePerUser(entries, func(e *entry) (id.Sale, id.User) { return e.Sale, e.User }) {
		now := collect.Map(call, func(at int) *entry { return entries[at] })
		replies, err := s.send(ctx, now)
		if path.Ambiguous(ctx, err) {
			replies, err = s.send(ctx, now) // returns the tickets of the first run
		}
		for i, at := range call {
			if results[at].Err = err; err == nil {
				results[at].Value = replies[i]
			}
		}
	}
	return results
}

// send runs lua/enter.lua for entries on one shard, of different users.
func (s *Service) send(ctx context.Context, entries []*entry) ([]entered, error) {
	shard, k := id.ShardOf(entries[0].Sale), s.cfg.Keys
	items := map[id.Item]int{} // from 1
	keys, args := append(make([]string, 0, 12), k.WaitingRooms(shard)), make([]any, 0, 13+11*len(entries))
	args = append(args, len(entries), 0, k.TicketPrefix(shard), recordLife.Milliseconds(),
		s.cfg.Captchas.Life().Milliseconds(), s.cfg.Captchas.RecordLife().Milliseconds())
	for _, e := range entries {
		if items[e.Item] > 0 {
			continue
		}
		items[e.Item] = len(items) + 1
		keys = append(keys, k.Item(shard, e.Item), k.Reservations(shard, e.Item), k.WaitingRoom(shard, e.Item),
			k.WaitingRoomTickets(shard, e.Item),
			k.WaitingRoomBeats(shard, e.Item), k.WaitingRoomStats(shard, e.Item), k.Permits(shard, e.Item),
			k.Units(shard, e.Sale),
			k.Admissions(shard, e.Item), k.Answers(shard, e.Sale), k.ExpiriesPrefix(shard, e.Sale))
		none := id.User{}.String()
		args = append(args, e.Sale.String(), e.Item.String(), e.inflow,
			strings.TrimSuffix(k.Path(shard, e.Item, id.User{}), none), strings.TrimSuffix(k.Captcha(shard, e.Sale, id.User{}),
				none))
	}
	args[1] = len(items)
	for _, e := range entries {
		verdict := e.claim.Verdict
		if e.Waived {
			verdict = ""
		}
		args = append(args, items[e.Item], e.User.String(), e.ticket.String(), e.number, e.nonce, string(verdict),
			e.claim.Created,
			e.session(), k.SessionTickets(shard, e.Session), e.Persons.String(), e.Unasked)
	}
	values, err := enterScript.Run(ctx, s.cfg.Client, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	return entriesFrom(values, entries, items)
}

// entriesFrom parses a reply of lua/enter.lua.
func entriesFrom(values []any, entries []*entry, items map[id.Item]int) ([]entered, error) {
	const each = 5
	first := 1 + each*len(entries) // of the items
	malformed := fmt.Errorf("enter replied %d values for %d entries on %d items", len(values), len(entries), len(items))
	if len(values) != first+len(items) {
		return nil, malformed
	}
	now, ok := values[0].(int64)
	replies := make([]entered, len(entries))
	for i, e := range entries {
		v := values[1+each*i:]
		outcome, ok1 := v[0].(string)
		detail, ok2 := v[1].(string)
		ahead, ok3 := v[2].(int64)
		wait, ok4 := v[3].(int64)
		chance, ok5 := v[4].(int64)
		opens, ok6 := values[first+items[e.Item]-1].(int64)
		if !ok || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
			return nil, malformed
		}
		replies[i] = entered{outcome: outcome, now: time.UnixMilli(now).UTC(), detail: detail,
			position: positionOf(ahead, wait, chance)}
		if opens > 0 {
			replies[i].opens = time.UnixMilli(opens).UTC()
		}
	}
	return replies, nil
}

// refusal maps an outcome other than placed to a refusal.
func (s *Service) refusal(ctx context.Context, in *entry, r entered) error {
	switch r.outcome {
	case "unused":
		return ErrUnusedPath
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
		return reservation.AccountLimitReached(r.detail)
	case "person":
		return reservation.PersonLimitReached(r.detail, "itemId")
	case "expiries":
		wait, err := strconv.ParseInt(r.detail, 10, 64)
		if err != nil {
			return fmt.Errorf("enter: wait of %s: %w", in.User, err)
		}
		return fault.Throttled{RetryAfter: time.Duration(wait) * time.Millisecond, Cause: fault.ExpiredReservations}
	case "captcha":
		return s.cfg.Captchas.Refuse(ctx, captcha.WrongAnswer{
			Scope: in.scope(), Answer: in.Captcha, Verdict: captcha.Verdict(r.detail), Kind: in.claim.Kind,
		})
	case "sold_out":
		return reservation.NoneLeft{Item: in.Item}
	}
	return fmt.Errorf("enter: unexpected outcome %q", r.outcome)
}
