package main

import (
	"context"
	"path/filepath"
	"strings"
)

// maxRerun bounds the failed tests of a run that are run again: more failures have a common
// cause.
const maxRerun = 3

// rerun runs each failed test again, alone, and marks those that pass as flaky. It does nothing
// when more than maxRerun tests failed, or when a package or a step failed as a whole.
func (p *plan) rerun(ctx context.Context, r *report, bar *progress) {
	if !p.reruns || len(r.failures) > maxRerun {
		return
	}
	for _, f := range r.failures {
		if f.alone == nil {
			return
		}
	}
	for i := range r.failures {
		f := &r.failures[i]
		alone := newReport(filepath.Join(r.dir, "again"))
		s := step{name: "again: " + f.title(), command: f.alone, read: f.read, again: f.again}
		bar.begin(&s)
		_, _, _, err := s.execute(ctx, p.environ, alone, bar)
		bar.end(&s)
		f.flaky = err == nil && alone.passed > 0 && len(alone.failures) == 0
	}
}

// aloneGo returns the command that runs the top-level test of a Go test.
func aloneGo(pkg, test string) []string {
	top, _, _ := strings.Cut(test, "/")
	return []string{"go", "test", "-json", "-vet=off", "-ldflags=-w", "-count=1", "-run", "^" + top + "$", "./" +
		strings.TrimPrefix(pkg, module)}
}
