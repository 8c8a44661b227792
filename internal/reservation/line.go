package reservation

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/stream"
)

//go:embed lua/redeem.lua
var redeemLua string

//go:embed lua/line.lua
var lineLua string

var (
	redeemScript = redis.NewScript(runLua + redeemLua)
	lineScript   = redis.NewScript(runLua + lineLua)
)

// Line is the gate's side of a waitlist: it keeps returned units for those who
// wait, and turns an offer into an order task.
type Line struct {
	client redis.UniversalClient // without retries
	keys   Keys
	log    *slog.Logger
}

// NewLine returns the gate's side of waitlists.
func NewLine(client redis.UniversalClient, keys Keys, log *slog.Logger) *Line {
	return &Line{client: client, keys: keys, log: log}
}

// Sight is what the gate of an item looks like to a waitlist.
type Sight struct {
	Loaded bool // false: no gate, or one that is being built
	Open   bool
	Stock  int
	Holder uuid.UUID     // under which name the user holds units; Nil = none
	Wait   time.Duration // of a user who left too many holds unpaid
}

// Look tells the gate whether somebody waits in line for an item, and returns how
// it stands, and what a user holds, when one is given.
func (l *Line) Look(ctx context.Context, saleID, item uuid.UUID, waiting bool, user uuid.UUID) (Sight, error) {
	shard := id.ShardOf(saleID)
	flag, who := "0", ""
	if waiting {
		flag = "1"
	}
	if user != uuid.Nil {
		who = user.String()
	}
	keys := []string{l.keys.Item(shard, item), l.keys.Holders(shard, item), l.keys.Lapses(shard, saleID, user)}
	reply, err := lineScript.Run(ctx, l.client, keys, flag, who, MaxLapses).Slice()
	if err != nil {
		return Sight{}, fmt.Errorf("look at the gate of %s: %w", item, err)
	}
	if len(reply) != 4 {
		return Sight{}, fmt.Errorf("look at the gate of %s: reply of %d values", item, len(reply))
	}
	state, ok1 := reply[0].(int64)
	stock, ok2 := reply[1].(int64)
	holder, ok3 := reply[2].(string)
	wait, ok4 := reply[3].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return Sight{}, fmt.Errorf("look at the gate of %s: unexpected types in the reply", item)
	}
	s := Sight{Loaded: state >= 0, Open: state == 1, Stock: int(stock), Wait: time.Duration(wait) * time.Millisecond}
	if holder != "" {
		if s.Holder, err = uuid.Parse(holder); err != nil {
			return Sight{}, fmt.Errorf("look at the gate of %s: holder: %w", item, err)
		}
	}
	return s, nil
}

// Held returns under which names users hold units of an item, in one round trip.
// Who holds nothing is left out.
func (l *Line) Held(ctx context.Context, saleID, item uuid.UUID, users []uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	held := map[uuid.UUID]uuid.UUID{}
	if len(users) == 0 {
		return held, nil
	}
	fields := make([]string, len(users))
	for i, user := range users {
		fields[i] = user.String()
	}
	records, err := l.client.HMGet(ctx, l.keys.Holders(id.ShardOf(saleID), item), fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("read holders of %s: %w", item, err)
	}
	for i, record := range records {
		text, ok := record.(string)
		if !ok {
			continue
		}
		holder, err := ParseHolder(users[i], text)
		if err != nil {
			return nil, fmt.Errorf("read holders of %s: %w", item, err)
		}
		held[users[i]] = holder.Task
	}
	return held, nil
}

// Redeem turns the units that are held for an offer into an order task and
// appends its message, in one step. The outcome is like a reservation's:
// PathInvalid says that nothing is held for the offer. An attempt whose answer
// was lost is made once more, and finds itself Replayed.
func (l *Line) Redeem(ctx context.Context, a Attempt, offer uuid.UUID) (Outcome, error) {
	o, err := l.redeem(ctx, a, offer)
	if err != nil && ambiguous(err) {
		l.log.WarnContext(ctx, "redeem reply lost, asking again", slog.String("task", a.Task.String()), slog.Any("error", err))
		if o, err = l.redeem(ctx, a, offer); err != nil {
			err = fault.Wrap(fault.Timeout, "no answer from the gate; ask again with the same idempotency key", fmt.Errorf("%w: %w", ErrUnknown, err))
		}
	} else if err != nil {
		err = fault.Wrap(fault.Unavailable, "the gate cannot be reached", fmt.Errorf("redeem: %w", err))
	}
	if o.Code == Replayed && o.Task == a.Task {
		o.Code = Accepted
	}
	if o.Code == Accepted {
		o.Task = a.Task
	}
	return o, err
}

func (l *Line) redeem(ctx context.Context, a Attempt, offer uuid.UUID) (Outcome, error) {
	shard := a.Shard()
	keys := []string{
		l.keys.Orders(shard), l.keys.Item(shard, a.Item), l.keys.Holders(shard, a.Item),
		l.keys.Idems(shard, a.Sale), l.keys.Tasks(shard, a.Task),
	}
	entry, err := stream.Entry(stream.NewMessage(a.Task.String(), a.Message))
	if err != nil {
		return Outcome{}, fmt.Errorf("redeem: %w", err)
	}
	args := append([]any{
		a.User.String(), a.Task.String(), offer.String(), a.Sale.String(), a.Item.String(), a.Quantity, a.IdempotencyKey,
		recordTTL.Milliseconds(),
	}, entry...)
	reply, err := redeemScript.Run(ctx, l.client, keys, args...).Slice()
	if err != nil {
		return Outcome{}, err
	}
	outcomes, err := parse(reply, []int{0}, 1)
	if err != nil {
		return Outcome{}, err
	}
	return outcomes[0], nil
}
