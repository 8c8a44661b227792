package order

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/internal/id"
)

// maxOpenTasks bounds the unfinished tasks that a Store remembers; the oldest are dropped
// first.
const maxOpenTasks = 20_000

// openTasks are the unfinished tasks that this process has returned. They stay known
// here when Redis loses their records.
type openTasks struct {
	mu    sync.Mutex
	tasks *lru.Cache[id.Task, Task] // guarded by mu
}

func newOpenTasks() *openTasks {
	tasks, err := lru.New[id.Task, Task](maxOpenTasks)
	if err != nil {
		panic(err) // the size is a valid constant
	}
	return &openTasks{tasks: tasks}
}

// note adds an unfinished task, and removes an ended one.
func (o *openTasks) note(t *Task) {
	if t == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.Ended() {
		o.tasks.Remove(t.ID)
	} else if !o.tasks.Contains(t.ID) {
		o.tasks.Add(t.ID, *t)
	}
}

// last returns the task as it was last noted, or nil.
func (o *openTasks) last(id id.Task) *Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.tasks.Get(id); ok {
		return &t
	}
	return nil
}

// before returns up to limit tasks submitted before the given time.
func (o *openTasks) before(at time.Time, limit int) []Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	var tasks []Task
	for _, id := range o.tasks.Keys() { // least recently used first
		if t, ok := o.tasks.Peek(id); ok && t.CreatedAt.Before(at) {
			if tasks = append(tasks, t); len(tasks) == limit {
				break
			}
		}
	}
	return tasks
}

// Unresolved returns up to limit tasks that this Store has returned as SUBMITTED or that
// Superseded has added, that were submitted before the given time, and that have no end
// in Postgres.
func (s *Store) Unresolved(ctx context.Context, before time.Time, limit int) ([]Task, error) {
	tasks := s.open.before(before, limit)
	if len(tasks) == 0 {
		return nil, nil
	}
	ended, err := s.ended(ctx, tasks)
	if err != nil {
		return nil, err
	}
	for id := range ended {
		s.open.forget(id)
	}
	open := tasks[:0]
	for _, t := range tasks {
		if !ended[t.ID] {
			open = append(open, t)
		}
	}
	return open, nil
}

func (o *openTasks) forget(id id.Task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tasks.Remove(id)
}
