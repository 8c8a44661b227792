package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxShown is the number of output lines per failure in the summary.
const maxShown = 60

// failure is one test, package or step that failed.
type failure struct {
	unit  string // package, web test file, or step
	test  string // "" when the unit failed as a whole
	at    string // file:line; "" when unknown
	text  string // its output
	log   string // file with the full output of the package; "" when there is none
	again string // command that runs only this test, for the reader

	alone []string // command that runs only this test, for rerun; nil = it is not run again
	read  reader   // of the output of alone
	flaky bool     // it passed when it was run again
}

// report collects results. Concurrent steps lock it for each line that they read; its methods
// do not lock unless they say so.
type report struct {
	sync.Mutex

	dir      string // for logs
	tests    int
	passed   int // of them
	failures []failure

	durations []duration

	outputs map[string]map[string]*tail // by package and test
	whole   map[string]*strings.Builder // all output, by package
}

func newReport(dir string) *report {
	_ = os.RemoveAll(dir) // what cannot be removed is overwritten
	return &report{dir: dir, outputs: map[string]map[string]*tail{}, whole: map[string]*strings.Builder{}}
}

// failed reports whether a failure is not flaky.
func (r *report) failed() bool {
	return slices.ContainsFunc(r.failures, func(f failure) bool { return !f.flaky })
}

func (r *report) fail(f failure) { r.failures = append(r.failures, f) }

// problem records a step that failed as a whole. It locks the report.
func (r *report) problem(step, text, again string) {
	r.Lock()
	defer r.Unlock()
	r.fail(failure{unit: step, at: positionIn("", text), text: text, again: again})
}

// output buffers output until the result of the test is known.
func (r *report) output(pkg, test, text string) {
	if r.outputs[pkg] == nil {
		r.outputs[pkg], r.whole[pkg] = map[string]*tail{}, &strings.Builder{}
	}
	if r.outputs[pkg][test] == nil {
		r.outputs[pkg][test] = &tail{}
	}
	r.outputs[pkg][test].add(text)
	r.whole[pkg].WriteString(text)
}

func (r *report) taken(pkg, test string) string {
	if t := r.outputs[pkg][test]; t != nil {
		return t.String()
	}
	return ""
}

// unended returns the tests of a package that started but did not end, with their output:
// the process ended during one of them.
func (r *report) unended(pkg string) (names, text string) {
	var all []string
	for test := range r.outputs[pkg] {
		if test != "" {
			all = append(all, test)
		}
	}
	slices.Sort(all)
	for _, test := range all {
		text += r.taken(pkg, test)
	}
	return strings.Join(all, ", "), text
}

func (r *report) drop(pkg, test string) { delete(r.outputs[pkg], test) }

func (r *report) forget(pkg string) {
	delete(r.outputs, pkg)
	delete(r.whole, pkg)
}

// write writes the full output of a package to a file and returns its name, "" on an
// error.
func (r *report) write(pkg string) string {
	all := r.whole[pkg]
	if all == nil || os.MkdirAll(r.dir, 0o750) != nil {
		return ""
	}
	name := filepath.Join(r.dir, strings.ReplaceAll(strings.TrimPrefix(pkg, module), "/", "_")+".log")
	if os.WriteFile(name, []byte(all.String()), 0o600) != nil {
		return ""
	}
	return name
}

// print writes the summary: the output of every failure, then the list of failures.
func (r *report) print(w io.Writer, took time.Duration) {
	for _, f := range r.failures {
		fmt.Fprintf(w, "\n---- %s\n%s", f.title(), shown(f.text))
	}
	switch {
	case r.failed():
		fmt.Fprintf(w, "\nFAILED: %d failures in %d tests, %s\n", len(r.failures), r.tests, took.Round(time.Second))
	case len(r.failures) > 0:
		fmt.Fprintf(w, "\nPASSED %d tests in %s; FLAKY: %d failed, and passed when run again alone. Explain them in the next change.\n",
			r.tests, took.Round(time.Second), len(r.failures))
	default:
		fmt.Fprintf(w, "PASSED %d tests in %s\n", r.tests, took.Round(time.Second))
	}
	for _, f := range r.failures {
		flaky := ""
		if f.flaky {
			flaky = " (flaky)"
		}
		fmt.Fprintf(w, "\n  %s%s\n", f.title(), flaky)
		for _, line := range []struct{ label, text string }{{"at", f.at}, {"run", f.again}, {"log", f.log}} {
			if line.text != "" {
				fmt.Fprintf(w, "    %-4s %s\n", line.label, line.text)
			}
		}
	}
}

func (f failure) title() string {
	return strings.TrimSpace(strings.TrimPrefix(f.unit, module) + " " + f.test)
}

// shown returns the last lines of a text.
func shown(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if left := len(lines) - maxShown; left > 0 {
		lines = append([]string{fmt.Sprintf("(%d lines before)", left)}, lines[left:]...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// maxKept bounds the buffered output of one test, in bytes.
const maxKept = 1 << 20

// tail keeps the last maxKept bytes of a text.
type tail struct{ text strings.Builder }

func (t *tail) add(s string) {
	if t.text.Len()+len(s) > 2*maxKept {
		kept := t.text.String()
		kept = kept[max(0, len(kept)-maxKept):]
		t.text.Reset()
		t.text.WriteString(kept)
	}
	t.text.WriteString(s)
}

// String returns the buffered text.
func (t *tail) String() string { return t.text.String() }

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
