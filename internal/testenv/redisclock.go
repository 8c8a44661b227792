package testenv

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed clockshift/clockshift.c
var clockShiftSource []byte

// RedisServerWithClock starts a server like RedisServer whose clock the test can change:
// shift sets how far it is ahead of the machine's clock, in whole seconds.
func RedisServerWithClock(t testing.TB, settings ...string) (s *RedisProcess, shift func(ahead time.Duration)) {
	t.Helper()
	dir := t.TempDir()
	source, library, file := filepath.Join(dir, "clockshift.c"), filepath.Join(dir, "clockshift.so"),
		filepath.Join(dir, "seconds")
	if err := os.WriteFile(source, clockShiftSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-O1", "-o", library, source).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: run `make services`, which installs a C compiler\n%s", err, text)
	}
	shift = func(ahead time.Duration) {
		t.Helper()
		// Not os.WriteFile: a truncated file could not be read by the server for a moment.
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)), 0); err != nil {
			t.Fatal(err)
		}
	}
	shift(0)
	return startRedis(t, &RedisProcess{t: t, dir: t.TempDir(), settings: settings,
		environ: []string{"LD_PRELOAD=" + library, "CLOCK_SHIFT_FILE=" + file}}), shift
}
