// Package periodic runs bounded steps again and again: the one loop behind the
// scheduler, the reconciler, the trimmer and the like. Every loop is safe on
// every process at once; none needs a leader.
package periodic

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

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
// step is logged and tried again; Run returns nil when ctx ends.
func (l Loop) Run(ctx context.Context) error {
	timeout := l.Timeout
	if timeout == 0 {
		timeout = 10 * l.Every
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		l.once(ctx, timeout)
		timer.Reset(l.Every + time.Duration(rand.Int64N(int64(l.Every)/10+1))) //nolint:gosec // jitter, not a secret
	}
}

func (l Loop) once(ctx context.Context, timeout time.Duration) {
	stepCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	counts, err := l.step(stepCtx)
	if err != nil && ctx.Err() == nil {
		l.Log.ErrorContext(ctx, "periodic step", slog.String("loop", l.Name), slog.Any("error", err))
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

// step runs the step; a panic is an error of that step and does not end the loop.
func (l Loop) step(ctx context.Context) (counts map[string]int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return l.Step(ctx)
}
