package drill_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/drill"
	"seckill/internal/testenv"
)

// The process writes a line for each start; the first one ends by itself with exit code 2,
// as a worker that cannot reach Redis. Bash runs a trap between commands, and a signal that
// comes right before a read does not end that read, so each read has a limit.
func TestAWorkerThatEndsByItselfOrIsKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "starts")
	starts := func() int {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	const script = `trap 'exit 0' TERM; echo >> "$0"; [ "$(wc -l < "$0")" -gt 1 ] || exit 2; while :; do read -r -t 1 line; done`
	p := supervised(t, script, file)
	testenv.Eventually(t, testenv.Wait, func() bool { return starts() == 2 }, "a process that ended by itself is started again")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, testenv.Wait, func() bool { return starts() == 3 }, "a killed process is started again")
	if err := p.End(testenv.Wait); err != nil {
		t.Errorf("the end: %v", err)
	}
	if n := starts(); n != 3 {
		t.Errorf("%d starts after the end, want 3", n)
	}
}

func TestAProcessThatIgnoresSIGTERMIsKilledAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "starts")
	p := supervised(t, `trap '' TERM; echo >> "$0"; while :; do read -r -t 1 line; done`, file)
	testenv.Eventually(t, testenv.Wait, func() bool { _, err := os.Stat(file); return err == nil }, "the process has started")
	if err := p.End(time.Millisecond); !errors.Is(err, drill.ErrKilled) {
		t.Errorf("the end: %v, want %v", err, drill.ErrKilled)
	}
}

// supervised runs a script of bash whose input never ends.
func supervised(t *testing.T, script, file string) *drill.Process {
	t.Helper()
	input, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = input.Close(), output.Close() })
	p, err := drill.Supervise(func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script, file) //nolint:gosec // the callers' scripts
		cmd.Stdin = input
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
