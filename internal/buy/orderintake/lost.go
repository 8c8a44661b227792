package orderintake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
)

const (
	// lostAge is the age from which an unfinished task must have a reservation or a
	// message. A younger task is between the gate and the writer.
	lostAge = 10 * time.Second
	// lostAfter is how long a task must have had neither before it fails: a worker may
	// be writing it.
	lostAfter = 8 * time.Second
	// unbuiltAfter is lostAfter while the gate is lost and not built again: the build waits
	// for the messages that workers are handling.
	unbuiltAfter = 20 * time.Second
	// lostEvery is the pause between two searches.
	lostEvery = 2 * time.Second
	// maxReserved bounds the tasks with a reservation whose end a search looks up.
	maxReserved = 1000
)

// LostTasksConfig holds the dependencies of LostTasks.
type LostTasksConfig struct {
	Orders  *order.Store
	Writer  *order.Writer
	Backlog *Backlog
	Gates   Gates
	Clock   clock.Clock // nil = clock.System
	Log     *slog.Logger
}

// Gates is what LostTasks reads of the gates.
type Gates interface {
	// Missing returns those tasks of one sale and item whose users' reservations are not of
	// them, and whether the gate is built. None is missing while it is being built.
	Missing(ctx context.Context, of reservation.ItemRef, tasks []order.Task) (missing []order.Task, built bool, err error)
	// Epoch returns the epoch of an item's gate, 0 = unknown. With a higher epoch, the
	// tasks that this process accepted before are checked.
	Epoch(item id.Item) int64
}

// RedisGates are the gates in Redis with their copy in this process.
type RedisGates struct {
	Gate  *reservation.Gate
	Stock *reservation.StockCache
	Items reservation.Items
}

// maxUsers bounds the users of one command.
const maxUsers = 1000

// Missing implements Gates. The gate of a sale that is over need not exist.
func (g RedisGates) Missing(ctx context.Context, of reservation.ItemRef, tasks []order.Task) (missing []order.Task,
	built bool, err error) {
	for part := range slices.Chunk(tasks, maxUsers) {
		users := collect.Map(part, func(t order.Task) id.User { return t.User })
		held, err := g.Gate.ReservationTasks(ctx, of.Sale, of.Item, users)
		if err != nil {
			return nil, false, err
		}
		for _, t := range part {
			if held[t.User] != t.ID {
				missing = append(missing, t)
			}
		}
	}
	if len(missing) == 0 {
		return nil, true, nil
	}
	loaded, err := g.Items.Loaded(ctx)
	if err != nil || !slices.Contains(loaded, of) {
		return missing, true, err
	}
	state, err := g.Gate.State(ctx, of.Sale, of.Item)
	if err != nil {
		return nil, false, err
	}
	if state.Gate == reservation.GateLoading {
		return nil, false, nil
	}
	return missing, state.Gate != "" && !state.Stale, nil
}

// Epoch implements Gates.
func (g RedisGates) Epoch(item id.Item) int64 {
	view, _ := g.Stock.View(item)
	return view.Epoch
}

// LostTasks fails tasks that have neither a reservation nor a message left: Redis
// was emptied or restored from an older copy, or an entry was deleted. It checks the
// tasks that its Store has returned, and those that it accepted before a gate was lost,
// so each process runs its own. The row in Postgres is the end of the task: no process
// answers FAILED before it is there. If the message is found after all, the writer finds
// the row, and the units of the message are released.
type LostTasks struct {
	cfg     LostTasksConfig
	missing map[id.Task]time.Time // time since which a task has had neither
	next    int                   // index of the next task with a reservation whose end is looked up
}

// NewLostTasks returns LostTasks. It is not safe for concurrent use.
func NewLostTasks(cfg LostTasksConfig) *LostTasks {
	cfg.Clock = clock.OrSystem(cfg.Clock)
	return &LostTasks{cfg: cfg, missing: map[id.Task]time.Time{}}
}

// Loop returns the loop that fails lost tasks.
func (l *LostTasks) Loop() periodic.Loop {
	return periodic.Loop{Name: "lost tasks", Every: lostEvery, Timeout: time.Minute, Step: l.Step, Log: l.cfg.Log}
}

// search is the result of one search for lost tasks.
type search struct {
	missing  map[id.Task]time.Time
	lost     []order.Task
	reserved []order.Task
}

