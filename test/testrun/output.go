package main

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

// module is the import path prefix of this repository.
const module = "seckill/"

// event is one line of `go test -json`, see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64 // seconds
}

// position finds the position of a failure: an indented file:line of the test's own output,
// a compiler message, or a line of a stack trace.
var position = regexp.MustCompile(`(?m)^\s*((?:[\w.-]+/)*[\w.-]+\.(?:go|ts|tsx)):(\d+)`)

// goOutput reads a line of `go test -json`.
func goOutput(s *step, r *report, line []byte) string {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		return string(line) + "\n"
	}
	switch e.Action {
	case "output":
		r.output(e.Package, e.Test, e.Output)
	case "build-output":
		r.output(e.ImportPath, "", e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			s.ended++
			r.took("package", e.Package, e.Elapsed)
			r.packageEnded(e)
		} else {
			r.took("test", e.Package+" "+e.Test, e.Elapsed)
			r.testEnded(e)
		}
	}
	return ""
}

// testEnded records the end of one test or subtest.
func (r *report) testEnded(e event) {
	r.tests++
	if e.Action == "pass" {
		r.passed++
	}
	if e.Action != "fail" {
		r.drop(e.Package, e.Test)
		return
	}
	text := r.taken(e.Package, e.Test)
	at := positionIn(e.Package, text)
	for _, f := range r.failures {
		if f.unit == e.Package && strings.HasPrefix(f.test, e.Test+"/") && at == "" {
			return // a parent fails with its subtests
		}
	}
	r.fail(failure{unit: e.Package, test: e.Test, at: at, text: text, again: goCommand(e.Package, e.Test),
		alone: aloneGo(e.Package, e.Test), read: goOutput})
}

// packageEnded records the end of a package. A package that failed without a failed test
// did not compile, crashed, timed out or leaked goroutines.
func (r *report) packageEnded(e event) {
	defer r.forget(e.Package)
	if e.Action != "fail" {
		return
	}
	log := r.write(e.Package)
	named := false
	for i := range r.failures {
		if r.failures[i].unit == e.Package {
			r.failures[i].log, named = log, true
		}
	}
	if named {
		return
	}
	unended, text := r.unended(e.Package)
	text += r.taken(e.Package, "")
	if all := r.whole[e.Package]; all != nil {
		text += crashIn(all.String())
	}
	if e.FailedBuild != "" {
		text = r.taken(e.FailedBuild, "") + text
	}
	r.fail(failure{unit: e.Package, test: unended, at: positionIn(e.Package, text), text: text, log: log,
		again: goCommand(e.Package, "")})
}

// crash finds the first line of what the runtime prints when a process crashes.
var crash = regexp.MustCompile(`(?m)^(panic: |fatal error: )`)

// crashIn returns the reason for a crash and the first stacks with a function of this
// module, "" when the process did not crash. go test -json reports them as output of the
// test that printed last, which may have passed.
func crashIn(text string) string {
	at := crash.FindStringIndex(text)
	if at == nil {
		return ""
	}
	blocks := strings.Split(text[at[0]:], "\n\n")
	shown := blocks[:1]
	for _, stack := range blocks[1:] {
		if strings.Contains(stack, "\n"+module) {
			shown = append(shown, stack)
		}
	}
	lines := strings.Split(strings.Join(shown, "\n\n"), "\n")
	return strings.Join(lines[:min(len(lines), maxShown)], "\n") + "\n"
}

// positionIn returns the first file:line in the output of a package, relative to the root of
// the module; "" when there is none.
func positionIn(pkg, text string) string {
	found := position.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	file := found[1]
	if !strings.Contains(file, "/") {
		file = path.Join(strings.TrimPrefix(pkg, module), file)
	}
	return file + ":" + found[2]
}

// goCommand returns the command that runs one test.
func goCommand(pkg, test string) string {
	dir := "./" + strings.TrimPrefix(pkg, module)
	if test == "" {
		return "go test -race " + dir
	}
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return "go test -race -count=1 -run '" + strings.Join(parts, "/") + "' " + dir
}

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
