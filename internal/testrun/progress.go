package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Intervals of the progress line: rewritten in place on a terminal, a new line each time
// in a log.
const (
	onTerminal = 500 * time.Millisecond
	inLog      = 15 * time.Second
)

// progress writes one line about the state of the run.
type progress struct {
	w        io.Writer
	terminal bool
	steps    int
	began    time.Time
	stop     chan struct{}
	stopped  sync.WaitGroup

	mu    sync.Mutex
	step  *step // guarded by mu
	done  int   // steps started; guarded by mu
	state string
}

// newProgress starts writing.
func newProgress(f *os.File, steps int) *progress {
	p := &progress{w: f, steps: steps, began: time.Now(), stop: make(chan struct{})}
	every := inLog
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.terminal, every = true, onTerminal
	}
	tick := time.NewTicker(every)
	p.stopped.Go(func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.write()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *progress) begin(s *step) {
	p.mu.Lock()
	p.step, p.state = s, ""
	p.done++
	p.mu.Unlock()
	p.write()
}

// update sets the counts from the report.
func (p *progress) update(r *report) {
	state := fmt.Sprintf(", %d tests, %d failed", r.tests, len(r.failures))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step != nil && p.step.packages > 1 {
		state = fmt.Sprintf(", %d of %d packages", r.packages, p.step.packages) + state
	}
	p.state = state
}

func (p *progress) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step == nil {
		return
	}
	line := fmt.Sprintf("%s  step %d of %d: %s%s", time.Since(p.began).Round(time.Second), p.done, p.steps, p.step.name, p.state)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\033[K%s", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// close ends the line.
func (p *progress) close() {
	close(p.stop)
	p.stopped.Wait()
	if p.terminal {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
