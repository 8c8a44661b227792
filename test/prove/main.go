// Command prove runs the searches for unknown faults: exploration of the model, the scripts against
// the model, histories and traces of whole installations, the simulation, and seeded faults against the
// tests. It prints each run and a table at the end.
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
	"sync"
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

// lanes run side by side: the first uses one core, the second waits for services most of the time.
var lanes = [][]step{
	{
		{
			"all states of the model",
			goTest("./test/model", "-tags", "prove", "-run", "TestEveryState|TestMoreStates", "-timeout", "20m"),
			regexp.MustCompile(`(?:explore|states_prove)_test\.go:\d+: (.* states, .*)`),
		},
	},
	{
		{
			"scripts on Redis as the model",
			goTest("./test/model", "-run", "TestTheScripts", "-timeout", "5m", "-rapid.checks=1000", "-rapid.nofailfile"),
			regexp.MustCompile(`\[rapid\] (OK, passed .*|failed .*)`),
		},
		{
			"histories and traces as such",
			goTest("./internal/ops/history", "./test/model", "-run", "History|ATrace", "-timeout", "5m"),
			regexp.MustCompile(`^--- (\w+: Test.*)`),
		},
		{
			"histories of drills",
			goTest("./cmd/seckill", "-run", "TestADrill", "-timeout", "10m"),
			regexp.MustCompile(`^--- (\w+: Test.*)`),
		},
		{
			"traces of killed processes",
			goTest("./test/system", "-tags", "faults", "-run", "TestTheModelAccepts", "-timeout", "10m"),
			regexp.MustCompile(`traces_faults_test\.go:\d+: (\d+ kills .*)`),
		},
		{
			"seeded faults", []string{"run", "./test/seeded"},
			regexp.MustCompile(`^(\d+ of \d+ found|.*  (?:Test\w+|NO TEST|not seeded: .*)  .*|.*  not seeded: .*)$`),
		},
	},
}

// simulation follows the first lane where the package is there.
var simulation = step{
	"the whole product on virtual time",
	goTest("./test/simulate", "-timeout", "25m", "-seeds", "2000", "-within", "12m"),
	regexp.MustCompile(`simulate_test\.go:\d+: (\d+ stories, .*)`),
}

// goTest returns the arguments of a test run: flags after the packages.
func goTest(args ...string) []string {
	return append([]string{"test", "-vet=off", "-count=1", "-v"}, args...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := os.Stat("test/simulate"); err == nil {
		lanes[0] = append(lanes[0], simulation)
	}
	began := time.Now()
	var table report
	var running sync.WaitGroup
	for _, lane := range lanes {
		running.Go(func() {
			for _, s := range lane {
				table.add(ctx, s)
			}
		})
	}
	running.Wait()
	if !table.print(time.Since(began)) {
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

// report collects the results of all steps.
type report struct {
	mu     sync.Mutex
	rows   [][4]string // guarded by mu
	failed bool        // guarded by mu
}

// add runs a step.
func (r *report) add(ctx context.Context, s step) {
	fmt.Fprintf(os.Stdout, "%s: go %s\n", s.name, strings.Join(s.args, " "))
	began := time.Now()
	lines, err := s.run(ctx)
	took := time.Since(began).Round(time.Second).String()
	r.mu.Lock()
	defer r.mu.Unlock()
	result := "holds"
	if err != nil {
		result, r.failed = "FAILS", true
	}
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, line := range lines {
		if i > 0 {
			r.rows = append(r.rows, [4]string{3: line})
			continue
		}
		r.rows = append(r.rows, [4]string{s.name, result, took, line})
	}
}

// print prints the table, and reports whether all holds.
func (r *report) print(took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nproof\tresult\ttime\tfigures")
	for _, row := range r.rows {
		fmt.Fprintln(table, strings.Join(row[:], "\t"))
	}
	fmt.Fprintf(table, "\nall in %s\n", took.Round(time.Second))
	return table.Flush() == nil && !r.failed
}

// run runs a step, shows its output, and returns its figures.
func (s step) run(ctx context.Context) (figures []string, err error) {
	cmd := exec.CommandContext(ctx, "go", s.args...)
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
			if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "    --- PASS") && line != "" {
				fmt.Fprint(os.Stdout, s.name+": "+line)
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
