package waitlist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/waitlistentry"
	"seckill/internal/batch"
	"seckill/internal/fault"
	"seckill/internal/id"
	"seckill/internal/postgres"
	"seckill/internal/reservation"
)

// busyRetry is when somebody may come back who was one too many.
const busyRetry = time.Second

// atItem is where the input says what is waited for.
var atItem = []string{"input", "itemId"}

// JoinInput asks for a place in line.
type JoinInput struct {
	Sale     uuid.UUID
	Item     uuid.UUID
	User     uuid.UUID
	Quantity int // 1 to the sale's purchase limit; the caller checks
}

// joined is what came of it.
type joined struct {
	entry   *Entry
	refusal fault.Refusal
}

// Join gives a person a place in line. Joining again gives the same place. Those who
// join at the same moment, as when an item has just sold out, go together.
// Refusals: reservation.LimitReached (without the limit: the sale knows it) for who
// has an order or an attempt already, fault.Throttled for who left too many holds
// unpaid, SALE_CLOSED, CONFLICT while units are on open sale, and
// reservation.NoneLeft when no more can come back.
func (s *Service) Join(ctx context.Context, in JoinInput) (*Entry, fault.Refusal, error) {
	j, err := s.joins.Do(ctx, in)
	if errors.Is(err, batch.ErrFull) {
		err = &fault.Error{Code: fault.Overloaded, Message: "too many join at once", RetryAfter: busyRetry, Err: err}
	}
	return j.entry, j.refusal, err
}

// joinAll answers all who join, item by item.
func (s *Service) joinAll(ctx context.Context, asked []JoinInput) []batch.Result[joined] {
	results := make([]batch.Result[joined], len(asked))
	for item, those := range byKey(asked, func(in JoinInput) uuid.UUID { return in.Item }) {
		var inputs []JoinInput // one of each person, in the order in which they came
		seen := map[uuid.UUID]bool{}
		for _, i := range those {
			if in := asked[i]; !seen[in.User] {
				seen[in.User] = true
				inputs = append(inputs, in)
			}
		}
		ends, err := s.joinItem(ctx, item, inputs)
		for _, i := range those {
			results[i] = batch.Result[joined]{Value: ends[asked[i].User], Err: err}
		}
	}
	return results
}

// joinItem answers people who join the line of one item.
func (s *Service) joinItem(ctx context.Context, item uuid.UUID, inputs []JoinInput) (map[uuid.UUID]joined, error) {
	ends, err := s.openOf(ctx, item, inputs)
	if err != nil {
		return nil, err
	}
	if inputs = without(inputs, ends); len(inputs) == 0 {
		return ends, nil
	}
	if err := s.refuseBuyers(ctx, item, inputs, ends); err != nil {
		return nil, err
	}
	if inputs = without(inputs, ends); len(inputs) == 0 {
		return ends, nil
	}
	outlook, err := s.Outlook(ctx, item)
	if err != nil {
		return nil, err
	}
	sight, err := s.gate.Status(ctx, inputs[0].Sale, item, outlook.Waiting > 0, usersOf(inputs)...)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "the gate cannot be reached", err)
	}
	if !sight.Loaded {
		return nil, fault.New(fault.Unavailable, "the sale is being prepared; try again")
	}
	for i, in := range inputs {
		if why := refuse(in, outlook, sight, sight.Users[i]); why != nil {
			ends[in.User] = joined{refusal: why}
		}
	}
	return ends, s.enter(ctx, item, without(inputs, ends), ends)
}

// refuse says why a person gets no place; nil when there is one for them.
func refuse(in JoinInput, outlook Outlook, sight reservation.GateStatus, user reservation.UserStatus) fault.Refusal {
	switch {
	case !sight.Open:
		return fault.Refused{Why: fault.SaleClosed, At: atItem}
	case user.Task != uuid.Nil:
		return reservation.LimitReached{Task: user.Task, At: atItem}
	case user.Wait > 0:
		return fault.Throttled{RetryAfter: user.Wait}
	case sight.Stock >= in.Quantity && outlook.Waiting == 0:
		return fault.Refused{Why: fault.Conflict, At: atItem} // buy it
	case outlook.Gone():
		return reservation.NoneLeft{Item: in.Item}
	}
	return nil
}

