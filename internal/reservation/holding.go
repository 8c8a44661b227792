package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/batch"
	"seckill/internal/id"
)

const (
	// maxLooks bounds the looks of one trip to Redis.
	maxLooks = 512
	// looksInFlight is how many trips are under way at once.
	looksInFlight = 2
	// maxLooking bounds the looks that wait: several times the sockets of a process.
	maxLooking = 100_000
	// lookTimeout bounds one trip with its second try.
	lookTimeout = 2 * time.Second
)

// Holdings reads who holds what. Looks that come in while others are under way go
// together: when a sale opens, everybody who follows it looks at once. It is safe
// for concurrent use.
type Holdings struct {
	client redis.UniversalClient
	keys   Keys
	looks  *batch.Batcher[look, holding]
}

// look is what one caller wants to know.
type look struct {
	sale           uuid.UUID
	user           uuid.UUID
	items, soldOut []uuid.UUID
}

// holding is the answer to a look: what a user holds by item, and whether people wait
// in line.
type holding struct {
	held  map[uuid.UUID]Holder
	lined bool
}

// NewHoldings returns a reader of holders.
func NewHoldings(client redis.UniversalClient, keys Keys) *Holdings {
	h := &Holdings{client: client, keys: keys}
	h.looks = batch.New(batch.Config[look, holding]{
		Process: h.answer, MaxBatch: maxLooks, MaxInFlight: looksInFlight, MaxWaiting: maxLooking, Timeout: lookTimeout,
	})
	return h
}

// Of returns what a user holds of the given items of one sale, by item, in one
// round trip. Items of which the user holds nothing are left out.
func (h *Holdings) Of(ctx context.Context, sale uuid.UUID, items []uuid.UUID, user uuid.UUID) (map[uuid.UUID]Holder, error) {
	held, _, err := h.WithLines(ctx, sale, items, user, nil)
	return held, err
}

// WithLines is Of, and tells in the same round trip whether people wait in line for
// one of some items. Whoever has just joined is among them.
func (h *Holdings) WithLines(ctx context.Context, sale uuid.UUID, items []uuid.UUID, user uuid.UUID, soldOut []uuid.UUID) (map[uuid.UUID]Holder, bool, error) {
	answer, err := h.looks.Do(ctx, look{sale: sale, user: user, items: items, soldOut: soldOut})
	if err != nil {
		return nil, false, fmt.Errorf("read holdings: %w", err)
	}
	return answer.held, answer.lined, nil
}

// asked is a question to Redis that several looks share.
type asked struct {
	users []string
	reply *redis.SliceCmd // of each user a record, or nil
	next  int             // user whose record was not read yet
}

// answer reads for all looks in one round trip: the holders of an item with one
// command, and whether it has a line with another.
func (h *Holdings) answer(ctx context.Context, looks []look) []batch.Result[holding] {
	pipe := h.client.Pipeline()
	holders, lines := map[uuid.UUID]*asked{}, map[uuid.UUID]*redis.BoolCmd{}
	shards := map[uuid.UUID]int{}
	for _, l := range looks {
		for _, item := range l.items {
			q := holders[item]
			if q == nil {
				q = &asked{}
				holders[item], shards[item] = q, id.ShardOf(l.sale)
			}
			q.users = append(q.users, l.user.String())
		}
		for _, item := range l.soldOut {
			if lines[item] == nil {
				lines[item] = pipe.HExists(ctx, h.keys.Item(id.ShardOf(l.sale), item), "line")
			}
		}
	}
	for item, q := range holders {
		q.reply = pipe.HMGet(ctx, h.keys.Holders(shards[item], item), q.users...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error: on a Cluster some may be answered
	results := make([]batch.Result[holding], len(looks))
	for i, l := range looks {
		results[i].Value, results[i].Err = l.read(holders, lines)
	}
	return results
}

// read takes the answers to a look out of those to all; it is called in the order in
// which the users were asked for.
func (l look) read(holders map[uuid.UUID]*asked, lines map[uuid.UUID]*redis.BoolCmd) (h holding, failed error) {
	h.held = map[uuid.UUID]Holder{}
	for _, item := range l.items {
		q := holders[item]
		values, err := q.reply.Result()
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		text, ok := values[q.next].(string)
		q.next++
		if !ok {
			continue
		}
		holder, err := ParseHolder(l.user, text)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("item %s: %w", item, err))
			continue
		}
		h.held[item] = holder
	}
	for _, item := range l.soldOut {
		there, err := lines[item].Result()
		failed = errors.Join(failed, err)
		h.lined = h.lined || there
	}
	return h, failed
}

// ParseHolder reads the record "task|quantity|at|idempotency key".
func ParseHolder(user uuid.UUID, text string) (Holder, error) {
	parts := strings.SplitN(text, "|", 4)
	if len(parts) != 4 {
		return Holder{}, fmt.Errorf("holder record has %d parts", len(parts))
	}
	task, err := uuid.Parse(parts[0])
	if err != nil {
		return Holder{}, fmt.Errorf("holder record: %w", err)
	}
	quantity, err := strconv.Atoi(parts[1])
	if err != nil {
		return Holder{}, fmt.Errorf("holder record: %w", err)
	}
	at, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Holder{}, fmt.Errorf("holder record: %w", err)
	}
	return Holder{User: user, Task: task, Quantity: quantity, At: time.UnixMilli(at).UTC(), IdempotencyKey: parts[3]}, nil
}
