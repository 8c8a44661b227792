package queue

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/id"
)

const (
	// admitBatch is how many people one script lets in: it holds Redis for about 2 ms.
	admitBatch = 100
	// clearBatch is how many places one script frees or closes.
	clearBatch = 100
	// maxPasses bounds the scripts of one step on one room: 50,000 people are told
	// in one step that all is over; the rest in the next.
	maxPasses = 500
	// maxSkipped bounds how many people one step passes over in one room, because
	// they have an unused path to another item. It looks so far once a second.
	maxSkipped = 5000
	// tokenBytes makes a path 128 random bits, as package path does.
	tokenBytes = 16
	// head is a score below that of everybody in line: see lua/enter.lua.
	head = -(1 << drawBits) - 1
)

// Step lets the first in line of every room in, as permits and inflow allow,
// frees the places of those who are silent, and closes the rooms of sales that
// are over. It is a periodic.Step; any number of processes may run it at once.
func (s *Service) Step(ctx context.Context) (map[string]int, error) {
	sets := make([]*redis.StringSliceCmd, id.Shards)
	pipe := s.cfg.Client.Pipeline()
	for shard := range sets {
		sets[shard] = pipe.SMembers(ctx, s.cfg.Keys.WaitingRooms(shard))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list waiting rooms: %w", err)
	}
	counts := map[string]int{}
	var errs []error
	for _, set := range sets {
		for _, room := range set.Val() {
			errs = append(errs, s.tend(ctx, room, counts))
		}
	}
	return counts, errors.Join(errs...)
}

// tend makes passes over one room until there is nothing more to do now.
func (s *Service) tend(ctx context.Context, room string, counts map[string]int) error {
	saleText, itemText, _ := strings.Cut(room, "|")
	saleID, err1 := uuid.Parse(saleText)
	itemID, err2 := uuid.Parse(itemText)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("waiting room %q: %w", room, err)
	}
	rules, err := s.cfg.Rules(ctx, saleID, itemID)
	if err != nil {
		return err
	}
	at, skipped := int64(head), 0
	for range maxPasses {
		p, err := s.pass(ctx, saleID, itemID, rules, at)
		if err != nil {
			return fmt.Errorf("tend waiting room of %s: %w", itemID, err)
		}
		counts["admitted"] += p.admitted
		if p.admitted > 0 {
			s.cfg.Admitted(saleID, p.admitted)
		}
		counts["freed"] += p.freed
		counts["closed"] += p.closed
		if at, skipped = p.at, skipped+p.skipped; skipped >= maxSkipped {
			return nil
		}
		if p.more || p.admitted+p.freed >= admitBatch || p.freed >= clearBatch || p.closed >= clearBatch {
			continue
		}
		if rules.Over || p.waiting == 0 || p.left != 0 || s.cfg.Gone == nil {
			return nil
		}
		if rules.Over, err = s.cfg.Gone(ctx, itemID); err != nil || !rules.Over {
			return err
		}
	}
	return nil
}

// passed is what one pass over a room did, and found.
type passed struct {
	admitted, freed, closed int
	waiting                 int   // people in line afterwards
	left                    int   // units that the gate has; -1 = there is no gate
	skipped                 int   // people passed over
	at                      int64 // score in the line where it ended
	more                    bool  // places are free, and behind at somebody may take them
}

// pass makes one pass. Nobody up to the score at is looked at again.
func (s *Service) pass(ctx context.Context, saleID, itemID uuid.UUID, rules Rules, at int64) (passed, error) {
	shard, k := id.ShardOf(saleID), s.cfg.Keys
	over := "0"
	if rules.Over {
		over = "1"
	}
	args := []any{
		over, rules.PerMille, rules.Inflow, s.cfg.Life.Milliseconds(), s.cfg.Patience.Milliseconds(),
		k.TicketPrefix(shard), saleID.String() + "|" + itemID.String(), clearBatch, at,
	}
	random := make([]byte, admitBatch*tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return passed{}, fmt.Errorf("path tokens: %w", err)
	}
	for ; len(random) > 0; random = random[tokenBytes:] {
		args = append(args, base64.RawURLEncoding.EncodeToString(random[:tokenBytes]))
	}
	reply, err := admitScript.Run(ctx, s.cfg.Client, []string{
		k.Item(shard, itemID), k.Reservations(shard, itemID), k.WaitingRoom(shard, itemID), k.WaitingRoomTickets(shard, itemID),
		k.WaitingRoomBeats(shard, itemID), k.WaitingRoomStats(shard, itemID), k.WaitingRooms(shard), k.Permits(shard, itemID),
	}, args...).Int64Slice()
	if err != nil {
		return passed{}, err
	}
	if len(reply) != 8 {
		return passed{}, fmt.Errorf("admit replied %d values", len(reply))
	}
	return passed{
		admitted: int(reply[0]), freed: int(reply[1]), closed: int(reply[2]), waiting: int(reply[3]), left: int(reply[4]),
		skipped: int(reply[5]), at: reply[6], more: reply[7] == 1,
	}, nil
}
