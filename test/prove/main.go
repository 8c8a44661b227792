// Command prove runs the searches for unknown faults: exploration of the model, the scripts against
// the model, histories of drills, and seeded faults against the tests. It prints each run and a table
// at the end.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// step is one command of the proof.
type step struct {
	name string
	args []string
	// figures selects the lines of its output that are in the table.
	figures *regexp.Regexp
}

var steps = []step{
	{
		"all states of the model",
		goTest("./test/model", "-tags", "prove", "-run", "TestEveryState|TestMoreStates", "-timeout", "15m"),
		regexp.MustCompile(`explore_test\.go:\d+: (.* states, .*)`),
	},
	{
		"scripts on Redis as the model",
		goTest("./test/model", "-run", "TestTheScripts", "-timeout", "5m", "-rapid.checks=1000", "-rapid.nofailfile"),
		regexp.MustCompile(`\[rapid\] (OK, passed .*|failed .*)`),
	},
	{
		"histories of drills",
		goTest("./internal/ops/drill", "./cmd/seckill", "-run", "History|TestADrill", "-timeout", "5m"),
		regexp.MustCompile(`^--- (\w+: Test.*)`),
	},
	{
		"seeded faults", []string{"run", "./test/seeded"},
		regexp.MustCompile(`^(\d+ of \d+ found|.*  NO TEST  .*)$`),
	},
}

// goTest returns the arguments of a test run: flags after the packages.
func goTest(args ...string) []string {
	return append([]string{"test", "-vet=off", "-count=1", "-v"}, args...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nproof\tresult\ttime\tfigures")
	failed := false
	for _, s := range steps {
		fmt.Fprintf(os.Stdout, "\n%s: go %s\n", s.name, strings.Join(s.args, " "))
		began := time.Now()
		lines, err := s.run(ctx)
		result := "holds"
		if err != nil {
			result, failed = "FAILS", true
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
		for i, line := range lines {
			if i == 0 {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.name, result, time.Since(began).Round(time.Second), line)
			} else {
				fmt.Fprintf(table, "\t\t\t%s\n", line)
			}
		}
	}
	if err := table.Flush(); err != nil || failed {
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

// run runs a step, shows its output, and returns its figures.
func (s step) run(ctx context.Context) (figures []string, err error) {
	cmd := exec.CommandContext(ctx, "go", s.args...) //nolint:gosec // own table
	cmd.WaitDelay = time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if found := s.figures.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
				figures = append(figures, found[1])
			}
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(os.Stdout, line)
			}
			if err != nil {
				return
			}
		}
	}()
	err = cmd.Run()
	_ = in.Close() // the reader gets io.EOF
	<-done
	return figures, err
}
