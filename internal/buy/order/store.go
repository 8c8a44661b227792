package order

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// taskTrust is how long a SUBMITTED record in Redis is used without reading
	// Postgres. The writer needs far less time, and its update of Redis may be lost.
	taskTrust = 3 * time.Second
	// orderTrust is how long the copy of an order that may still change is used, for
	// the same reason.
	orderTrust = 3 * time.Second
	// maxIDs bounds a lookup by ids.
	maxIDs = 1000
)

// StoreConfig holds the dependencies of a Store.
type StoreConfig struct {
	DB    *postgres.DB
	Cache *Cache // nil = read Postgres only
	// Submitted finds tasks whose order is not written yet; a zero owner stands for any
	// user. nil = there are none.
	Submitted TaskFinder
	// Vanished returns a SUBMITTED task for an id of the owner that neither Redis nor
	// Postgres has, if it may have been accepted; nil = all of them are unknown.
	Vanished TaskFinder
	Clock    clock.Clock // nil = clock.System
	Log      *slog.Logger
}

// TaskFinder finds tasks that this package does not store.
type TaskFinder interface {
	// Task returns the task of a user, or nil when there is none.
	Task(ctx context.Context, task id.Task, owner id.User) (*Task, error)
}

// noTasks is the TaskFinder that finds none.
type noTasks struct{}

func (noTasks) Task(context.Context, id.Task, id.User) (*Task, error) {
	return nil, nil
}

// Store reads tasks and orders: from Redis while its copies are recent enough,
// otherwise from Postgres. Only OrderFor checks that the user may see an order. Reads
// write nothing but copies. A task that Task returned as SUBMITTED is remembered in this
// process until it ends: orderintake.LostTasks looks for those whose message is lost.
type Store struct {
	db        *postgres.DB
	cache     *Cache
	submitted TaskFinder
	vanished  TaskFinder
	clock     clock.Clock
	open      *openTasks
	accepted  *acceptedTasks
	log       *slog.Logger
}

// NewStore returns a store.
func NewStore(cfg StoreConfig) *Store {
	s := &Store{
		db: cfg.DB, cache: cfg.Cache, submitted: cfg.Submitted, vanished: cfg.Vanished, clock: cfg.Clock,
		open: newOpenTasks(), accepted: newAcceptedTasks(), log: cfg.Log,
	}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	if s.submitted == nil {
		s.submitted = noTasks{}
	}
	if s.vanished == nil {
		s.vanished = noTasks{}
	}
	return s
}

// Task returns the current state of a task, or nil when it is unknown. The owner is the
// user whose reservation shows that the task is SUBMITTED; Nil stands for any user and
// is slow. The owner is not checked: an ended task is returned for any. A task that is
// still SUBMITTED after taskTrust is looked up in Postgres, because Redis may have
// missed its end. A task that this process has returned stays known when Redis loses
// its record; orderintake.LostTasks ends it. So that all processes give the same answer,
// one that no store has, and whose id is of the owner, is SUBMITTED until its end is in
// Postgres.
func (s *Store) Task(ctx context.Context, id id.Task, owner id.User) (*Task, error) {
	t, err := s.task(ctx, id, owner)
	return t.at(s.clock.Now()), err
}

func (s *Store) task(ctx context.Context, id id.Task, owner id.User) (*Task, error) {
	record, cacheErr := s.record(ctx, id, owner)
	if cacheErr != nil {
		s.log.WarnContext(ctx, "read task record", slog.Any("error", cacheErr))
	}
	s.open.note(record)
	if record != nil && (record.Ended() || s.clock.Now().Sub(record.CreatedAt) < taskTrust) {
		return record, nil
	}
	ended, err := s.endedTask(ctx, id)
	switch {
	case err != nil && record != nil:
		return record, nil // correct, though it may be old
	case err != nil:
		return nil, err
	case ended != nil:
		s.open.note(ended)
		return ended, nil
	case record != nil:
		return record, nil
	}
	if record = s.open.last(id, owner); record == nil && cacheErr == nil && owner.IsZero() {
		record, cacheErr = s.submitted.Task(ctx, id, owner)
	}
	if record == nil && cacheErr != nil {
		return nil, fmt.Errorf("look up task %s: %w", id, cacheErr) // it may be SUBMITTED
	}
	if record == nil && !owner.IsZero() {
		return s.claim(ctx, id, owner)
	}
	s.open.note(record)
	return record, nil
}

// record returns what Redis knows of a task: the copy of its end, or the reservation of
// its owner.
func (s *Store) record(ctx context.Context, id id.Task, owner id.User) (record *Task, err error) {
	if s.cache != nil {
		if record, err = s.cache.task(ctx, id); record != nil || err != nil {
			return record, err
		}
	}
	if owner.IsZero() {
		return nil, nil
	}
	return s.submitted.Task(ctx, id, owner)
}

