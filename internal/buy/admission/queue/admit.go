package queue

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/outbox/notice"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

const (
	// admitBatch is the number of buyers that one script admits: it occupies Redis for
	// about 2 ms.
	admitBatch = 100
	// clearBatch is the number of tickets that one script frees or closes.
	clearBatch = 100
	// maxPasses bounds the scripts of one step on one room: one step closes up to
	// 50,000 tickets, the next step continues.
	maxPasses = 500
	// maxSkipped bounds how many buyers with an unused path token for another item one
	// step skips in one room. It searches that far once a second.
	maxSkipped = 5000
	// head is a score below that of every ticket: see lua/enter.lua.
	head = -(1 << sale.DrawBits) - 1
)

// Step admits the first buyers of every room, as permits and inflow allow, frees the
// tickets without a heartbeat, and closes the rooms of sales that are over. It is a
// periodic.Step; any number of processes may run it at once.
func (s *Service) Step(ctx context.Context) (map[string]int, error) {
	sets := make([]*redis.StringSliceCmd, id.Shards)
	pipe := s.cfg.Client.Pipeline()
	for shard := range sets {
		sets[shard] = pipe.SMembers(ctx, s.cfg.Keys.WaitingRooms(shard))
	}
	redisconn.ExecEach(ctx, pipe)
	counts := map[string]int{}
	var errs []error
	found := 0
	defer func() { s.rooms.Store(int64(found)) }()
	for shard, set := range sets {
		if err := set.Err(); err != nil {
			errs = append(errs, fmt.Errorf("list waiting rooms of shard %d: %w", shard, err))
		}
		found += len(set.Val())
		for _, room := range set.Val() {
			errs = append(errs, s.serveRoom(ctx, room, counts))
		}
	}
	return counts, errors.Join(errs...)
}

// Busy reports whether there was a waiting room in the last Step: it may admit at any
// time.
func (s *Service) Busy() bool { return s.rooms.Load() > 0 }

// serveRoom makes passes over one room until no work is left.
func (s *Service) serveRoom(ctx context.Context, room string, counts map[string]int) error {
	saleText, itemText, _ := strings.Cut(room, "|")
	saleID, err1 := id.ParseUUID[id.Sale](saleText)
	itemID, err2 := id.ParseUUID[id.Item](itemText)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("waiting room %q: %w", room, err)
	}
	rules, err := s.cfg.Sales.Queue(ctx, saleID)
	if err != nil {
		return err
	}
	at, skipped := int64(head), 0
	for range maxPasses {
		p, err := s.pass(ctx, saleID, itemID, rules, at)
		if err != nil {
			return fmt.Errorf("serve waiting room of %s: %w", itemID, err)
		}
		counts["admitted"] += p.admitted
		if p.admitted > 0 {
			s.cfg.Counts.Admitted(saleID, p.admitted)
			s.cfg.Notices.Add(p.admissions(itemID)...)
		}
		counts["freed"] += p.freed
		counts["closed"] += p.closed
		for _, u := range append(p.unserved, p.missed...) {
			u.Sale, u.Item = saleID, itemID
			s.cfg.Counts.Unserved(u)
		}
		if at, skipped = p.at, skipped+p.skipped; skipped >= maxSkipped {
			return nil
		}
		if len(p.missed) >= clearBatch || p.more || p.admitted+p.freed >= admitBatch || p.freed >= clearBatch ||
			p.closed >= clearBatch {
			continue
		}
		if rules.Over || p.waiting == 0 || p.left != 0 {
			return nil
		}
		if rules.Over, err = s.cfg.Sales.Gone(ctx, itemID); err != nil || !rules.Over {
			return err
		}
	}
	return nil
}

// passed is the result of one pass over a room.
type passed struct {
	admitted, freed, closed int
	waiting                 int   // tickets that still wait
	left                    int   // available units at the gate; -1 = no gate
	skipped                 int   // skipped buyers
	at                      int64 // score at which the pass ended
	more                    bool  // permits are free, and buyers behind at may get them
	until                   time.Time
	unserved                []Unserved // tickets that were closed
	missed                  []Unserved // admissions that expired unused
	served                  []served
}

