package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// duration is how long a step, a package or a test took.
type duration struct {
	kind    string // step, processor (time of a step), package or test
	name    string
	seconds float64
}

// took records a duration. Durations of packages and tests include waits for those that
// run at the same time.
func (r *report) took(kind, name string, seconds float64) {
	r.durations = append(r.durations, duration{kind, strings.TrimPrefix(name, module), seconds})
}

// stepEnded records how long a step took, and the processor time of its processes without
// that of the services. It locks the report.
func (r *report) stepEnded(name string, took time.Duration, ended *os.ProcessState) {
	r.Lock()
	defer r.Unlock()
	r.took("step", name, took.Seconds())
	if ended != nil {
		r.took("processor", name, (ended.UserTime() + ended.SystemTime()).Seconds())
	}
}

// writeTimes writes the durations to a file, by kind and the longest first, and returns
// its name, "" on an error.
func (r *report) writeTimes() string {
	slices.SortStableFunc(r.durations, func(a, b duration) int {
		return cmp.Or(cmp.Compare(rankOf(a.kind), rankOf(b.kind)), cmp.Compare(b.seconds, a.seconds))
	})
	var text strings.Builder
	for _, d := range r.durations {
		fmt.Fprintf(&text, "%s\t%.1f\t%s\n", d.kind, d.seconds, d.name)
	}
	name := filepath.Join(r.dir, "times.tsv")
	if os.MkdirAll(r.dir, 0o750) != nil || os.WriteFile(name, []byte(text.String()), 0o600) != nil {
		return ""
	}
	return name
}

func rankOf(kind string) int {
	return slices.Index([]string{"step", "processor", "package", "test"}, kind)
}