// endedTask returns the end of a task from Postgres, or nil, and copies it to Redis.
func (s *Store) endedTask(ctx context.Context, taskID id.Task) (*Task, error) {
	row, err := s.db.Ent.Order.Get(ctx, id.Order(taskID))
	if err == nil {
		o := FromRow(row)
		s.remember(ctx, nil, []*Order{o})
		t := o.Task()
		return &t, nil
	}
	if !ent.IsNotFound(err) {
		return nil, fmt.Errorf("look up order of task %s: %w", taskID, err)
	}
	failed, err := s.db.Ent.OrderFailure.Get(ctx, taskID)
	if err == nil {
		t := failureFromRow(failed).Task()
		s.remember(ctx, []Task{t}, nil)
		return &t, nil
	}
	if !ent.IsNotFound(err) {
		return nil, fmt.Errorf("look up failure of task %s: %w", taskID, err)
	}
	return nil, nil // not ended is an answer
}

// Order returns an order, or nil when it does not exist. It may be up to orderTrust
// old; Reload is not.
func (s *Store) Order(ctx context.Context, orderID id.Order) (*Order, error) {
	found, err := s.Orders(ctx, []id.Order{orderID})
	return found[orderID], err
}

// OrderFor returns an order if the user may see it: their own, or any order for an
// operator. For an order of another user it returns nil, as for one that does not
// exist.
func (s *Store) OrderFor(ctx context.Context, id id.Order, user id.User, operator bool) (*Order, error) {
	o, err := s.Order(ctx, id)
	if err != nil || o == nil || (o.User != user && !operator) {
		return nil, err
	}
	return o, nil
}

// NumberFor is OrderFor for the order with a number.
func (s *Store) NumberFor(ctx context.Context, number string, user id.User, operator bool) (*Order, error) {
	row, err := s.db.Ent.Order.Query().Where(entorder.Number(strings.ToUpper(strings.TrimSpace(number)))).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read order by number: %w", err)
	}
	return s.OrderFor(ctx, row.ID, user, operator)
}

// Reload returns an order from Postgres, or nil.
func (s *Store) Reload(ctx context.Context, orderID id.Order) (*Order, error) {
	found, err := s.reload(ctx, []id.Order{orderID})
	return found[orderID], err
}

// Orders returns the existing orders among up to maxIDs ids, as Order does.
func (s *Store) Orders(ctx context.Context, ids []id.Order) (map[id.Order]*Order, error) {
	if len(ids) > maxIDs {
		return nil, fmt.Errorf("look up %d orders: at most %d", len(ids), maxIDs)
	}
	found := make(map[id.Order]*Order, len(ids))
	missing := ids
	if s.cache != nil && len(ids) > 0 {
		records, err := s.cache.orders(ctx, id.As[id.Task](ids))
		if err != nil {
			s.log.WarnContext(ctx, "order records", slog.Any("error", err))
		}
		missing = nil
		now := s.clock.Now()
		for _, orderID := range ids {
			if r, ok := records[id.Task(orderID)]; ok &&
				(r.Status.Ended() || now.Sub(time.UnixMilli(r.CopiedAtMs)) < orderTrust) {
				found[orderID] = r.Order
			} else {
				missing = append(missing, orderID)
			}
		}
	}
	read, err := s.reload(ctx, missing)
	for id, o := range read {
		found[id] = o
	}
	return found, err
}

// reload reads orders from Postgres and copies them to Redis.
func (s *Store) reload(ctx context.Context, ids []id.Order) (map[id.Order]*Order, error) {
	if len(ids) == 0 {
		return nil, nil // a nil map reads as empty
	}
	rows, err := s.db.Ent.Order.Query().Where(entorder.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up %d orders: %w", len(ids), err)
	}
	found := make(map[id.Order]*Order, len(rows))
	copies := make([]*Order, 0, len(rows))
	for _, row := range rows {
		o := FromRow(row)
		found[o.ID] = o
		copies = append(copies, o)
	}
	s.remember(ctx, nil, copies)
	return found, nil
}

// remember copies orders and tasks to Redis. After a failure the next read queries
// Postgres again.
func (s *Store) remember(ctx context.Context, tasks []Task, orders []*Order) {
	if s.cache == nil || len(tasks)+len(orders) == 0 {
		return
	}
	if err := s.cache.Put(ctx, tasks, orders); err != nil && !errors.Is(err, context.Canceled) {
		s.log.WarnContext(ctx, "copy to redis", slog.Any("error", err))
	}
}
