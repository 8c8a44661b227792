package orderintake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"seckill/internal/buy/order"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/deadletter"
	"seckill/internal/platform/id"
	"seckill/internal/platform/periodic"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/stream"
)

const (
	// DecisionTimeout is how long the task of a dead letter waits for an operator's
	// decision. Until then the buyer sees it as queued and its units are reserved.
	DecisionTimeout = 5 * time.Minute
	// RetryAfter is when a dead letter without a decision is replayed, once: its cause may
	// have passed.
	RetryAfter = time.Minute
	// checkEvery is the pause between two searches for overdue dead letters.
	checkEvery = 5 * time.Second
	// pageSize bounds one read of letters.
	pageSize = 200
	// orderStreamSuffix ends the keys of the order streams.
	orderStreamSuffix = ":orders"
)

// DeadLettersConfig holds the dependencies of DeadLetters.
type DeadLettersConfig struct {
	DB              *postgres.DB
	Store           *deadletter.Store
	Letters         *stream.DeadLetters
	Orders          *order.Store
	Writer          *order.Writer // ends tasks
	DecisionTimeout time.Duration // 0 = DecisionTimeout
	Clock           clock.Clock   // nil = clock.System
	Log             *slog.Logger
}

// DeadLetters lists, replays and drops dead letters, and ends the tasks of those
// without a decision in time. It is safe for concurrent use on any number of processes.
type DeadLetters struct {
	cfg DeadLettersConfig

	mu      sync.Mutex
	failed  map[string]bool // letters whose task this process failed; guarded by mu
	retried map[string]bool // letters that were retried, or come from a retry; guarded by mu
}

// NewDeadLetters returns DeadLetters.
func NewDeadLetters(cfg DeadLettersConfig) *DeadLetters {
	cfg.Clock = clock.OrSystem(cfg.Clock)
	if cfg.DecisionTimeout == 0 {
		cfg.DecisionTimeout = DecisionTimeout
	}
	return &DeadLetters{cfg: cfg, failed: map[string]bool{}, retried: map[string]bool{}}
}

// Letter is a dead letter and its order task.
type Letter struct {
	stream.Letter
	Task *order.Task // current state; nil = none, or unknown

	requests []order.Request // its valid orders; usually one, because the router splits messages
}

// List returns up to limit letters after the one with id after, oldest first; ""
// begins at the first. Their fields are left out.
func (d *DeadLetters) List(ctx context.Context, after string, limit int) ([]*Letter, error) {
	raw, err := d.cfg.Store.List(ctx, deadletter.List{After: after, Limit: limit, Fields: true})
	if err != nil {
		return nil, err
	}
	letters := make([]*Letter, len(raw))
	for i, l := range raw {
		letters[i] = &Letter{Letter: l, requests: requestsOf(l)}
		if letters[i].Task, err = d.taskOf(ctx, letters[i]); err != nil {
			return nil, err
		}
		letters[i].Fields = nil
	}
	return letters, nil
}

// Count returns the number of letters.
func (d *DeadLetters) Count(ctx context.Context) (int, error) { return d.cfg.Store.Count(ctx) }

// Letter returns one letter with its fields; nil when there is none with that id.
func (d *DeadLetters) Letter(ctx context.Context, letterID string) (*Letter, error) {
	raw, err := d.cfg.Store.Letter(ctx, letterID)
	if raw == nil || err != nil {
		return nil, err
	}
	l := &Letter{Letter: *raw, requests: requestsOf(*raw)}
	l.Task, err = d.taskOf(ctx, l)
	return l, err
}

// requestsOf returns the valid orders of a letter with its fields.
func requestsOf(l stream.Letter) (requests []order.Request) {
	if msg, ok := l.Message(); ok && strings.HasSuffix(l.Stream, orderStreamSuffix) {
		requests, _ = order.Decode(msg)
	}
	return requests
}

// taskOf returns the task of a message of an order stream, the first of several; both
// have the same id.
func (d *DeadLetters) taskOf(ctx context.Context, l *Letter) (*order.Task, error) {
	task, err := id.ParseUUID[id.Task](l.MessageID)
	if err != nil || !strings.HasSuffix(l.Stream, orderStreamSuffix) {
		return nil, nil // it has none
	}
	owner := id.User{} // unknown
	if len(l.requests) > 0 {
		owner = l.requests[0].User
	}
	t, err := d.cfg.Orders.Task(ctx, task, owner)
	if err != nil {
		return nil, fmt.Errorf("task of dead letter %s: %w", l.ID, err)
	}
	return t, nil
}

// waiting returns the valid orders among the dead letters of a stream: their
// units are reserved like those of messages that are not handled yet.
func (d *DeadLetters) waiting(ctx context.Context, key string) ([]order.Request, error) {
	var waiting []order.Request
	err := d.each(ctx, deadletter.List{Stream: key, Fields: true}, func(l stream.Letter) {
		waiting = append(waiting, requestsOf(l)...)
	})
	return waiting, err
}

// each visits every selected letter, oldest first, those of an older release in Redis too.
func (d *DeadLetters) each(ctx context.Context, in deadletter.List, visit func(stream.Letter)) error {
	if err := d.cfg.Letters.Import(ctx); err != nil {
		return err
	}
	for in.Limit = pageSize; ; {
		letters, err := d.cfg.Store.List(ctx, in)
		if err != nil {
			return err
		}
		for _, l := range letters {
			in.After = l.ID
			visit(l)
		}
		if len(letters) < pageSize {
			return nil
		}
	}
}

