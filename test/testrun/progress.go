package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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

	mu     sync.Mutex
	active []*step          // running, in the order of their start; guarded by mu
	state  map[*step]string // of an active step; guarded by mu
	counts string           // tests so far; guarded by mu
	ended  int              // steps; guarded by mu
	named  int              // failures that were named; guarded by mu
}

// newProgress starts writing.
func newProgress(f *os.File, steps int) *progress {
	p := &progress{w: f, steps: steps, began: time.Now(), state: map[*step]string{}, stop: make(chan struct{})}
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
	p.active = append(p.active, s)
	p.mu.Unlock()
	p.write()
}

func (p *progress) end(s *step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = slices.DeleteFunc(p.active, func(a *step) bool { return a == s })
	p.ended++
}

// update sets the counts from the report, which the caller has locked, and names new
// failures: the whole output comes at the end of the run.
func (p *progress) update(s *step, r *report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.packages > 1 {
		p.state[s] = fmt.Sprintf(" (%d of %d packages)", s.ended, s.packages)
	}
	for ; p.named < len(r.failures); p.named++ {
		f := r.failures[p.named]
		before := ""
		if p.terminal {
			before = "\r\033[K"
		}
		fmt.Fprintf(p.w, "%sfailed: %s %s %s\n", before, f.unit, f.test, f.at)
	}
	p.counts = fmt.Sprintf(", %d tests, %d failed", r.tests, len(r.failures))
}

func (p *progress) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.active) == 0 {
		return
	}
	names := make([]string, len(p.active))
	for i, s := range p.active {
		names[i] = s.name + p.state[s]
	}
	line := fmt.Sprintf("%s  %d of %d steps done, running %s%s", time.Since(p.began).Round(time.Second), p.ended, p.steps,
		strings.Join(names, " and "), p.counts)
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
