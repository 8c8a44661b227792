package order

import (
	"context"
	"fmt"
	"sync"

	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/internal/platform/id"
)

const (
	// maxNoted bounds the accepted tasks that a Store remembers (13 MB); the oldest are
	// forgotten first.
	maxNoted = 1 << 16
	// endChunk bounds the tasks of one query.
	endChunk = 1000
)

// noted is a task that the gate of an epoch accepted.
type noted struct {
	task  Task
	epoch int64
}

// acceptedTasks are the newest tasks that this process has accepted. Redis may lose them
// with the writes of its last seconds; the gate then gets a higher epoch.
type acceptedTasks struct {
	mu     sync.Mutex
	ring   []noted           // guarded by mu; grows up to maxNoted
	next   int               // guarded by mu; the place of the next task in a full ring
	lowest map[id.Item]int64 // guarded by mu; by item: the lowest epoch of its tasks, or a lower one
}

func newAcceptedTasks() *acceptedTasks { return &acceptedTasks{lowest: map[id.Item]int64{}} }

// NoteAccepted remembers a task that the gate of an epoch has accepted: Superseded finds
// it when that gate is lost.
func (s *Store) NoteAccepted(t Task, epoch int64) {
	a := s.accepted
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(noted{t, epoch})
}

func (a *acceptedTasks) add(n noted) {
	if low, known := a.lowest[n.task.Item]; !known || n.epoch < low {
		a.lowest[n.task.Item] = n.epoch
	}
	if len(a.ring) < maxNoted {
		a.ring = append(a.ring, n)
		return
	}
	a.ring[a.next] = n
	a.next = (a.next + 1) % maxNoted
}

// Superseded adds tasks to those of Open that were accepted by a gate with a lower
// epoch than its item has now, and that have no end in Postgres; each once. epochOf
// returns the epoch of an item's gate, 0 = unknown. It returns how many it added.
func (s *Store) Superseded(ctx context.Context, epochOf func(item id.Item) int64) (added int, err error) {
	due := s.accepted.fromOldGates(epochOf)
	open, err := s.Unresolved(ctx, due)
	if err != nil {
		return 0, err
	}
	for i := range open {
		s.open.note(&open[i])
	}
	s.accepted.forget(due)
	return len(open), nil
}

// fromOldGates returns the tasks that a gate with a lower epoch accepted.
func (a *acceptedTasks) fromOldGates(epochOf func(item id.Item) int64) (due []Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[id.Item]int64{}
	for item, low := range a.lowest {
		if epoch := epochOf(item); low < epoch {
			now[item] = epoch
		}
	}
	if len(now) == 0 {
		return nil
	}
	for i := range a.ring {
		if n := &a.ring[i]; n.epoch < now[n.task.Item] {
			due = append(due, n.task)
		}
	}
	if len(due) == 0 { // the ring has dropped them
		a.keep(func(noted) bool { return true })
	}
	return due
}

func (a *acceptedTasks) forget(tasks []Task) {
	if len(tasks) == 0 {
		return
	}
	gone := make(map[id.Task]bool, len(tasks))
	for _, t := range tasks {
		gone[t.ID] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keep(func(n noted) bool { return !gone[n.task.ID] })
}

// keep rebuilds the ring from the tasks to be kept, oldest first.
func (a *acceptedTasks) keep(keep func(noted) bool) {
	old, first := a.ring, a.next
	a.ring, a.next = nil, 0
	clear(a.lowest)
	for i := range old {
		if n := old[(first+i)%len(old)]; keep(n) {
			a.add(n)
		}
	}
}

// ended returns which of some tasks have an end in Postgres.
func (s *Store) ended(ctx context.Context, tasks []Task) (map[id.Task]bool, error) {
	ids := make([]id.Task, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	written, err := s.db.Ent.Order.Query().Where(entorder.IDIn(id.As[id.Order](ids)...)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up orders of %d tasks: %w", len(ids), err)
	}
	failed, err := s.db.Ent.OrderFailure.Query().Where(orderfailure.IDIn(ids...)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up failures of %d tasks: %w", len(ids), err)
	}
	ended := make(map[id.Task]bool, len(written)+len(failed))
	for _, id := range append(failed, id.As[id.Task](written)...) {
		ended[id] = true
	}
	return ended, nil
}