// Loop returns the loop that runs Step.
func (d *DeadLetters) Loop() periodic.Loop {
	return periodic.Loop{Name: "dead letters", Every: checkEvery, Timeout: time.Minute, Step: d.Step, Log: d.cfg.Log}
}

// Step replays each dead letter without a decision once, after RetryAfter, and fails the
// tasks of those that come back and have no decision within DecisionTimeout. It is
// a periodic.Step.
func (d *DeadLetters) Step(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	present := map[string]bool{}
	var failed []error
	err := d.each(ctx, deadletter.List{}, func(l stream.Letter) {
		present[l.ID] = true
		age := d.cfg.Clock.Now().Sub(l.At)
		if d.failedBefore(l.ID) || age < min(RetryAfter, d.cfg.DecisionTimeout) {
			return
		}
		if retried, err := d.retry(ctx, l); err != nil || retried {
			if retried {
				counts["retried"]++
			} else {
				failed = append(failed, err)
			}
			return
		}
		if age < d.cfg.DecisionTimeout {
			return
		}
		ended, err := d.failOverdue(ctx, l)
		if err != nil {
			failed = append(failed, err)
		} else if ended {
			counts["given_up"]++
		}
	})
	d.forgetAllBut(present)
	return counts, errors.Join(append(failed, err)...)
}

// retry replays a letter of a message that was not retried before, if a task waits for it.
func (d *DeadLetters) retry(ctx context.Context, l stream.Letter) (bool, error) {
	d.mu.Lock()
	known := d.retried[l.ID]
	d.mu.Unlock()
	if known {
		return false, nil
	}
	whole, err := d.undecided(ctx, l.ID)
	if err != nil || whole == nil || len(whole.requests) == 0 || whole.Task != nil && whole.Task.Ended() {
		return false, err
	}
	before, err := d.cfg.Store.Retried(ctx, l.MessageID)
	if err != nil {
		return false, err
	}
	retried := false
	if !before {
		if _, retried, err = d.replay(ctx, whole, deadletter.Retried); err != nil {
			return false, err
		}
	}
	d.mu.Lock()
	d.retried[l.ID] = true
	d.mu.Unlock()
	if retried {
		d.cfg.Log.WarnContext(ctx, "dead letter replayed once", slog.String("letter", l.ID),
			slog.String("message", l.MessageID))
	}
	return retried, nil
}

// replay appends the message of a letter to its stream and ends the letter. It reports
// whether the message can be replayed, and whether this call ended the letter. Both steps may
// be repeated: a process may end between them.
func (d *DeadLetters) replay(ctx context.Context, l *Letter, as deadletter.State) (can, ended bool, err error) {
	if can, err = d.cfg.Letters.Replay(ctx, l.Letter); !can || err != nil {
		return can, false, err
	}
	ended, err = d.cfg.Store.End(ctx, l.ID, as)
	return true, ended, err
}

// undecided returns a letter as Letter does, and nil if its order exists: a process ended
// after it had replayed the letter, or Redis went back and delivered the entry again. There
// is nothing to decide then, and the letter ends.
func (d *DeadLetters) undecided(ctx context.Context, letterID string) (*Letter, error) {
	l, err := d.Letter(ctx, letterID)
	if l == nil || err != nil || len(l.requests) != 1 || l.Task == nil || l.Task.Status != order.Succeeded {
		return l, err
	}
	_, err = d.cfg.Store.End(ctx, letterID, deadletter.Replayed)
	return nil, err
}

// failOverdue fails the task of an overdue letter and reports whether it had not
// ended before.
func (d *DeadLetters) failOverdue(ctx context.Context, l stream.Letter) (bool, error) {
	whole, err := d.undecided(ctx, l.ID)
	if err != nil || whole == nil {
		return false, err
	}
	fresh, err := d.failTask(ctx, whole, "dead letter without a decision: "+l.Reason)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	d.failed[l.ID] = true
	d.mu.Unlock()
	if fresh {
		d.cfg.Log.ErrorContext(ctx, "task failed: no operator decided about its dead letter",
			slog.String("letter", l.ID), slog.String("message", l.MessageID))
	}
	return fresh, nil
}

// failTask fails the tasks of a letter and reports whether any had not ended before.
// Where the payload cannot be decoded, the message id is the task id, and the task is read
// from its reservation at the gate; without a reservation there is nothing to fail.
func (d *DeadLetters) failTask(ctx context.Context, l *Letter, reason string) (fresh bool, err error) {
	if len(l.requests) == 0 && l.Task != nil && !l.Task.Ended() {
		end := d.cfg.Writer.FailLostTasks(ctx, []order.Task{*l.Task}, reason)[0]
		return end.Err == nil && !end.Replayed, end.Err
	}
	for _, request := range l.requests {
		end := d.cfg.Writer.FailTask(ctx, request, reason)
		if end.Err != nil {
			return fresh, end.Err
		}
		fresh = fresh || !end.Replayed
	}
	return fresh, nil
}

func (d *DeadLetters) failedBefore(letterID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed[letterID]
}

func (d *DeadLetters) forgetAllBut(present map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	absent := func(letterID string, _ bool) bool { return !present[letterID] }
	maps.DeleteFunc(d.failed, absent)
	maps.DeleteFunc(d.retried, absent)
}
