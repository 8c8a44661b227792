package order

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/internal/id"
)

// maxWatched bounds the unfinished tasks that a Store remembers; the oldest are dropped
// first.
const maxWatched = 20_000

// watchedTasks are the unfinished tasks that this process has returned. They stay known
// here when Redis loses their records.
type watchedTasks struct {
	mu    sync.Mutex
	tasks *lru.Cache[id.Task, Task] // guarded by mu
}

func newWatchedTasks() *watchedTasks {
	tasks, err := lru.New[id.Task, Task](maxWatched)
	if err != nil {
		panic(err) // the size is a valid constant
	}
	return &watchedTasks{tasks: tasks}
}

// note adds an unfinished task, and removes an ended one.
func (w *watchedTasks) note(t *Task) {
	if t == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Ended() {
		w.tasks.Remove(t.ID)
	} else if !w.tasks.Contains(t.ID) {
		w.tasks.Add(t.ID, *t)
	}
}

// last returns the task as it was last noted, or nil.
func (w *watchedTasks) last(id id.Task) *Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.tasks.Get(id); ok {
		return &t
	}
	return nil
}

// before returns up to limit tasks submitted before the given time.
func (w *watchedTasks) before(at time.Time, limit int) []Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	var tasks []Task
	for _, id := range w.tasks.Keys() { // least recently used first
		if t, ok := w.tasks.Peek(id); ok && t.CreatedAt.Before(at) {
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
	tasks := s.watched.before(before, limit)
	if len(tasks) == 0 {
		return nil, nil
	}
	ended, err := s.ended(ctx, tasks)
	if err != nil {
		return nil, err
	}
	for id := range ended {
		s.watched.forget(id)
	}
	open := tasks[:0]
	for _, t := range tasks {
		if !ended[t.ID] {
			open = append(open, t)
		}
	}
	return open, nil
}

func (w *watchedTasks) forget(id id.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks.Remove(id)
}
