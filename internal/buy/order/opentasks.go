package order

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/ent/orderfailure"
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
