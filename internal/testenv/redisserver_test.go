package testenv_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

// A child that saves lives on when its parent is killed, and would write into a directory
// that the end of the test removes.
func TestAKilledRedisServerHasNoChildLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := testenv.RedisServer(t, "--dir", dir, "--rdb-key-save-delay", "200000") // µs
	client := server.Conn().Cmd
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := client.Set(t.Context(), key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.BgSave(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	unfinished, err := filepath.Glob(filepath.Join(dir, "temp-*.rdb")) // the number is that of the child
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range unfinished {
		child := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "temp-"), ".rdb")
		if open, err := os.ReadDir("/proc/" + child + "/fd"); err == nil && len(open) > 0 {
			t.Errorf("the child %s still has %d open files", child, len(open))
		}
	}
}
