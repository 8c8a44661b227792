package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// webPrefix is the prefix of the lines that web/test/reporter.ts writes.
const webPrefix = "testrun "

// webEvent is the end of one web test, as written by web/test/reporter.ts.
type webEvent struct {
	File  string // from the root of the repository
	Name  string // "" when the file as a whole failed
	State string // "passed", "failed" or "skipped"
	At    string // file:line, when it failed
	Error string
	Took  float64 // seconds
}

// vitestOutput reads a line of Vitest with web/test/reporter.ts.
func vitestOutput(s *step, r *report, line []byte) string {
	text, ours := strings.CutPrefix(string(line), webPrefix)
	var e webEvent
	if !ours || json.Unmarshal([]byte(text), &e) != nil {
		return string(line) + "\n"
	}
	r.tests++
	r.took("test", e.File+" "+e.Name, e.Took)
	if e.State == "passed" {
		r.passed++
	}
	if e.State != "failed" {
		return ""
	}
	name := strings.ReplaceAll(e.Name, " > ", " ") // as -t expects it
	again := s.again + " " + strings.TrimPrefix(e.File, "web/")
	var alone []string
	if e.Name != "" {
		again += " -t '" + strings.ReplaceAll(name, "'", `'\''`) + "'"
		alone = append(slices.Clone(s.command), strings.TrimPrefix(e.File, "web/"), "-t", "^"+regexp.QuoteMeta(name)+"$")
	}
	r.fail(failure{unit: e.File, test: e.Name, at: e.At, text: e.Error, again: again, alone: alone, read: vitestOutput})
	return ""
}
