// Command seeded tests the tests: it puts one wrong line at a time into a copy of the code, runs the
// suites that should notice, and prints which test does, and how soon. Only a test that fails by itself
// counts: a suite that runs into its timeout, or dies, has found nothing. The code itself is not changed:
// the copies replace files by `go build -overlay`.
//
//	go run ./test/seeded [part of a fault's name]
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// buildTimeout and runTimeout bound one suite: a fault may make a test wait for ever. runTimeout is below
// testenv.Wait: a test that only waits on a busy machine is stopped before it fails and counts as a find.
const (
	buildTimeout = 15 * time.Minute
	runTimeout   = 100 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "seeded:", err)
		os.Exit(1)
	}
}

// found is how a fault was found.
type found struct {
	fault  fault
	pkg    string
	test   string // "" = by none
	said   string // the line by which the test failed, or why no test did
	built  time.Duration
	after  time.Duration // from the start of the suite
	suites int           // that were run
}

func run(ctx context.Context, only string) error {
	dir, err := os.MkdirTemp("", "seeded")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary folder may stay
	var all []found
	missed := 0
	for i, f := range faults {
		if !strings.Contains(f.name, only) {
			continue
		}
		fmt.Fprintf(os.Stdout, "%2d/%d  %s …\n", i+1, len(faults), f.name)
		r, err := try(ctx, f, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if r.test == "" {
			missed, r.test = missed+1, "NO TEST"
		}
		fmt.Fprintf(os.Stdout, "       %s in %s, after %.1f s, built in %.0f s\n       %s\n", r.test, r.pkg,
			r.after.Seconds(), r.built.Seconds(), r.said)
		all = append(all, r)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\nseeded fault\tfound by\tin\tafter\tbuilt in")
	for _, r := range all {
		fmt.Fprintf(out, "%s\t%s\t%s\t%.1f s\t%.0f s\n", r.fault.name, r.test, r.pkg, r.after.Seconds(), r.built.Seconds())
	}
	fmt.Fprintf(out, "\n%d of %d found\n", len(all)-missed, len(all))
	if err := out.Flush(); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d faults were found by no test", missed)
	}
	return nil
}

// overlay writes the changed files of a fault and returns the file for the flag -overlay.
func (f fault) overlay(dir string) (string, error) {
	changed := map[string]string{}
	for _, e := range f.edits {
		text, ok := changed[e.file]
		if !ok {
			source, err := os.ReadFile(e.file)
			if err != nil {
				return "", err
			}
			text = string(source)
		}
		if n := strings.Count(text, e.line); n != 1 {
			return "", fmt.Errorf("%s has %q %d times: change the table of faults", e.file, e.line, n)
		}
		changed[e.file] = strings.Replace(text, e.line, e.wrong, 1)
	}
	replace := map[string]string{}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for file, text := range changed {
		from, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(file)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[from] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// try runs the suites of a fault until a test fails.
func try(ctx context.Context, f fault, dir string) (found, error) {
	r := found{fault: f}
	overlay, err := f.overlay(dir)
	if err != nil {
		return r, err
	}
	for _, s := range f.suites {
		r.suites++
		r.pkg = s.pkg
		began := time.Now()
		binary := filepath.Join(dir, "suite.test")
		if err := build(ctx, overlay, binary, s.pkg); err != nil {
			return r, err
		}
		r.built += time.Since(began)
		began = time.Now()
		if r.test, r.said, err = firstFailure(ctx, binary, s); err != nil {
			return r, err
		}
		r.after += time.Since(began)
		if r.test != "" {
			return r, nil
		}
	}
	return r, nil
}

func build(ctx context.Context, overlay, binary, pkg string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay,
		"-o", binary, "./"+pkg)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	return nil
}

// message matches what a test says when an assertion fails, and anything that it logs.
var message = regexp.MustCompile(`^\w+\.go:\d+: `)

// firstFailure runs a suite and returns the first test that fails, and what it said last; without one, why.
func firstFailure(ctx context.Context, binary string, s suite) (test, said string, err error) {
	limited, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(limited, binary, "-test.v", "-test.failfast", "-test.run", s.run)
	if s.rapid {
		cmd.Args = append(cmd.Args, "-rapid.nofailfile", "-rapid.shrinktime=1s", "-rapid.checks=300")
	}
	cmd.Dir = filepath.FromSlash(s.pkg)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", err
	}
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	speaks := ""
	last := map[string]string{} // what each test said last
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for test == "" && lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) < 3:
		case words[0] == "===":
			speaks, _, _ = strings.Cut(words[2], "/")
		case words[0] == "---" && words[1] == "FAIL:":
			test, _, _ = strings.Cut(words[2], "/")
		case message.MatchString(words[0] + " "):
			last[speaks] = strings.Join(words, " ")
		}
	}
	timedOut := limited.Err() != nil
	cancel() // the rest is of no interest
	err = cmd.Wait()
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case test != "":
		return test, cmp.Or(last[test], "panic"), nil
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case speaks == "":
		return "", "", fmt.Errorf("no test of %s matches %s: %w\n%s", s.pkg, s.run, err, stderr.String())
	case timedOut:
		return "", fmt.Sprintf("%s ran into its timeout of %s", s.run, runTimeout), nil
	case exit != nil:
		return "", fmt.Sprintf("%s ended without a failed test: %s", s.run, strings.TrimSpace(stderr.String())), nil
	}
	return "", s.run + " passed", err
}
