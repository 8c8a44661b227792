package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/internal/testenv"
)

// binaryVariable names an environment variable with the path of a built command.
const binaryVariable = "SECKILL_BINARY"

// binaryOf returns the path of the command and builds it if needed.
func binaryOf(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(binaryVariable); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "seckill")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, text)
	}
	return path
}

// demoProcess runs the demo in its own process group, as a shell does, with its own files
// and settings. It is killed with the test.
func demoProcess(t *testing.T, home string) (*demo, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), binaryOf(t), "demo", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--pow-max", "10000", "--request-timeout", "1m", "--drain-timeout", "2m") //nolint:gosec // our own command
	cmd.Env, cmd.Dir = []string{"HOME=" + home, "TMPDIR=" + home}, home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // it has usually ended already
	d := &demo{T: t, client: http.Client{Timeout: testenv.Wait}}
	t.Cleanup(d.client.CloseIdleConnections)
	lines := bufio.NewScanner(out)
	for d.url == "" && lines.Scan() {
		if found := regexp.MustCompile(`(http://[^ /]+)/playground`).FindStringSubmatch(lines.Text()); found != nil {
			d.url = found[1]
		}
	}
	if d.url == "" {
		t.Fatalf("the demo ended: %v\n%s", cmd.Wait(), stderr.String())
	}
	go func() {
		for lines.Scan() { // prevents the process from blocking on a full pipe
		}
	}()
	return d, cmd, &stderr
}

func TestTheDemoSellsAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	d, cmd, stderr := demoProcess(t, home)
	response, err := d.client.Get(d.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the shop answers %s, %s", response.Status, kind)
	}
	if task := d.walkThrough(documents(t)); task == "" {
		t.Error("no order task")
	}
	d.client.CloseIdleConnections()

	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as Ctrl-C does
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the demo ended with %v:\n%s", err, stderr.String())
		}
	case <-time.After(testenv.Wait):
		t.Fatal("the demo does not end")
	}
	if err := syscall.Kill(-cmd.Process.Pid, 0); err == nil {
		t.Error("a process of the demo is left")
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	address, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address.Host); err == nil {
		_ = conn.Close()
		t.Error("the port still answers")
	}
}
