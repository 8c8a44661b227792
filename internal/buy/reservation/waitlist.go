package reservation

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"seckill/internal/identity/person"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/stream"
)

// GateStatus is the status of an item's gate, for the waitlist.
type GateStatus struct {
	Loaded bool // false: no gate, or it is being built
	Open   bool
	Ended  bool // neither Open nor Ended: the gate is paused
	Stock  int
	Users  []UserStatus // in the order of the request
}

// UserStatus is the status of one user at the gate of an item.
type UserStatus struct {
	Task      id.Task       // of the user's reservation; Nil = none
	Wait      time.Duration // remaining wait of a user with too many expired reservations
	LimitLeft int           // units that the limits leave to the user; -1 = no gate
	LimitBy   person.Kind   // whose units leave the fewest; "" = those of the account
	Free      int           // available units that no access share keeps from the user
}

// StatusUser is a user of whom Status is asked.
type StatusUser struct {
	User    id.User
	Persons person.Keys
}

// Waiting says whether buyers wait for an item.
type Waiting string

// Values of Waiting.
const (
	WaitingUnknown Waiting = ""
	BuyersWait     Waiting = "1"
	NoBuyerWaits   Waiting = "0"
)

// Status records whether buyers wait for an item, if that is known, which keeps released
// units for them for three seconds. It returns the status of the gate and of the given
// users, at most a few hundred.
func (g *Gate) Status(ctx context.Context, sale id.Sale, item id.Item, waiting Waiting,
	users ...StatusUser) (GateStatus, error) {
	shard := id.ShardOf(sale)
	keys := []string{g.keys.Item(shard, item), g.keys.Reservations(shard, item), g.keys.Units(shard, sale)}
	args := append(make([]any, 0, 3+2*len(users)), string(waiting), g.keys.ExpiriesPrefix(shard, sale), item.String())
	for _, user := range users {
		args = append(args, user.User.String(), user.Persons.String())
	}
	reply, err := waitlistStatusScript.Run(ctx, g.client, keys, args...).Slice()
	if err != nil {
		return GateStatus{}, fmt.Errorf("status of gate %s: %w", item, err)
	}
	r := replyReader{values: reply}
	state := take[int64](&r)
	s := GateStatus{Loaded: state >= 0, Open: state == 1, Ended: state == 0, Stock: int(take[int64](&r)),
		Users: make([]UserStatus, len(users))}
	for i := range users {
		task := take[string](&r)
		s.Users[i].Wait = time.Duration(take[int64](&r)) * time.Millisecond
		s.Users[i].LimitLeft = int(take[int64](&r))
		if letter := take[string](&r); letter != "" {
			s.Users[i].LimitBy = PersonLimitReached(letter).By
		}
		s.Users[i].Free = int(take[int64](&r))
		if task == "" {
			continue
		}
		if s.Users[i].Task, err = id.ParseUUID[id.Task](task); err != nil {
			return GateStatus{}, fmt.Errorf("status of gate %s: task: %w", item, err)
		}
	}
	if !r.done() {
		return GateStatus{}, fmt.Errorf("status of gate %s: malformed reply of %d values for %d users", item, len(reply),
			len(users))
	}
	return s, nil
}

// Redeem turns the units that are reserved for an offer into an order task and appends
// its message, in one step. The outcome is as of Reserve; PathInvalid means that no
// unit is reserved for the offer. After a lost reply it runs once more.
func (g *Gate) Redeem(ctx context.Context, a Attempt, offer id.Waitlist) (Outcome, error) {
	o, err := g.redeem(ctx, a, offer)
	if err != nil && ambiguous(err) {
		g.log.WarnContext(ctx, "redeem: reply lost, sending again", slog.String("task", a.Task.String()),
			slog.Any("error", err))
		if o, err = g.redeem(ctx, a, offer); err != nil {
			err = lostTwice(err)
		}
	} else if err != nil {
		err = fault.Wrap(fault.Unavailable, "The sale cannot be reached now. Please try again with the same idempotency key.",
			fmt.Errorf("redeem: %w", err))
	}
	return o.own(&a), err
}

func (g *Gate) redeem(ctx context.Context, a Attempt, offer id.Waitlist) (Outcome, error) {
	shard := a.Shard()
	orders := g.keys.Orders(shard)
	keys := []string{
		orders, g.keys.Item(shard, a.Item), g.keys.Reservations(shard, a.Item),
		g.keys.IdempotencyKeys(shard, a.Sale), stream.SumKey(orders), g.keys.FormerReservations(shard, a.Item),
	}
	args := []any{
		a.User.String(), a.Task.String(), offer.String(), a.Sale.String(), a.Item.String(), a.Quantity, a.IdempotencyKey,
		recordTTL.Milliseconds(), a.Terms, stream.FieldID, stream.FieldPayload, originsOf([]*Attempt{&a}),
	}
	reply, err := redeemScript.Run(ctx, g.client, keys, args...).Slice()
	if err != nil {
		return Outcome{}, err
	}
	outcomes, err := parseOutcomes(reply, []int{0}, 1)
	if err != nil {
		return Outcome{}, err
	}
	return outcomes[0], nil
}
