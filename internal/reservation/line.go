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
	Users  []Standing // in the order in which they were asked for
}

// Standing is how a user stands to an item.
type Standing struct {
	Holder uuid.UUID     // under which name the user holds units; Nil = none
	Wait   time.Duration // of a user who left too many holds unpaid
}

// Look tells the gate whether somebody waits in line for an item, and returns how
// it stands, and how users do: some hundreds of them at most.
func (l *Line) Look(ctx context.Context, saleID, item uuid.UUID, waiting bool, users ...uuid.UUID) (Sight, error) {
	shard := id.ShardOf(saleID)
	flag := "0"
	if waiting {
		flag = "1"
	}
	keys := append(make([]string, 0, 2+len(users)), l.keys.Item(shard, item), l.keys.Holders(shard, item))
	args := append(make([]any, 0, 2+len(users)), flag, MaxLapses)
	for _, user := range users {
		keys = append(keys, l.keys.Lapses(shard, saleID, user))
		args = append(args, user.String())
	}
	reply, err := lineScript.Run(ctx, l.client, keys, args...).Slice()
	if err != nil {
		return Sight{}, fmt.Errorf("look at the gate of %s: %w", item, err)
	}
	a := answers{values: reply}
	state := take[int64](&a)
	s := Sight{Loaded: state >= 0, Open: state == 1, Stock: int(take[int64](&a)), Users: make([]Standing, len(users))}
	for i := range users {
		holder := take[string](&a)
		s.Users[i].Wait = time.Duration(take[int64](&a)) * time.Millisecond
		if holder == "" {
			continue
		}
		if s.Users[i].Holder, err = uuid.Parse(holder); err != nil {
			return Sight{}, fmt.Errorf("look at the gate of %s: holder: %w", item, err)
		}
	}
	if a.odd || len(a.values) > 0 {
		return Sight{}, fmt.Errorf("look at the gate of %s: odd reply of %d values for %d users", item, len(reply), len(users))
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
