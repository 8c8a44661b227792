package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// maxLine bounds one line of output, in bytes.
const maxLine = 16 << 20

// interruptWait bounds how long a command may take to end after an interrupt.
const interruptWait = 30 * time.Second

// reader parses the output of a command line by line. It returns output that belongs to
// no test.
type reader func(s *step, r *report, line []byte) (rest string)

// step is one command of a run.
type step struct {
	name     string
	command  []string
	read     reader // nil = plainOutput
	packages int    // Go packages to test, for the progress line
	ended    int    // of them
	again    string // command that runs only this step
}

// run runs the command, reads its results into the report, and records a problem when it
// failed without a failed test.
func (s *step) run(ctx context.Context, environ []string, r *report, bar *progress) {
	if s.read == nil {
		s.read = plainOutput
	}
	bar.begin(s)
	defer bar.end(s)
	began := time.Now()
	output, failures, ended, err := s.execute(ctx, environ, r, bar)
	r.stepEnded(s.name, time.Since(began), ended)
	if err == nil || failures > 0 {
		return
	}
	r.problem(s.name, fmt.Sprintf("%v\n%s", err, output), s.again)
}

// execute runs the command and returns the output that belongs to no test, the number of
// failures that the command reported, and the state of the process, nil when it did not
// start.
func (s *step) execute(ctx context.Context, environ []string, r *report, bar *progress) (output string, failures int,
	state *os.ProcessState, err error) {
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Env = environ
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptWait
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = in.Close()
		ended <- err
	}()
	var rest tail
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r.Lock()
		before := len(r.failures)
		rest.add(s.read(s, r, lines.Bytes()))
		failures += len(r.failures) - before
		bar.update(s, r)
		r.Unlock()
	}
	err = lines.Err()
	_, _ = io.Copy(io.Discard, out) // a line that is too long must not block the command
	if waited := <-ended; waited != nil {
		err = waited
	}
	return rest.String(), failures, cmd.ProcessState, err
}

// plainOutput reads the output of a command without tests.
func plainOutput(_ *step, _ *report, line []byte) string { return string(line) + "\n" }
