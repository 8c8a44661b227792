// Package periodic runs bounded steps again and again: the one loop behind the
// scheduler, the reconciler, the trimmer and the like. Every loop is safe on
// every process at once; none needs a leader.
package periodic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// logEvery is the least time between two lines about a step that fails again and
// again: in an outage every loop of every process fails several times a second.
const logEvery = 10 * time.Second

// Step does one bounded batch of work and returns what it changed, by name. It
// is quiet when nothing happened: an empty or all-zero map is not logged.
type Step func(ctx context.Context) (counts map[string]int, err error)

// Loop is a step and its rhythm.
type Loop struct {
	Name    string
	Every   time.Duration // pause between the end of a step and the next; 10% of jitter is added
	Timeout time.Duration // bound of one step; 0 = 10 × Every
	Step    Step
	Log     *slog.Logger
}

// Run runs the step at once and then in its rhythm until ctx ends. A failing
// step is logged and tried again; Run returns nil when ctx ends. While it goes on
// failing, the log says so every ten seconds, and once more when it works again.
func (l Loop) Run(ctx context.Context) error {
	timeout := l.Timeout
	if timeout == 0 {
		timeout = 10 * l.Every
	}
	var failing trouble
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		l.once(ctx, timeout, &failing)
		timer.Reset(l.Every + time.Duration(rand.Int64N(int64(l.Every)/10+1))) //nolint:gosec // jitter, not a secret
	}
}

// trouble is what was logged of a step that fails.
type trouble struct {
	logged   time.Time // of the last line; zero = the step works
	unlogged int       // failures since then
}

func (l Loop) once(ctx context.Context, timeout time.Duration, failing *trouble) {
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
}

// logOutcome logs how a step went, at most every logEvery while it fails. A panic is
// always logged: it is a bug of its own.
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

// step runs the step; a panic is an error of that step and does not end the loop.
func (l Loop) step(ctx context.Context) (counts map[string]int, err error) {
	defer Recover(&err)
	return l.Step(ctx)
}

// Recover makes a panic the caller's error. It is for defer, in a step and in every
// goroutine that a step starts: a panic there ends the process.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
	}
}
