package order

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// aliveAge is the age from which a task that has not ended must be held by
	// somebody: younger ones are between the gate and the writer.
	aliveAge = 10 * time.Second
	// lostAfter is how long nothing may be known of a task before it counts as lost:
	// a worker may have its message in hand, and a gate that is built anew knows
	// nobody for a moment.
	lostAfter = 8 * time.Second
	// maxWatched bounds the tasks that are remembered as not ended.
	maxWatched = 20_000
)

// Losses is how a Store tells that a task was lost: Redis was emptied or restored
// from an hour ago, an entry was deleted. Whoever asks for such a task would see it
// queued for ever, or not at all.
type Losses struct {
	// Alive reports whether anything still stands for a task that has not ended:
	// units held, a message.
	Alive func(ctx context.Context, t *Task) (bool, error)
	// Lost ends a task as failed, for good, and tells everybody; it returns how the
	// task ended, which may be otherwise.
	Lost func(ctx context.Context, t *Task) (*Task, error)
}

// watched are tasks that were seen and have not ended.
type watched struct {
	losses Losses

	mu    sync.Mutex
	tasks *lru.Cache[uuid.UUID, *watchedTask] // guarded by mu
}

type watchedTask struct {
	task  Task
	since time.Time // since when nothing stands for it; zero = all is well
}

func newWatched(losses *Losses) *watched {
	if losses == nil {
		return nil
	}
	tasks, err := lru.New[uuid.UUID, *watchedTask](maxWatched)
	if err != nil {
		panic(err) // the size is a constant
	}
	return &watched{losses: *losses, tasks: tasks}
}

// saw notes how a task stands.
func (w *watched) saw(t *Task) {
	if w == nil || t == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Ended() {
		w.tasks.Remove(t.ID)
	} else if _, known := w.tasks.Get(t.ID); !known {
		w.tasks.Add(t.ID, &watchedTask{task: *t})
	}
}

// last returns the last that was seen of a task, nil when it never was.
func (w *watched) last(id uuid.UUID) *Task {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.tasks.Get(id); ok {
		t := known.task
		return &t
	}
	return nil
}

// missing notes whether nothing stands for a task, and reports whether that has
// been so for long enough.
func (w *watched) missing(id uuid.UUID, nothing bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.tasks.Get(id)
	switch {
	case !ok:
		return false
	case !nothing:
		known.since = time.Time{}
		return false
	case known.since.IsZero():
		known.since = now
	}
	return now.Sub(known.since) >= lostAfter
}

// doubt looks whether anything stands for a task that has not ended, and ends it
// when nothing has for long enough. What cannot be looked up changes nothing.
func (s *Store) doubt(ctx context.Context, t *Task) (*Task, error) {
	now := s.clock.Now()
	if s.watched == nil || now.Sub(t.CreatedAt) < aliveAge {
		return t, nil
	}
	alive, err := s.watched.losses.Alive(ctx, t)
	if err != nil {
		s.log.WarnContext(ctx, "look whether a task is lost", slog.String("task", t.ID.String()), slog.Any("error", err))
		return t, nil
	}
	if !s.watched.missing(t.ID, !alive, now) {
		return t, nil
	}
	ended, err := s.watched.losses.Lost(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("end lost task %s: %w", t.ID, err)
	}
	s.watched.saw(ended)
	return ended, nil
}