// Step checks the unresolved tasks once. It is a periodic.Step. A task whose
// reservation or messages cannot be read is left unchanged.
func (l *LostTasks) Step(ctx context.Context) (map[string]int, error) {
	now := l.cfg.Clock.Now()
	if _, err := l.cfg.Orders.Superseded(ctx, l.cfg.Gates.Epoch); err != nil {
		return nil, err
	}
	byShard := map[int]map[reservation.ItemRef][]order.Task{}
	for _, t := range l.cfg.Orders.Open(now.Add(-lostAge)) {
		shard, ref := id.ShardOf(t.Sale), reservation.ItemRef{Sale: t.Sale, Item: t.Item}
		if byShard[shard] == nil {
			byShard[shard] = map[reservation.ItemRef][]order.Task{}
		}
		byShard[shard][ref] = append(byShard[shard][ref], t)
	}
	found := search{missing: map[id.Task]time.Time{}}
	var failed []error
	for shard, items := range byShard {
		if err := l.look(ctx, shard, items, now, &found); err != nil { // other shards may be on another server
			failed = append(failed, err)
		}
	}
	l.missing = found.missing
	counts, err := l.fail(ctx, found.lost)
	return counts, errors.Join(append(failed, err, l.forgetEnded(ctx, found.reserved))...)
}

func (l *LostTasks) look(ctx context.Context, shard int, items map[reservation.ItemRef][]order.Task, now time.Time,
	found *search) (err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, tasks := range items { // nothing is known about them
			for _, t := range tasks {
				if since, known := l.missing[t.ID]; known {
					found.missing[t.ID] = since
				}
			}
		}
	}()
	var without []order.Task
	patience := map[id.Item]time.Duration{}
	for ref, tasks := range items {
		missing, built, err := l.cfg.Gates.Missing(ctx, ref, tasks)
		if err != nil {
			return fmt.Errorf("read reservations of %d tasks: %w", len(tasks), err)
		}
		patience[ref.Item] = lostAfter
		if !built {
			patience[ref.Item] = unbuiltAfter
		}
		without = append(without, missing...)
		found.reserved = append(found.reserved, except(tasks, missing)...)
	}
	if without, err = l.cfg.Orders.Unresolved(ctx, without); err != nil || len(without) == 0 {
		return err
	}
	queued, err := l.cfg.Backlog.tasksIn(ctx, shard)
	if err != nil {
		return err
	}
	for _, t := range without {
		if queued[t.ID] {
			continue
		}
		since, known := l.missing[t.ID]
		if !known {
			since = now
		}
		found.missing[t.ID] = since
		if now.Sub(since) >= patience[t.Item] {
			found.lost = append(found.lost, t)
		}
	}
	return nil
}

func except(tasks, others []order.Task) []order.Task {
	if len(others) == 0 {
		return tasks
	}
	leave := make(map[id.Task]bool, len(others))
	for _, t := range others {
		leave[t.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t order.Task) bool { return leave[t.ID] })
}

// fail records the ends of lost tasks.
func (l *LostTasks) fail(ctx context.Context, lost []order.Task) (map[string]int, error) {
	counts := map[string]int{}
	byReason := map[string][]order.Task{}
	for _, t := range lost {
		reason := order.ReasonLost
		if t.Vanished {
			reason = order.ReasonVanished
		}
		byReason[reason] = append(byReason[reason], t)
	}
	var failed []error
	for reason, tasks := range byReason {
		var ended []string // by this call
		for _, result := range l.cfg.Writer.FailLostTasks(ctx, tasks, reason) {
			if result.Err != nil {
				failed = append(failed, result.Err)
			} else if !result.Replayed {
				ended = append(ended, result.Task.ID.Public())
			}
		}
		if len(ended) > 0 {
			counts["failed"] += len(ended)
			l.cfg.Log.ErrorContext(ctx, "tasks were lost", slog.Int("count", len(ended)), slog.String("reason", reason),
				slog.Any("tasks", ended[:min(len(ended), maxNamed)]))
		}
	}
	if len(failed) > maxNamed {
		failed = append(failed[:maxNamed], fmt.Errorf("and %d more tasks", len(failed)-maxNamed))
	}
	return counts, errors.Join(failed...)
}

// maxNamed bounds the tasks in one line of the log.
const maxNamed = 20

// forgetEnded makes the store forget tasks whose reservations belong to an order by now,
// some in each step.
func (l *LostTasks) forgetEnded(ctx context.Context, reserved []order.Task) error {
	if l.next >= len(reserved) {
		l.next = 0
	}
	part := reserved[l.next:min(l.next+maxReserved, len(reserved))]
	l.next += len(part)
	_, err := l.cfg.Orders.Unresolved(ctx, part)
	return err
}
