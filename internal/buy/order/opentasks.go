package order

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	entorder "seckill/ent/order"
	"seckill/ent/orderfailure"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

const (
	// maxOpenTasks bounds the unfinished tasks that a Store remembers (30 MB): more than
	// maxNoted, which a lost gate adds at once. The oldest are dropped first.
	maxOpenTasks = 100_000
	// maxClaimants bounds the users whose claimed tasks a Store remembers.
	maxClaimants = 1 << 16
	// maxClaims bounds the claimed tasks of one user in memory, and those of one user and
	// item in Postgres: a user can make up ids.
	maxClaims = 4
)

// openTasks are the unfinished tasks that this process has returned. They stay known
// here when Redis loses their records.
type openTasks struct {
	mu sync.Mutex
	// tasks are those of which this process knows that they were accepted; guarded by mu.
	// Reads do not change their order.
	tasks *lru.Cache[id.Task, Task]
	// claimed are those that are known from their ids alone; guarded by mu; by user.
	claimed *lru.Cache[id.User, []Task]
}

func newOpenTasks() *openTasks {
	tasks, err := lru.New[id.Task, Task](maxOpenTasks)
	if err != nil {
		panic(err) // the size is a valid constant
	}
	claimed, err := lru.New[id.User, []Task](maxClaimants)
	if err != nil {
		panic(err) // as above
	}
	return &openTasks{tasks: tasks, claimed: claimed}
}

// note adds an unfinished task, and removes an ended one.
func (o *openTasks) note(t *Task) {
	if t == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case t.Ended():
		o.forget(t.User, t.ID)
	case t.Vanished:
		o.claim(t)
	default:
		o.accepted(t)
	}
}

// accepted adds a task that was accepted. The caller holds mu.
func (o *openTasks) accepted(t *Task) {
	if !o.tasks.Contains(t.ID) {
		o.forget(t.User, t.ID)
		o.tasks.Add(t.ID, *t)
	}
}

// claim adds a task that is known from its id alone. The caller holds mu.
func (o *openTasks) claim(t *Task) {
	claimed, _ := o.claimed.Peek(t.User)
	known := slices.ContainsFunc(claimed, func(c Task) bool { return c.ID == t.ID })
	if !known && len(claimed) < maxClaims {
		o.claimed.Add(t.User, append(slices.Clone(claimed), *t))
	}
}

// forget removes a task. The caller holds mu.
func (o *openTasks) forget(user id.User, task id.Task) {
	o.tasks.Remove(task)
	claimed, has := o.claimed.Peek(user)
	if !has {
		return
	}
	left := slices.DeleteFunc(slices.Clone(claimed), func(c Task) bool { return c.ID == task })
	if len(left) == 0 {
		o.claimed.Remove(user)
	} else if len(left) < len(claimed) {
		o.claimed.Add(user, left)
	}
}

// last returns the task as it was last noted, or nil.
func (o *openTasks) last(task id.Task, owner id.User) *Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.tasks.Peek(task); ok {
		return &t
	}
	claimed, _ := o.claimed.Peek(owner)
	if i := slices.IndexFunc(claimed, func(c Task) bool { return c.ID == task }); i >= 0 {
		return &claimed[i]
	}
	return nil
}

// Open returns the unfinished tasks that this Store has returned as SUBMITTED or that
// Superseded has added, and that were submitted before the given time. They may have
// ended: Unresolved excludes those.
func (s *Store) Open(before time.Time) []Task {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	var tasks []Task
	add := func(t Task) {
		if t.CreatedAt.Before(before) {
			tasks = append(tasks, t)
		}
	}
	for _, t := range s.open.tasks.Values() { // oldest first
		add(t)
	}
	for _, claimed := range s.open.claimed.Values() {
		for _, t := range claimed {
			add(t)
		}
	}
	return tasks
}

// Unresolved returns the tasks that have no end in Postgres. Open no longer returns the
// others.
func (s *Store) Unresolved(ctx context.Context, tasks []Task) ([]Task, error) {
	var open []Task
	for chunk := range slices.Chunk(tasks, endChunk) {
		ended, err := s.ended(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, t := range chunk {
			if ended[t.ID] {
				s.forgetOpen(t)
			} else {
				open = append(open, t)
			}
		}
	}
	return open, nil
}

func (s *Store) forgetOpen(t Task) {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	s.open.forget(t.User, t.ID)
}

// claim returns the task of an id that no store has, if its owner may have it: SUBMITTED
// until orderintake.LostTasks records its end. nil = there is no such task.
func (s *Store) claim(ctx context.Context, task id.Task, owner id.User) (*Task, error) {
	t, err := s.vanished.Task(ctx, task, owner)
	if t == nil || err != nil {
		return nil, err
	}
	before, err := s.db.Ent.OrderFailure.Query().
		Where(orderfailure.UserID(owner), orderfailure.ItemID(t.Item), orderfailure.Reason(ReasonVanished)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count vanished tasks of user %s: %w", owner, err)
	}
	if before >= maxClaims {
		return nil, nil // made up
	}
	s.open.note(t)
	return s.open.last(task, owner), nil
}

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
	ids := collect.Map(tasks, func(t Task) id.Task { return t.ID })
	written, err := s.db.Ent.Order.Query().Where(entorder.IDIn(id.As[id.Order](ids)...)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up orders of %d tasks: %w", len(ids), err)
	}
	failed, err := s.db.Ent.OrderFailure.Query().Where(orderfailure.IDIn(ids...)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up failures of %d tasks: %w", len(ids), err)
	}
	return collect.Set(append(failed, id.As[id.Task](written)...)), nil
}
