package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// asCommand names a variable that makes the test binary run as the command, so that tests
// can start it as a process.
const asCommand = "SECKILL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const key = "0123456789abcdef0123456789abcdef"

// answer holds the output and the exit code of a command.
type answer struct {
	code           int
	stdout, stderr string
}

// command runs a command inside the test process, with only the given environment.
func command(t *testing.T, environ []string, args ...string) answer {
	t.Helper()
	return commandWithInput(t, "", environ, args...)
}

func commandWithInput(t *testing.T, input string, environ []string, args ...string) answer {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.WriteString(w, input); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Wait)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, environment{stdin: r, stdout: &stdout, stderr: &stderr, environ: environ})
	return answer{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// wants checks the exit code and the content of standard error.
func (a answer) wants(t *testing.T, code int, stderr ...string) {
	t.Helper()
	if a.code != code {
		t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s", a.code, code, a.stdout, a.stderr)
	}
	for _, part := range stderr {
		if !strings.Contains(a.stderr, part) {
			t.Errorf("stderr lacks %q:\n%s", part, a.stderr)
		}
	}
}

// services returns an environment with a migrated database and a key prefix in Redis for
// the test, in the development profile.
func services(t *testing.T) []string {
	t.Helper()
	_, prefix := testenv.Redis(t)
	return []string{
		"SECKILL_DATABASE_URL=" + testdb.PostgresURL(t), "SECKILL_REDIS_URL=" + testenv.RedisURL(t),
		"SECKILL_REDIS_PREFIX=" + prefix, "SECKILL_JWT_KEY=" + key, "SECKILL_PROFILE=development",
		"SECKILL_LOG_LEVEL=warn", "SECKILL_REQUEST_TIMEOUT=1m", "SECKILL_DRAIN_TIMEOUT=2m",
	}
}

// process returns a Cmd that runs the command as a separate process.
func process(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...) //nolint:gosec // the test binary itself
	cmd.Env = append([]string{asCommand + "=1", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}, environ...)
	cmd.Dir = t.TempDir()
	return cmd
}