// enter writes the places of people in one transaction and adds them to ends. Who got
// a place meanwhile, by another process, has that one.
func (s *Service) enter(ctx context.Context, item uuid.UUID, inputs []JoinInput, ends map[uuid.UUID]joined) error {
	for range maxRaces {
		if len(inputs) == 0 {
			return nil
		}
		now, places := s.now(), make([]uuid.UUID, len(inputs))
		err := s.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			rows := make([]*ent.WaitlistEntryCreate, len(inputs))
			for i, in := range inputs {
				places[i] = id.New()
				rows[i] = tx.WaitlistEntry.Create().SetID(places[i]).SetSaleID(in.Sale).SetItemID(in.Item).SetUserID(in.User).
					SetQuantity(in.Quantity).SetCreatedAt(now).SetUpdatedAt(now)
			}
			return tx.WaitlistEntry.CreateBulk(rows...).Exec(ctx)
		})
		if err == nil {
			return s.entered(ctx, inputs[0].Sale, item, places, ends)
		}
		if !postgres.IsUnique(err) {
			return fmt.Errorf("join waitlist of item %s: %w", item, err)
		}
		there, err := s.openOf(ctx, item, inputs)
		if err != nil {
			return err
		}
		for user, end := range there {
			ends[user] = end
		}
		inputs = without(inputs, ends)
	}
	return fault.New(fault.Unavailable, "the line is being changed; try again")
}

// entered tells everybody of new places.
func (s *Service) entered(ctx context.Context, saleID, item uuid.UUID, places []uuid.UUID, ends map[uuid.UUID]joined) error {
	if _, err := s.gate.Status(ctx, saleID, item, true); err != nil {
		s.log.WarnContext(ctx, "keep units for the line", slog.Any("error", err)) // the loop does it soon
	}
	s.metrics.turned("joined", len(places))
	rows, err := s.db.Ent.WaitlistEntry.Query().Where(waitlistentry.IDIn(places...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read new places of item %s: %w", item, err)
	}
	entries := make([]*Entry, len(rows))
	for i, row := range rows {
		entries[i] = fromRow(row)
		ends[row.UserID] = joined{entry: entries[i]}
	}
	s.tell(ctx, entries...)
	return nil
}

// openOf returns the places of people that something may still come of.
func (s *Service) openOf(ctx context.Context, item uuid.UUID, inputs []JoinInput) (map[uuid.UUID]joined, error) {
	rows, err := s.db.Ent.WaitlistEntry.Query().
		Where(waitlistentry.ItemID(item), waitlistentry.UserIDIn(usersOf(inputs)...), waitlistentry.StatusIn(openStatuses...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read places in line: %w", err)
	}
	ends := make(map[uuid.UUID]joined, len(inputs))
	for _, row := range rows {
		ends[row.UserID] = joined{entry: fromRow(row)}
	}
	return ends, nil
}

// refuseBuyers refuses those whose order uses up their limit of an item.
func (s *Service) refuseBuyers(ctx context.Context, item uuid.UUID, inputs []JoinInput, ends map[uuid.UUID]joined) error {
	rows, err := s.db.Ent.Order.Query().
		Where(entorder.ItemID(item), entorder.UserIDIn(usersOf(inputs)...), entorder.StatusIn(liveStatuses()...)).
		Select(entorder.FieldID, entorder.FieldUserID).All(ctx)
	if err != nil {
		return fmt.Errorf("look for live orders: %w", err)
	}
	for _, row := range rows {
		ends[row.UserID] = joined{refusal: reservation.LimitReached{Task: row.ID, At: atItem}}
	}
	return nil
}

func usersOf(inputs []JoinInput) []uuid.UUID {
	users := make([]uuid.UUID, len(inputs))
	for i, in := range inputs {
		users[i] = in.User
	}
	return users
}

// without leaves out those who have an answer.
func without(inputs []JoinInput, ends map[uuid.UUID]joined) []JoinInput {
	var left []JoinInput
	for _, in := range inputs {
		if _, done := ends[in.User]; !done {
			left = append(left, in)
		}
	}
	return left
}

// byKey groups what was asked: the positions of each key, in order.
func byKey[Q any](asked []Q, key func(Q) uuid.UUID) map[uuid.UUID][]int {
	groups := map[uuid.UUID][]int{}
	for i, q := range asked {
		groups[key(q)] = append(groups[key(q)], i)
	}
	return groups
}
