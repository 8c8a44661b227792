package orderintake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/periodic"
	"seckill/internal/reservation"
)

const (
	// lostAge is the age from which an unfinished task must have a reservation or a
	// message. A younger task is between the gate and the writer.
	lostAge = 10 * time.Second
	// lostAfter is how long a task must have had neither before it fails: a worker may
	// be writing it, and a gate that is being rebuilt has no reservations.
	lostAfter = 8 * time.Second
	// lostEvery is the pause between two searches.
	lostEvery = 2 * time.Second
	// maxLostCandidates bounds the tasks of one search.
	maxLostCandidates = 500
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
	// Reserved reports whether the user's reservation of an item belongs to the task.
	Reserved(ctx context.Context, t order.Task) (bool, error)
	// Epoch returns the epoch of an item's gate, 0 = unknown. With a higher epoch, the
	// tasks that this process accepted before are checked.
	Epoch(item id.Item) int64
}

// RedisGates are the gates in Redis with their copy in this process.
type RedisGates struct {
	Gate  *reservation.Gate
	Stock *reservation.StockCache
}

// Reserved implements Gates. A reservation may be counted by a build that is under way.
func (g RedisGates) Reserved(ctx context.Context, t order.Task) (bool, error) {
	if view, known := g.Stock.View(t.Item); known && view.State == reservation.GateLoading {
		return true, nil
	}
	held, err := g.Gate.Reservations(ctx, t.Sale, []id.Item{t.Item}, t.User)
	return held[t.Item].Task == t.ID, err
}

// Epoch implements Gates.
func (g RedisGates) Epoch(item id.Item) int64 {
	view, _ := g.Stock.View(item)
	return view.Epoch
}

// LostTasks fails tasks that have neither a reservation nor a message any more: Redis
// was emptied or restored from an older copy, or an entry was deleted. It checks the
// tasks that its Store has returned, and those that it accepted before a gate was lost,
// so each process runs its own.
type LostTasks struct {
	cfg     LostTasksConfig
	missing map[id.Task]time.Time // time since which a task has had neither
}

// NewLostTasks returns LostTasks. It is not safe for concurrent use.
func NewLostTasks(cfg LostTasksConfig) *LostTasks {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	return &LostTasks{cfg: cfg, missing: map[id.Task]time.Time{}}
}

// Loop returns the loop that fails lost tasks.
func (l *LostTasks) Loop() periodic.Loop {
	return periodic.Loop{Name: "lost tasks", Every: lostEvery, Timeout: time.Minute, Step: l.Step, Log: l.cfg.Log}
}

// Step checks the unresolved tasks once. It is a periodic.Step. A task whose
// reservation or messages cannot be read is left unchanged.
func (l *LostTasks) Step(ctx context.Context) (map[string]int, error) {
	now := l.cfg.Clock.Now()
	if _, err := l.cfg.Orders.Superseded(ctx, l.cfg.Gates.Epoch); err != nil {
		return nil, err
	}
	tasks, err := l.cfg.Orders.Unresolved(ctx, now.Add(-lostAge), maxLostCandidates)
	if err != nil {
		return nil, err
	}
	byShard := map[int][]order.Task{}
	for _, t := range tasks {
		byShard[id.ShardOf(t.Sale)] = append(byShard[id.ShardOf(t.Sale)], t)
	}
	missing := map[id.Task]time.Time{}
	var failed []error
	var nowhere []order.Task
	for shard, tasks := range byShard {
		found, err := l.nowhere(ctx, shard, tasks)
		if err != nil { // the server of the other shards may be another one
			failed = append(failed, err)
			for _, t := range tasks {
				if since, known := l.missing[t.ID]; known {
					missing[t.ID] = since
				}
			}
		}
		nowhere = append(nowhere, found...)
	}
	counts := map[string]int{}
	for _, t := range nowhere {
		since, known := l.missing[t.ID]
		if !known {
			since = now
		}
		missing[t.ID] = since
		if now.Sub(since) < lostAfter {
			continue
		}
		if err := l.fail(ctx, t); err != nil {
			failed = append(failed, err)
			continue
		}
		counts["failed"]++
	}
	l.missing = missing
	return counts, errors.Join(failed...)
}

// nowhere returns those tasks of a shard that have neither a reservation nor a message.
func (l *LostTasks) nowhere(ctx context.Context, shard int, tasks []order.Task) ([]order.Task, error) {
	var without []order.Task
	for _, t := range tasks {
		reserved, err := l.cfg.Gates.Reserved(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("read reservation of task %s: %w", t.ID, err)
		}
		if !reserved {
			without = append(without, t)
		}
	}
	if len(without) == 0 {
		return nil, nil
	}
	queued, err := l.cfg.Backlog.tasksIn(ctx, map[int]bool{shard: true})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(without, func(t order.Task) bool { return queued[t.ID] }), nil
}

func (l *LostTasks) fail(ctx context.Context, t order.Task) error {
	end, err := l.cfg.Writer.FailLostTask(ctx, &t, order.ReasonLost)
	if err != nil {
		return err
	}
	l.cfg.Log.ErrorContext(ctx, "task was lost", slog.String("task", t.ID.Public()), slog.String("status", string(end.Task.Status)))
	return nil
}
