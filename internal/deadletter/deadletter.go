// Package deadletter is the desk for messages that nobody could handle: it shows
// operators what was set aside, puts it back into its stream or drops it, and
// ends the order tasks that wait for such a message.
//
//	set aside ──► waiting, its task SUBMITTED, its units held
//	                 │ replayed: the message is back, and handled as if it had just come
//	                 │ dropped:  the task ends as failed, its units go back on sale
//	                 └ nobody decides within Patience: as if dropped, and the letter
//	                   stays for who wants to know why
//
// It owns the log of what operators decided. It does not own the letters, nor how
// messages come to be set aside (package stream), nor how tasks end (package order).
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"seckill/internal/clock"
	"seckill/internal/id"
	"seckill/internal/order"
	"seckill/internal/periodic"
	"seckill/internal/postgres"
	"seckill/internal/stream"
)

const (
	// Patience is how long the task of a message that was set aside waits for an
	// operator: the buyer sees it as queued, and its units are nobody else's.
	Patience = 5 * time.Minute
	// every is how often the desk looks for tasks that have waited too long.
	every = 5 * time.Second
	// page bounds one read of letters.
	page = 200
	// orderStreams is how the keys of the streams of orders end.
	orderStreams = ":orders"
)

// Config is what a Queue is made of.
type Config struct {
	DB       *postgres.DB
	Letters  *stream.DeadLetters
	Orders   *order.Store
	Writer   *order.Writer // ends tasks
	Patience time.Duration // 0 = Patience
	Clock    clock.Clock   // nil = clock.System
	Log      *slog.Logger
}

// Queue is what is done with letters. It is safe for concurrent use, on any number
// of processes.
type Queue struct {
	cfg Config

	mu     sync.Mutex
	failed map[string]bool // letters whose task was failed up here; guarded by mu
}

// New returns a desk.
func New(cfg Config) *Queue {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	if cfg.Patience == 0 {
		cfg.Patience = Patience
	}
	return &Queue{cfg: cfg, failed: map[string]bool{}}
}

// Letter is a message that was set aside.
type Letter struct {
	stream.Letter
	Task *order.Task // the order task it stands for, as it is now; nil = none, or unknown

	request *order.Requested // what the message asks for; nil when it cannot be read
}

// List returns up to limit letters behind the one with id after, oldest first;
// "" begins at the first. Their fields are left out.
func (q *Queue) List(ctx context.Context, after string, limit int) ([]*Letter, error) {
	raw, err := q.cfg.Letters.List(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	letters := make([]*Letter, len(raw))
	for i := range raw {
		letters[i] = &Letter{Letter: raw[i]}
		if letters[i].Task, err = q.taskOf(ctx, raw[i]); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// Letter returns one letter with its fields; nil when there is none with that id.
func (q *Queue) Letter(ctx context.Context, letterID string) (*Letter, error) {
	l, err := q.read(ctx, letterID)
	if l == nil || err != nil {
		return nil, err
	}
	l.Task, err = q.taskOf(ctx, l.Letter)
	return l, err
}

// read returns a letter as Letter does, without its task. Whether a task is alive
// is asked of the letters: who reads them for that must not ask about tasks.
func (q *Queue) read(ctx context.Context, letterID string) (*Letter, error) {
	raw, err := q.cfg.Letters.Inspect(ctx, letterID)
	if raw == nil {
		return nil, err
	}
	l := &Letter{Letter: *raw}
	if msg, ok := raw.Message(); ok && strings.HasSuffix(raw.Stream, orderStreams) {
		if request, err := order.Decode(msg); err == nil {
			l.request = &request
		}
	}
	return l, nil
}

// taskOf returns the task that a message of an order stream stands for: its id is
// the message's.
func (q *Queue) taskOf(ctx context.Context, l stream.Letter) (*order.Task, error) {
	task, err := uuid.Parse(l.MessageID)
	if err != nil || !strings.HasSuffix(l.Stream, orderStreams) {
		return nil, nil //nolint:nilerr,nilnil // it stands for none
	}
	t, err := q.cfg.Orders.Task(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("task of dead letter %s: %w", l.ID, err)
	}
	return t, nil
}

// Waiting returns what the letters of a stream ask for that can be read: their
// units are held as those of messages are that nobody has handled yet.
func (q *Queue) Waiting(ctx context.Context, key string) ([]order.Requested, error) {
	var waiting []order.Requested
	err := q.each(ctx, func(l stream.Letter) error {
		if l.Stream != key {
			return nil
		}
		whole, err := q.read(ctx, l.ID)
		if err == nil && whole != nil && whole.request != nil {
			waiting = append(waiting, *whole.request)
		}
		return err
	})
	return waiting, err
}

// each visits every letter, oldest first.
func (q *Queue) each(ctx context.Context, visit func(stream.Letter) error) error {
	for after := ""; ; {
		letters, err := q.cfg.Letters.List(ctx, after, page)
		if err != nil {
			return err
		}
		for _, l := range letters {
			after = l.ID
			if err := visit(l); err != nil {
				return err
			}
		}
		if len(letters) < page {
			return nil
		}
	}
}

// Loop returns what has to run so that no task waits for an operator for ever.
func (q *Queue) Loop() periodic.Loop {
	return periodic.Loop{Name: "dead letters", Every: every, Timeout: time.Minute, Step: q.Step, Log: q.cfg.Log}
}

// Step gives up the tasks whose messages nobody decided about in time. It is a
// periodic.Step.
func (q *Queue) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	there := map[string]bool{}
	var failed []error
	err := q.each(ctx, func(l stream.Letter) error {
		there[l.ID] = true
		if q.knows(l.ID) || q.cfg.Clock.Now().Sub(l.At) < q.cfg.Patience {
			return nil
		}
		ended, err := q.failOverdue(ctx, l)
		if err != nil {
			failed = append(failed, err)
			return nil
		}
		if ended {
			counts["given_up"]++
		}
		return nil
	})
	q.forgetAllBut(there)
	return counts, errors.Join(append(failed, err)...)
}

// failOverdue ends the task of a letter that was waited for too long, and reports
// whether it had not ended before.
func (q *Queue) failOverdue(ctx context.Context, l stream.Letter) (bool, error) {
	whole, err := q.read(ctx, l.ID)
	if err != nil || whole == nil {
		return false, err
	}
	fresh, err := q.end(ctx, whole, "set aside, and nobody decided: "+l.Reason)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	q.failed[l.ID] = true
	q.mu.Unlock()
	if fresh {
		q.cfg.Log.ErrorContext(ctx, "task failed up: its message was set aside and nobody decided",
			slog.String("letter", l.ID), slog.String("task", id.Format(id.Task, whole.request.Task)))
	}
	return fresh, nil
}

// end ends the task of a letter as failed, unless it has ended, and reports
// whether it had not. A message that cannot be read names no task: the reconciler
// sees units that are held for nothing.
func (q *Queue) end(ctx context.Context, l *Letter, reason string) (bool, error) {
	if l.request == nil {
		return false, nil
	}
	end, err := q.cfg.Writer.FailTask(ctx, *l.request, reason)
	if err != nil {
		return false, err
	}
	return !end.Replayed, nil
}

func (q *Queue) knows(letterID string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed[letterID]
}

func (q *Queue) forgetAllBut(there map[string]bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for letterID := range q.failed {
		if !there[letterID] {
			delete(q.failed, letterID)
		}
	}
}
