package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"seckill/internal/testenv"
)

// waitingTime bounds a wait, on a busy machine too.
const waitingTime = testenv.Wait

func TestServeOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	cmd := process(t, append(services(t), "SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0",
		"SECKILL_LOG_LEVEL=info", "SECKILL_LOG_FORMAT=json"), "serve")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Msg    string
		Public net.TCPAddr
	}
	for lines := bufio.NewScanner(stderr); line.Msg != "listening" && lines.Scan(); {
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
	}
	stderr.Close()
	for range 3 { // each is a line of the log
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+line.Public.String()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Timeout: waitingTime}).Do(req)
		if err != nil {
			t.Fatalf("it does not answer any more: %v", err)
		}
		res.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(cmd.Wait); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func TestTheDemoRemovesItsFilesAfterABrokenPipe(t *testing.T) {
	t.Parallel()
	cmd := process(t, nil, "demo", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--request-timeout", "1m", "--drain-timeout", "2m")
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
	_ = waitFor(cmd.Wait) // the exit status does not matter
	if left, err := filepath.Glob(temporary + "/*"); err != nil || len(left) > 0 || cmd.ProcessState == nil {
		t.Errorf("it ended with %v and left %v behind (%v)", cmd.ProcessState, left, err)
	}
}
