package testenv

import (
	"context"
	_ "embed"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"seckill/internal/platform/redisconn"
)

// startTimeout bounds the start of a server; startTries bounds how many ports are tried
// when another process takes the free one.
const (
	startTimeout = Wait
	startTries   = 5
	redisVolume  = 32 // megabytes
)

// RedisProcess is a redis-server process for one test, for fault injection. It writes an
// append-only file without fsync: each write reaches the operating system before its
// reply, so that acknowledged writes survive a kill -9, whatever the disk does.
type RedisProcess struct {
	t        testing.TB
	dir      string
	settings []string
	environ  []string // added to the environment of the test
	addr     string   // host:port
	cmd      *exec.Cmd
	done     chan struct{} // closed when the process has ended
}

// RedisServer starts a server on a free port, with additional command line settings, for
// example "--cluster-enabled", "yes". It is stopped when the test ends.
func RedisServer(t testing.TB, settings ...string) *RedisProcess {
	t.Helper()
	return startRedis(t, &RedisProcess{t: t, dir: t.TempDir(), settings: settings})
}

// RedisServerOnVolume is RedisServer with its files on a volume of its own.
func RedisServerOnVolume(t testing.TB, settings ...string) (*RedisProcess, *Volume) {
	t.Helper()
	dir := t.TempDir()
	volume := MountVolume(t, dir, redisVolume, os.Getuid(), os.Getgid())
	return startRedis(t, &RedisProcess{t: t, dir: dir, settings: settings}), volume
}

// RedisServerFrom is RedisServer on the files of another one in a directory, which it changes.
func RedisServerFrom(t testing.TB, dir string) *RedisProcess {
	t.Helper()
	return startRedis(t, &RedisProcess{t: t, dir: dir})
}

func startRedis(t testing.TB, s *RedisProcess) *RedisProcess {
	t.Helper()
	t.Cleanup(s.Kill)
	for range startTries {
		s.addr = ReserveAddr(t)
		if s.start() {
			return s
		}
	}
	t.Fatalf("redis-server does not start:\n%s", s.log())
	return nil
}

// URL returns the URL of the server, also while it is down, with timeouts that a busy
// machine does not exceed.
func (s *RedisProcess) URL() string { return RedisURLAt(s.addr) }

// ShortURL is URL with the product's timeouts, for tests of them.
func (s *RedisProcess) ShortURL() string { return "redis://" + s.addr + "/0" }

// Addr returns host and port of the server.
func (s *RedisProcess) Addr() string { return s.addr }

// Dir returns the directory of the server's files.
func (s *RedisProcess) Dir() string { return s.dir }

// Conn returns connections to the server, with timeouts that a busy machine does not
// exceed. They are closed when the test ends.
func (s *RedisProcess) Conn() *redisconn.Conn {
	s.t.Helper()
	return s.open(s.URL())
}

// ShortConn is Conn with the product's timeouts, for tests of them.
func (s *RedisProcess) ShortConn() *redisconn.Conn {
	s.t.Helper()
	return s.open(s.ShortURL())
}

func (s *RedisProcess) open(address string) *redisconn.Conn {
	s.t.Helper()
	var conn *redisconn.Conn
	Eventually(s.t, Wait, func() (opened bool) {
		var err error
		conn, err = redisconn.Open(s.t.Context(), address)
		return err == nil
	}, "the server answers within the timeout")
	s.t.Cleanup(func() { _ = conn.Close() }) // the server may be gone
	return conn
}

// Kill sends SIGKILL and waits for the end of the process, and of a child that saves. It
// does nothing when the server is down.
func (s *RedisProcess) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT) // a paused process would not be reaped
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Restart kills the process if it is up and starts it again on the same port with the
// same data.
func (s *RedisProcess) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.start() {
		s.t.Fatalf("redis-server does not start again:\n%s", s.log())
	}
}

// Backup copies the current data and returns a function that restores it: the server is
// killed and started with the copy, so that later writes are lost.
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

// Pause stops the process (SIGSTOP) without closing its connections: it accepts
// connections but does not answer. Resume continues it.
func (s *RedisProcess) Pause() { s.signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (s *RedisProcess) Resume() { s.signal(syscall.SIGCONT) }

// FlushAll deletes all data, as a failover to an empty replica would.
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

// start reports whether the server answers; if not, it is stopped again.
func (s *RedisProcess) start() bool {
	s.t.Helper()
	log, err := os.Create(s.logPath())
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	settings := []string{
		"--port", port, "--bind", host, "--dir", s.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--maxmemory-policy", "noeviction",
	}
	s.cmd = exec.Command("redis-server", append(settings, s.settings...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = append(os.Environ(), s.environ...)
	// A child that saves inherits the pipe, and may write files after its parent was killed.
	alive, inherited, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd.ExtraFiles = []*os.File{inherited}
	err = s.cmd.Start()
	_ = inherited.Close()
	if err != nil {
		_ = alive.Close()
		s.t.Fatalf("%v: run `make services`, which installs it", err)
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // its exit status is in its log
		_ = alive.SetReadDeadline(time.Now().Add(Wait))
		_, _ = alive.Read(make([]byte, 1)) // returns once all that inherited the pipe have ended
		_ = alive.Close()
		close(done)
	}(s.cmd, s.done)
	if s.answers() {
		return true
	}
	s.Kill()
	return false
}

// answers waits for the first reply. It returns false when the process has ended, since
// another process may have taken the port.
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
