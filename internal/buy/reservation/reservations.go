package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/identity/person"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

const (
	// maxLookups bounds the lookups in one pipeline.
	maxLookups = 512
	// lookupsInFlight bounds the concurrent pipelines.
	lookupsInFlight = 2
	// maxLookupsWaiting bounds the queued lookups: several times the sockets of a
	// process.
	maxLookupsWaiting = 100_000
)

// Reservation is a user's reservation of units of an item.
type Reservation struct {
	User           id.User
	Task           id.Task
	Persons        person.Keys
	Quantity       int
	At             time.Time
	IdempotencyKey string
}

// record returns the value stored in the hash Reservations.
func (r Reservation) record() string {
	return fmt.Sprintf("%s|%d|%s|%s", r.Task, r.Quantity, person.MarkTime(r.At.UnixMilli(), r.Persons), r.IdempotencyKey)
}

// ParseReservation reads the record "task|quantity|at|idempotency key" of a user; at has the keys
// of persons behind it.
func ParseReservation(user id.User, record string) (Reservation, error) {
	parts := strings.SplitN(record, "|", 4)
	if len(parts) != 4 {
		return Reservation{}, fmt.Errorf("reservation record has %d parts", len(parts))
	}
	task, errTask := id.ParseUUID[id.Task](parts[0])
	quantity, errQuantity := strconv.Atoi(parts[1])
	at, persons, errAt := person.ParseTime(parts[2])
	if err := errors.Join(errTask, errQuantity, errAt); err != nil {
		return Reservation{}, fmt.Errorf("reservation record: %w", err)
	}
	return Reservation{User: user, Task: task, Persons: persons, Quantity: quantity, At: time.UnixMilli(at).UTC(),
		IdempotencyKey: parts[3]}, nil
}

// lookup requests the reservations of a user, and whether buyers wait for one of the
// sold-out items.
type lookup struct {
	sale           id.Sale
	user           id.User
	items, soldOut []id.Item
}

// found is the response to a lookup.
type found struct {
	reservations map[id.Item]Reservation // by item
	waitlist     bool
}

// Reservations returns the user's reservations of the given items of one sale, by item.
// Items without a reservation are left out. Concurrent lookups share one pipeline: when
// a sale opens, all its followers look up their reservations at once.
func (g *Gate) Reservations(ctx context.Context, sale id.Sale, items []id.Item, user id.User) (map[id.Item]Reservation,
	error) {
	reservations, _, err := g.ReservationsAndWaitlist(ctx, sale, items, user, nil)
	return reservations, err
}

// ReservationsAndWaitlist is Reservations, and in the same pipeline reports whether
// buyers wait for one of the items in soldOut.
func (g *Gate) ReservationsAndWaitlist(
	ctx context.Context, sale id.Sale, items []id.Item, user id.User, soldOut []id.Item,
) (map[id.Item]Reservation, bool, error) {
	f, err := g.lookups.Do(ctx, lookup{sale: sale, user: user, items: items, soldOut: soldOut})
	if err != nil {
		return nil, false, fmt.Errorf("read reservations: %w", err)
	}
	return f.reservations, f.waitlist, nil
}

// shared is a command that several lookups share.
type shared struct {
	users []string
	reply *redis.SliceCmd // per user a record, or nil
	next  int             // index of the next user to read
}

// lookupAll runs all lookups in one pipeline: one HMGET of reservations and one command
// for the waitlist per item.
func (g *Gate) lookupAll(ctx context.Context, lookups []lookup) []batch.Result[found] {
	pipe := g.readClient.Pipeline()
	records, waitlists := map[id.Item]*shared{}, map[id.Item]*redis.BoolCmd{}
	shards := map[id.Item]int{}
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
	redisconn.ExecEach(ctx, pipe)
	results := make([]batch.Result[found], len(lookups))
	for i, l := range lookups {
		results[i].Value, results[i].Err = l.read(records, waitlists)
	}
	return results
}

