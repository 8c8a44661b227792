package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"seckill/internal/redisconn"
)

// startTimeout bounds the start of a server, startTries how often another port
// is tried when somebody else took the one that was free.
const (
	startTimeout = Wait
	startTries   = 5
)

// RedisProcess is a redis-server process of the test's own, for tests of faults.
// It keeps its data in an append-only file, synced always, so that a restart
// brings back what was acknowledged.
type RedisProcess struct {
	t        testing.TB
	dir      string
	settings []string
	port     int
	cmd      *exec.Cmd
	done     chan struct{} // closed when the process has ended
}

// RedisServer starts a server on a free port, with further settings as they
// stand on its command line, for example "--cluster-enabled", "yes". It is ended
// with the test.
func RedisServer(t testing.TB, settings ...string) *RedisProcess {
	t.Helper()
	s := &RedisProcess{t: t, dir: t.TempDir(), settings: settings}
	t.Cleanup(s.Kill)
	for range startTries {
		s.port = freePort(t)
		if s.start() {
			return s
		}
	}
	t.Fatalf("redis-server does not start:\n%s", s.log())
	return nil
}

// URL returns where the server is, also while it is down.
func (s *RedisProcess) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", s.port) }

// Addr returns host and port of the server.
func (s *RedisProcess) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Conn returns connections to the server, closed when the test ends.
func (s *RedisProcess) Conn() *redisconn.Conn {
	s.t.Helper()
	conn, err := redisconn.Open(s.t.Context(), s.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() }) // the server may be gone
	return conn
}

// Kill ends the process as a crash would, and waits for its end. Killing a
// server that is down does nothing.
func (s *RedisProcess) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT) // a paused process would not be reaped
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Restart kills the process if it is up and starts it again on the same port
// with the same data.
func (s *RedisProcess) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.start() {
		s.t.Fatalf("redis-server does not start again:\n%s", s.log())
	}
}

// Backup copies the data as it is now and returns a function that brings it back,
// as an operator does after a disaster: the server is killed and starts again with
// the copy, and knows nothing of what came after.
func (s *RedisProcess) Backup() (restore func()) {
	s.t.Helper()
	copied := s.t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		s.Kill()
		s.dir = copied
		s.Restart()
	}
}

// Pause stops the process without closing its connections: a server that is
// there and says nothing. Resume lets it go on.
func (s *RedisProcess) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *RedisProcess) Resume() { s.signal(syscall.SIGCONT) }

// FlushAll empties the server, as a failover to an empty replica would.
func (s *RedisProcess) FlushAll() {
	s.t.Helper()
	if err := s.Conn().Cmd.FlushAll(s.t.Context()).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *RedisProcess) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// start reports whether the server answers; it is not left running otherwise.
func (s *RedisProcess) start() bool {
	s.t.Helper()
	log, err := os.Create(s.logPath())
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	settings := []string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
	}
	s.cmd = exec.Command("redis-server", append(settings, s.settings...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("%v: run `make services`, which installs it", err)
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(done)
	}(s.cmd, s.done)
	if s.answers() {
		return true
	}
	s.Kill()
	return false
}

// answers waits for the first reply. The process must still be ours then, not a
// stranger that took the port.
func (s *RedisProcess) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.done:
			return false
		case <-tick.C:
		}
		conn, err := redisconn.Open(ctx, s.URL())
		if err != nil {
			continue
		}
		_ = conn.Close()
		select {
		case <-s.done:
			return false
		default:
			return true
		}
	}
}

func (s *RedisProcess) logPath() string { return filepath.Join(s.dir, "redis.log") }

func (s *RedisProcess) log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
