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
	// maxLookups bounds the lookups of one pipeline.
	maxLookups = 512
	// lookupsInFlight is how many pipelines are under way at once.
	lookupsInFlight = 2
	// maxLookupsWaiting bounds the lookups that wait: several times the sockets of a process.
	maxLookupsWaiting = 100_000
	// lookupTimeout bounds one pipeline.
	lookupTimeout = 2 * time.Second
)

// Reservation is a user's reservation of units of an item.
type Reservation struct {
	User, Task     uuid.UUID
	Quantity       int
	At             time.Time
	IdempotencyKey string
}

// record is how the gate stores the reservation of a user.
func (r Reservation) record() string {
	return fmt.Sprintf("%s|%d|%d|%s", r.Task, r.Quantity, r.At.UnixMilli(), r.IdempotencyKey)
}

// ParseReservation reads the record "task|quantity|at|idempotency key" of a user.
func ParseReservation(user uuid.UUID, record string) (Reservation, error) {
	parts := strings.SplitN(record, "|", 4)
	if len(parts) != 4 {
		return Reservation{}, fmt.Errorf("reservation record has %d parts", len(parts))
	}
	task, errTask := uuid.Parse(parts[0])
	quantity, errQuantity := strconv.Atoi(parts[1])
	at, errAt := strconv.ParseInt(parts[2], 10, 64)
	if err := errors.Join(errTask, errQuantity, errAt); err != nil {
		return Reservation{}, fmt.Errorf("reservation record: %w", err)
	}
	return Reservation{User: user, Task: task, Quantity: quantity, At: time.UnixMilli(at).UTC(), IdempotencyKey: parts[3]}, nil
}

// lookup is a request for the reservations of a user, and for whether buyers wait for
// one of some sold-out items.
type lookup struct {
	sale           uuid.UUID
	user           uuid.UUID
	items, soldOut []uuid.UUID
}

// found is the response to a lookup.
type found struct {
	reservations map[uuid.UUID]Reservation // by item
	waitlist     bool
}

// Reservations returns the user's reservations of the given items of one sale, by
// item. Items without one are left out. Lookups that arrive while others are under way
// share one pipeline: when a sale opens, everybody who follows it looks at once.
func (g *Gate) Reservations(ctx context.Context, sale uuid.UUID, items []uuid.UUID, user uuid.UUID) (map[uuid.UUID]Reservation, error) {
	reservations, _, err := g.ReservationsAndWaitlist(ctx, sale, items, user, nil)
	return reservations, err
}

// ReservationsAndWaitlist returns what Reservations does, and in the same pipeline
// whether buyers wait for one of some items.
func (g *Gate) ReservationsAndWaitlist(
	ctx context.Context, sale uuid.UUID, items []uuid.UUID, user uuid.UUID, soldOut []uuid.UUID,
) (map[uuid.UUID]Reservation, bool, error) {
	f, err := g.lookups.Do(ctx, lookup{sale: sale, user: user, items: items, soldOut: soldOut})
	if err != nil {
		return nil, false, fmt.Errorf("read reservations: %w", err)
	}
	return f.reservations, f.waitlist, nil
}

// shared is a command that several lookups share.
type shared struct {
	users []string
	reply *redis.SliceCmd // of each user a record, or nil
	next  int             // user whose record was not read yet
}

// lookupAll reads for all lookups in one pipeline: the reservations of an item with one
// command, and whether it has a waitlist with another.
func (g *Gate) lookupAll(ctx context.Context, lookups []lookup) []batch.Result[found] {
	pipe := g.readClient.Pipeline()
	records, waitlists := map[uuid.UUID]*shared{}, map[uuid.UUID]*redis.BoolCmd{}
	shards := map[uuid.UUID]int{}
	for _, l := range lookups {
		for _, item := range l.items {
			q := records[item]
			if q == nil {
				q = &shared{}
				records[item], shards[item] = q, id.ShardOf(l.sale)
			}
			q.users = append(q.users, l.user.String())
		}
		for _, item := range l.soldOut {
			if waitlists[item] == nil {
				waitlists[item] = pipe.HExists(ctx, g.keys.Item(id.ShardOf(l.sale), item), "line")
			}
		}
	}
	for item, q := range records {
		q.reply = pipe.HMGet(ctx, g.keys.Reservations(shards[item], item), q.users...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error: on a Cluster some may be answered
	results := make([]batch.Result[found], len(lookups))
	for i, l := range lookups {
		results[i].Value, results[i].Err = l.read(records, waitlists)
	}
	return results
}

// read takes the response to a lookup from the shared replies. It must be called in the
// order in which the users were added.
func (l lookup) read(records map[uuid.UUID]*shared, waitlists map[uuid.UUID]*redis.BoolCmd) (f found, failed error) {
	f.reservations = map[uuid.UUID]Reservation{}
	for _, item := range l.items {
		q := records[item]
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
		r, err := ParseReservation(l.user, text)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("item %s: %w", item, err))
			continue
		}
		f.reservations[item] = r
	}
	for _, item := range l.soldOut {
		waits, err := waitlists[item].Result()
		failed = errors.Join(failed, err)
		f.waitlist = f.waitlist || waits
	}
	return f, failed
}

// ReservationTasks returns the tasks of users' reservations of an item, in one command.
// Users without a reservation are left out.
func (g *Gate) ReservationTasks(ctx context.Context, sale, item uuid.UUID, users []uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	tasks := map[uuid.UUID]uuid.UUID{}
	if len(users) == 0 {
		return tasks, nil
	}
	fields := make([]string, len(users))
	for i, user := range users {
		fields[i] = user.String()
	}
	records, err := g.readClient.HMGet(ctx, g.keys.Reservations(id.ShardOf(sale), item), fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("read reservations of %s: %w", item, err)
	}
	for i, record := range records {
		text, ok := record.(string)
		if !ok {
			continue
		}
		r, err := ParseReservation(users[i], text)
		if err != nil {
			return nil, fmt.Errorf("read reservations of %s: %w", item, err)
		}
		tasks[users[i]] = r.Task
	}
	return tasks, nil
}