// read assembles the result of a lookup from the shared replies. Lookups must be read
// in the order in which their users were added.
func (l lookup) read(records map[id.Item]*shared, waitlists map[id.Item]*redis.BoolCmd) (f found, failed error) {
	f.reservations = map[id.Item]Reservation{}
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

// ReservationTasks returns the tasks of the users' reservations of an item, with one
// command. Users without a reservation are left out.
func (g *Gate) ReservationTasks(ctx context.Context, sale id.Sale, item id.Item, users []id.User) (map[id.User]id.Task,
	error) {
	tasks := map[id.User]id.Task{}
	if len(users) == 0 {
		return tasks, nil
	}
	fields := collect.Map(users, func(user id.User) string { return user.String() })
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

// CodeLeft returns how many units may still be bought with a code of a sale, by its key; all while the
// sale is not loaded.
func (g *Gate) CodeLeft(ctx context.Context, sale id.Sale, code person.Key) (int, error) {
	taken, err := g.readClient.HGet(ctx, g.keys.Units(id.ShardOf(sale), sale), string(code)).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("uses of a code of sale %s: %w", sale, err)
	}
	return max(0, code.Uses()-taken), nil
}

// CountFormer counts what a user has reserved in a sale, and the user's expiries, under further
// person keys, before the account is deleted. It returns the epoch of the gates; 0 = a gate is
// missing or being built, and nothing was changed. A second call changes nothing.
func (g *Gate) CountFormer(ctx context.Context, sale id.Sale, items []id.Item, user id.User,
	persons person.Keys) (epoch int64, err error) {
	shard := id.ShardOf(sale)
	keys := []string{g.keys.Units(shard, sale), g.keys.ExpiriesPrefix(shard, sale)}
	args := []any{user.String(), persons.String()}
	for _, item := range items {
		keys, args = append(keys, g.keys.Item(shard, item), g.keys.Reservations(shard, item)), append(args, item.String())
	}
	if epoch, err = countFormerScript.Run(ctx, g.client, keys, args...).Int64(); err != nil {
		return 0, fmt.Errorf("count a deleted account in sale %s: %w", sale, err)
	}
	return epoch, nil
}

// findPage is the COUNT of one HSCAN: it occupies Redis for less than 1 ms.
const findPage = 1_000

// errFound ends a scan early.
var errFound = errors.New("found")

// FoundTask is the reservation of a task.
type FoundTask struct {
	ItemRef
	Reservation
}

// FindTask returns the reservation of a task of a user among some items, or nil. While a
// gate is being built, its former reservations are found. A Nil user stands for any: all
// reservations of the items that the task may be of are read.
func (g *Gate) FindTask(ctx context.Context, items []ItemRef, task id.Task, user id.User) (*FoundTask, error) {
	for _, ref := range items {
		if !id.MayBeOf(task, ref.Sale, ref.Item) {
			continue
		}
		r, err := g.findIn(ctx, ref, task, user)
		if err != nil {
			return nil, fmt.Errorf("find task %s in item %s: %w", task, ref.Item, err)
		}
		if r != nil {
			return &FoundTask{ref, *r}, nil
		}
	}
	return nil, nil // no reservation is an answer
}

func (g *Gate) findIn(ctx context.Context, ref ItemRef, task id.Task, user id.User) (*Reservation, error) {
	shard := id.ShardOf(ref.Sale)
	former := g.keys.FormerReservations(shard, ref.Item)
	if user.IsZero() {
		r, err := g.scanFor(ctx, g.keys.Reservations(shard, ref.Item), task)
		if r == nil && err == nil {
			r, err = g.scanFor(ctx, former, task)
		}
		return r, err
	}
	held, err := g.Reservations(ctx, ref.Sale, []id.Item{ref.Item}, user)
	if err != nil {
		return nil, err
	}
	if r, ok := held[ref.Item]; ok {
		return ofTask(&r, task), nil
	}
	record, err := g.readClient.HGet(ctx, former, user.String()).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil // no reservation is an answer
	}
	if err != nil {
		return nil, err
	}
	r, err := ParseReservation(user, record)
	return ofTask(&r, task), err
}

// ofTask returns the reservation if it is of the task, else nil.
func ofTask(r *Reservation, task id.Task) *Reservation {
	if r.Task != task {
		return nil
	}
	return r
}

// scanFor looks for the reservation of a task in a hash of reservations.
func (g *Gate) scanFor(ctx context.Context, hash string, task id.Task) (found *Reservation, err error) {
	err = g.eachReservation(ctx, hash, func(page []Reservation) error {
		for _, r := range page {
			if r.Task == task {
				found = &r
				return errFound
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}
