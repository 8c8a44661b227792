package testenv

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, checks that no goroutine is left, and exits.
func Main(m *testing.M, options ...goleak.Option) { os.Exit(Run(m, options...)) }

// Run is Main without the exit; it returns the exit code. goleak.VerifyTestMain gives
// goroutines half a second to end, which is too short for a busy machine.
func Run(m *testing.M, options ...goleak.Option) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	for start := time.Now(); ; {
		err := goleak.Find(options...)
		if err == nil {
			return 0
		}
		if time.Since(start) > Wait {
			_, _ = fmt.Fprintf(os.Stderr, "the tests pass, but %v\n", err)
			return 1
		}
	}
}