// served is an admitted buyer, whose path token is valid until passed.until.
type served struct {
	ticket id.Ticket
	user   id.User
}

// admissions returns the admitted buyers of a pass as facts for notices.
func (p passed) admissions(itemID id.Item) []notice.Admission {
	return collect.Map(p.served, func(s served) notice.Admission {
		return notice.Admission{Ticket: s.ticket, Item: itemID, User: s.user, Until: p.until}
	})
}

// pass makes one pass over the tickets with a score above at.
func (s *Service) pass(ctx context.Context, saleID id.Sale, itemID id.Item, rules Rules, at int64) (passed, error) {
	shard, k := id.ShardOf(saleID), s.cfg.Keys
	over := "0"
	if rules.Over {
		over = "1"
	}
	args := []any{
		over, rules.PerMille, rules.Inflow, s.cfg.Life.Milliseconds(), s.cfg.HeartbeatTimeout.Milliseconds(),
		k.TicketPrefix(shard), saleID.String() + "|" + itemID.String(), clearBatch, at,
		reservation.ExpiredWait.Milliseconds(), k.ExpiriesPrefix(shard, saleID), admitBatch, s.cfg.Captchas.RecordLife().
			Milliseconds(), k.Answers(shard, saleID),
	}
	reply, err := admitScript.Run(ctx, s.cfg.Client, []string{
		k.Item(shard, itemID), k.Reservations(shard, itemID), k.WaitingRoom(shard, itemID),
		k.WaitingRoomTickets(shard, itemID),
		k.WaitingRoomBeats(shard, itemID), k.WaitingRoomStats(shard, itemID), k.WaitingRooms(shard), k.Permits(shard, itemID),
		k.Units(shard, saleID), k.Admissions(shard, itemID),
	}, args...).Slice()
	if err != nil {
		return passed{}, err
	}
	return passedFrom(reply)
}

// passedFrom parses a reply of admit.lua.
func passedFrom(reply []any) (passed, error) {
	const figures = 9
	if len(reply) != figures+3 {
		return passed{}, fmt.Errorf("admit replied %d values", len(reply))
	}
	var n [figures]int64
	for i := range n {
		n[i], _ = reply[i].(int64)
	}
	p := passed{
		admitted: int(n[0]), freed: int(n[1]), closed: int(n[2]), waiting: int(n[3]), left: int(n[4]),
		skipped: int(n[5]), at: n[6], more: n[7] == 1, until: time.UnixMilli(n[8]).UTC(),
	}
	closed, _ := reply[figures].([]any)
	for i := 0; i+1 < len(closed); i += 2 {
		text, _ := closed[i].(string)
		user, err := id.ParseUUID[id.User](text)
		if err != nil {
			return p, fmt.Errorf("admit replied user %q: %w", text, err)
		}
		u := Unserved{User: user, Why: fault.SaleClosed}
		if p.left == 0 {
			u.Why = fault.SoldOut
		}
		if ahead, ok := closed[i+1].(int64); ok && ahead >= 0 {
			position := int(ahead)
			u.Ahead = &position
		}
		p.unserved = append(p.unserved, u)
	}
	missed, _ := reply[figures+2].([]any)
	for _, value := range missed {
		text, _ := value.(string)
		user, err := id.ParseUUID[id.User](text)
		if err != nil {
			return p, fmt.Errorf("admit replied user %q: %w", text, err)
		}
		p.missed = append(p.missed, Unserved{User: user, Why: fault.PathInvalid})
	}
	admitted, _ := reply[figures+1].([]any)
	for i := 0; i+1 < len(admitted); i += 2 {
		var s served
		for j, into := range []encoding.TextUnmarshaler{&s.ticket, &s.user} {
			text, _ := admitted[i+j].(string)
			if err := into.UnmarshalText([]byte(text)); err != nil {
				return p, fmt.Errorf("admit replied %q: %w", text, err)
			}
		}
		p.served = append(p.served, s)
	}
	return p, nil
}
