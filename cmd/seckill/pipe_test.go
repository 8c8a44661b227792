package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheDemoLeavesNothingBehindWhenItsReaderGoes(t *testing.T) {
	t.Parallel()
	cmd := process(t, nil, "demo", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	temporary := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close() // as head does once it has read enough
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	_ = waitFor(cmd.Wait) // however it ends
	if left, err := filepath.Glob(temporary + "/*"); err != nil || len(left) > 0 || cmd.ProcessState == nil {
		t.Errorf("it ended with %v and left %v behind (%v)", cmd.ProcessState, left, err)
	}
}
