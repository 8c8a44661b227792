// Package periodic runs bounded steps repeatedly: the scheduler, the reconciler, the
// trimmer and other loops. Every loop may run on all processes concurrently; none needs
// a leader. It does not own the steps, and keeps no state between them.
package periodic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"seckill/internal/platform/fault"
)

// logEvery is the minimum time between two log lines about a step that keeps failing:
// in an outage every loop of every process fails several times a second.
const logEvery = 10 * time.Second

// Sleep waits for d, or until ctx ends, and then returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Step does one bounded batch of work and returns what it changed, by name. An empty or
// all-zero map is not logged.
type Step func(ctx context.Context) (counts map[string]int, err error)

// Loop is a step and its interval.
type Loop struct {
	Name    string
	Every   time.Duration // pause between the end of a step and the next; 10% of jitter is added
	Timeout time.Duration // timeout of one step; 0 = 10 × Every
	Step    Step
	Log     *slog.Logger

	// Retry is the pause after a failed step; 0 = Every.
	Retry time.Duration

	// Idle is the longest pause while there is nothing to do: the pause doubles with each
	// step that changes nothing, and is Every again after one that does or fails. 0 = always
	// Every. It delays the first work after a rest by up to Idle.
	Idle time.Duration
	// Busy reports after a step that changed nothing whether there is work that only waits;
	// the pause is then Every. nil = never.
	Busy func() bool

	// Wake ends a pause that is longer than Every: the step then runs after Every. It is for work
	// that begins in this process. nil = never.
	Wake <-chan struct{}

	// HasWork reports whether the step would find something. A loop that has nothing to do and
	// pauses for a Tick or longer asks it instead of the step, which then runs at least every
	// stepEvery: one question can be cheaper than the steps of many loops. nil = the step looks.
	HasWork func(ctx context.Context) bool

	// Due returns the time until the next step if it must run before the pause ends; false =
	// the pause decides. It is asked after each step. nil = always the pause.
	Due func() (time.Duration, bool)
}

// Run runs the step immediately and then repeatedly until ctx ends. A failed step is
// logged and retried; Run returns nil when ctx ends. While the step keeps failing, this
// is logged every ten seconds, and once more when it succeeds again.
func (l Loop) Run(ctx context.Context) error {
	timeout := l.Timeout
	if timeout == 0 {
		timeout = 10 * l.Every
	}
	var failing trouble
	pause, idle := l.Every, false
	var ran time.Time // when the last step began
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-l.Wake:
			if pause > l.Every {
				pause = l.Every
				timer.Reset(l.untilDue(pause))
			}
			continue
		}
		if idle && pause >= Tick && time.Since(ran) < stepEvery && !l.hasWork(ctx, timeout) {
			pause = l.next(pause, idle)
			timer.Reset(l.untilDue(l.wait(pause, idle)))
			continue
		}
		ran = time.Now()
		var failed bool
		idle, failed = l.once(ctx, timeout, &failing)
		pause = l.next(pause, idle)
		if failed && l.Retry > 0 {
			pause = l.Retry
		}
		timer.Reset(l.untilDue(l.wait(pause, idle)))
	}
}

// stepEvery is the longest time without a step of a loop whose HasWork says no: metrics that
// steps set, and work that the question misses, are that old at most.
const stepEvery = 15 * time.Second

// hasWork reports whether to run the step; always when the question panics.
func (l Loop) hasWork(ctx context.Context, timeout time.Duration) (yes bool) {
	if l.HasWork == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	defer func() { yes = yes || err != nil }()
	defer Recover(&err)
	return l.HasWork(ctx)
}

// wait returns the time until the next step. A loop that had nothing to do waits for a
// tick, so that an idle process wakes once for all its loops; the others get jitter.
func (l Loop) wait(pause time.Duration, idle bool) time.Duration {
	longest := pause + pause/10
	if idle && longest >= Tick {
		return UntilTick(longest)
	}
	return pause + time.Duration(rand.Int64N(int64(pause)/10+1)) //nolint:gosec // jitter, not a secret
}

// untilDue returns the time until the next step, given when the pause ends.
func (l Loop) untilDue(pauseEnds time.Duration) time.Duration {
	if l.Due != nil {
		if due, ok := l.Due(); ok {
			return min(pauseEnds, due)
		}
	}
	return pauseEnds
}

// Tick is the interval of the ticks at which what an idle process does at least that
// rarely happens together: a process that wakes 60 times a second needs three times the
// processor time of one that does the same work in one go.
const Tick = time.Second

// started is the phase of the ticks. It differs between processes, which therefore do not
// ask Postgres and Redis in the same moment.
var started = time.Now() // one phase for all loops of the process

// UntilTick returns the time until the last tick that is at most longest away; longest is
// at least Tick.
func UntilTick(longest time.Duration) time.Duration {
	after := (time.Since(started) + longest) % Tick
	return longest - (after+Tick)%Tick // a fake clock may be before started
}

// next returns the pause after a step, given the pause before it.
func (l Loop) next(last time.Duration, idle bool) time.Duration {
	if !idle || l.Busy != nil && l.Busy() {
		return l.Every
	}
	return max(l.Every, min(2*last, l.Idle))
}

// trouble is the logging state of a failing step.
type trouble struct {
	logged   time.Time // time of the last line; zero = the step succeeds
	unlogged int       // failures since then
}

// once runs one step and reports whether it had nothing to do, and whether it failed.
func (l Loop) once(ctx context.Context, timeout time.Duration, failing *trouble) (idle, failed bool) {
	stepCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	counts, err := l.step(stepCtx)
	if ctx.Err() == nil {
		l.logOutcome(ctx, err, failing)
	}
	attrs := []slog.Attr{slog.String("loop", l.Name)}
	for name, n := range counts {
		if n != 0 {
			attrs = append(attrs, slog.Int(name, n))
		}
	}
	if len(attrs) > 1 {
		l.Log.LogAttrs(ctx, slog.LevelInfo, "periodic step", attrs...)
	}
	return err == nil && len(attrs) == 1, err != nil
}

// logOutcome logs the result of a step, at most every logEvery while it fails. A panic
// is always logged, because it is a separate bug.
func (l Loop) logOutcome(ctx context.Context, err error, failing *trouble) {
	attrs := []slog.Attr{slog.String("loop", l.Name)}
	if failing.unlogged > 0 {
		attrs = append(attrs, slog.Int("failed_meanwhile", failing.unlogged))
	}
	switch {
	case errors.Is(err, errPanic):
		l.Log.LogAttrs(ctx, slog.LevelError, "periodic step", slog.String("loop", l.Name), slog.Any("error", err))
	case err != nil && time.Since(failing.logged) < logEvery:
		failing.unlogged++
	case err != nil:
		l.Log.LogAttrs(ctx, slog.LevelError, "periodic step", append(attrs, slog.Any("error", err))...)
		*failing = trouble{logged: time.Now()}
	default:
		if failing.unlogged > 0 {
			l.Log.LogAttrs(ctx, slog.LevelInfo, "periodic step works again", attrs...)
		}
		*failing = trouble{}
	}
}

// errPanic marks the error of a step that panicked.
var errPanic = errors.New("panic")

// step runs the step; a panic becomes an error of that step and does not end the loop.
func (l Loop) step(ctx context.Context) (counts map[string]int, err error) {
	defer Recover(&err)
	return l.Step(ctx)
}

// Recover converts a panic to the caller's error. Defer it in a step and in every
// goroutine that a step starts, where a panic would end the process.
func Recover(err *error) {
	if p := fault.Caught(recover(), fault.InLoop); p != nil {
		*err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
	}
}
