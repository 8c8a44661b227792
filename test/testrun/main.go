// Command testrun runs all tests, Go and web, and prints a summary of the failures at the
// end.
//
//	go run ./test/testrun          everything (make test)
//	go run ./test/testrun short    a subset, in about two minutes (make test-short)
//	go run ./test/testrun race     all Go tests with the race detector (make race)
//	go run ./test/testrun e2e      all journeys in the browser (make e2e)
//	go run ./test/testrun faults   the fault tests in full size, and a table of them (make faults)
//
// It defines the commands of a test run, the progress line and the summary. After a
// failed step the later steps still run. It exits 1 when a test failed or was not run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	mode := "all"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, mode)
	stop()
	os.Exit(code)
}

// run runs the steps of a mode and returns the exit code.
func run(ctx context.Context, mode string) int {
	began := time.Now()
	if err := checkSpace(wantedSpace, os.TempDir(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "seckill-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := planOf(ctx, mode, filepath.Join(dir, "seckill"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return 1
	}
	r := newReport(logDir)
	bar := newProgress(os.Stdout, p.size())
	p.run(ctx, r, bar)
	p.rerun(ctx, r, bar)
	bar.close()
	if err := printFaults(os.Stdout, p.faults); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	r.print(os.Stdout, time.Since(began))
	if name := r.writeTimes(); name != "" {
		fmt.Fprintf(os.Stdout, "Times of steps, packages and tests: %s\n", name)
	}
	if r.failed() {
		return 1
	}
	return 0
}

// wantedSpace is the free disk space that a run wants: builds and test binaries take most
// of the 2.2 GB that a run from an empty cache needs.
const wantedSpace = 3 << 30

// checkSpace returns an error that names a directory with less free space than wanted, in
// bytes. Without the check, a full disk appears as many failed tests.
func checkSpace(wanted uint64, dirs ...string) error {
	for _, dir := range dirs {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(dir, &fs); err != nil {
			return &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
		free := fs.Bavail * uint64(fs.Bsize)
		if free < wanted {
			return fmt.Errorf("%s has %.1f GB of free space, and a run wants %.1f: free some, or set TMPDIR", dir,
				float64(free)/(1<<30), float64(wanted)/(1<<30))
		}
	}
	return nil
}
