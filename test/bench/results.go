package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"
)

// Lines of test/bench/performance.md between which the results of a run are written.
var (
	resultsBegin = []byte("<!-- results of make bench: begin -->\n")
	resultsEnd   = []byte("<!-- results of make bench: end -->\n")
)

// writeResults writes the tables of a run into a page.
func (r *report) writeResults(page string, at time.Time) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(text, resultsBegin)
	_, after, ends := bytes.Cut(rest, resultsEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for results", page)
	}
	return os.WriteFile(page, slices.Concat(before, resultsBegin, r.markdown(at), resultsEnd, after), 0o644)
}

// markdown returns the tables of a run.
func (r *report) markdown(at time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Medians of %d rounds, %s, %s.\n\n| | ratio (rounds) | CPU | target |\n|---|---|---|---|\n", r.Rounds,
		at.UTC().Format(time.DateOnly), r.Store)
	for _, f := range r.Figures {
		value, cpu := fmt.Sprintf("%.2f (%.2f–%.2f)", f.Ratio, f.Least, f.Most), ""
		if f.Unit != "" {
			value = fmt.Sprintf("%.1f %s", f.Ratio, f.Unit)
		}
		if f.CPU > 0 {
			cpu = fmt.Sprintf("%.2f", f.CPU)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, value, cpu, f.ToReach)
	}
	b.WriteString("\n| µs of CPU time | server | Redis | in scripts | commands | Postgres | generator | allocations | per second |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(keysOf(r.Rates)) {
		s := r.Shares[name]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name,
			micros(r.Micros[name]), micros(s.Redis), micros(s.Scripting), micros(s.Commands), micros(s.Postgres),
			micros(s.Generator), micros(s.Objects), thousands(int(r.Rates[name])))
	}
	b.WriteString("\n")
	for _, c := range r.Checks {
		verdict := "holds"
		if !c.OK {
			verdict = "does **not** hold"
		}
		fmt.Fprintf(&b, "- %s: %s, %s.\n", c.Name, verdict, c.Text)
	}
	return b.Bytes()
}

// micros leaves out what was not measured.
func micros(v float64) string {
	if v < 0.5 {
		return ""
	}
	return fmt.Sprintf("%.0f", v)
}
