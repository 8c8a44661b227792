package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"seckill/internal/testenv"
)

const (
	// superuser owns the servers and their databases.
	superuser = "seckill"
	// shopName is the database with all tables.
	shopName = "shop"
	// standbyName is the application_name of the standby at its primary.
	standbyName = "standby"
	// postgresUser runs the servers of a test that runs as root, which Postgres refuses.
	postgresUser = "postgres"
	serverStarts = 5
)

// Replicated is a Postgres of its own for one test: a primary and a standby that streams
// from it, asynchronously until Synchronous is called.
type Replicated struct {
	t       testing.TB
	primary *server
	standby *server
	stream  *testenv.Proxy // between the two
}

// Replicate starts a primary with a database that has all tables, and a standby made by
// pg_basebackup. They are stopped when the test ends.
func Replicate(t testing.TB) *Replicated {
	t.Helper()
	r := &Replicated{t: t, primary: newServer(t)}
	r.primary.init()
	r.primary.start()
	r.primary.shop()
	r.stream = testenv.NewProxy(t, r.primary.addr())
	r.standby = newServer(t)
	r.standby.run("pg_basebackup", "--no-sync", "--checkpoint=fast", "--write-recovery-conf", "-D", r.standby.data(),
		"-d", fmt.Sprintf("postgres://%s@%s/?application_name=%s", superuser, r.stream.Addr(), standbyName))
	r.standby.start()
	testenv.Eventually(t, setupTimeout, func() bool {
		return r.primary.value(`SELECT count(*) FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming'`,
			standbyName) == "1"
	}, "the standby streams")
	return r
}

// URL returns the address of the database at the server that takes writes.
func (r *Replicated) URL() string {
	return fmt.Sprintf("postgres://%s@%s,%s/%s?sslmode=disable&target_session_attrs=read-write", superuser,
		r.primary.addr(), r.standby.addr(), shopName)
}

// PrimaryURL returns the address of the database at the primary.
func (r *Replicated) PrimaryURL() string { return r.primary.url(shopName) }

// StandbyURL returns the address of the database at the standby.
func (r *Replicated) StandbyURL() string { return r.standby.url(shopName) }

// Synchronous makes commits wait for standbys, as in synchronous_standby_names: "*" names
// the standby.
func (r *Replicated) Synchronous(names string) {
	r.t.Helper()
	r.primary.exec(fmt.Sprintf(`ALTER SYSTEM SET synchronous_standby_names = '%s'`, names), `SELECT pg_reload_conf()`)
	testenv.Eventually(r.t, setupTimeout, func() bool {
		return r.primary.value(
			`SHOW synchronous_standby_names`) == names
	}, "the primary has its standby names")
	synchronous := "0"
	if names == "*" || names == standbyName {
		synchronous = "1"
	}
	testenv.Eventually(r.t, setupTimeout, func() bool {
		return r.primary.value(`SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`) == synchronous
	}, "the standby has its place")
}

// CatchUp waits until the standby has replayed what was committed before.
func (r *Replicated) CatchUp() {
	r.t.Helper()
	at := r.primary.value(`SELECT pg_current_wal_flush_lsn()`)
	testenv.Eventually(r.t, setupTimeout, func() bool {
		return r.standby.value(`SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn`, at) == "true"
	}, "the standby has caught up")
}

// Unplug stops what the standby receives. A pause of its replay would not do: a promotion
// replays all that was received.
func (r *Replicated) Unplug() { r.stream.Silence() }

// Plug undoes Unplug.
func (r *Replicated) Plug() { r.stream.Restore() }

// FailOver stops the primary as a crash does, promotes the standby, and waits until it
// accepts writes. Commits since Unplug are lost.
func (r *Replicated) FailOver() {
	r.t.Helper()
	r.primary.stop()
	if r.standby.value(`SELECT pg_promote(true, $1)`, int(setupTimeout.Seconds())) != "true" {
		r.t.Fatalf("the standby is not promoted:\n%s", r.standby.log())
	}
}

// server is a Postgres process with its own data.
type server struct {
	t     testing.TB
	dir   string
	as    *syscall.Credential // nil = the user of the test
	uid   int                 // of the user that runs it
	gid   int
	more  []string // settings beside those of all servers
	port  int
	db    *sql.DB // maintenance database
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// newServer returns a server without data. Its directory is not t.TempDir, which another
// user cannot enter, and is in memory where there is some: it starts several times faster.
func newServer(t testing.TB) *server {
	t.Helper()
	parent := os.TempDir()
	if _, err := os.Stat("/dev/shm"); err == nil {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "seckill-standby-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{t: t, dir: dir, uid: os.Getuid(), gid: os.Getgid()}
	t.Cleanup(s.stop)
	if s.uid != 0 {
		return s
	}
	owner, err := user.Lookup(postgresUser)
	if err != nil {
		t.Fatalf("%v: run `make services`, which installs it", err)
	}
	var err1, err2 error
	s.uid, err1 = strconv.Atoi(owner.Uid)
	s.gid, err2 = strconv.Atoi(owner.Gid)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := os.Chown(dir, s.uid, s.gid); err != nil {
		t.Fatal(err)
	}
	s.as = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid)}
	return s
}

func (s *server) data() string    { return filepath.Join(s.dir, "data") }
func (s *server) logPath() string { return filepath.Join(s.dir, "log") }

func (s *server) log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// command returns a program of Postgres, of the newest version. Debian keeps them out of
// PATH.
func (s *server) command(name string, args ...string) *exec.Cmd {
	path := name
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err == nil && len(found) > 0 {
		path = slices.MaxFunc(found, func(a, b string) int { return versionOf(a) - versionOf(b) })
	}
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

// versionOf returns the version in a path such as /usr/lib/postgresql/15/bin/postgres.
func versionOf(path string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return version
}

func (s *server) run(name string, args ...string) {
	s.t.Helper()
	if text, err := s.command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: run `make services`, which installs it\n%s", name, err, text)
	}
}

// init makes the files of an empty server.
func (s *server) init(settings ...string) {
	s.t.Helper()
	s.run("initdb", append(settings, "--no-sync", "-U", superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "-D",
		s.data())...)
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *server) url(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", superuser, s.addr(), database)
}

// start starts the server on a free port, and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	for range serverStarts {
		if s.port = testenv.ReservePort(s.t); s.tryToStart() {
			return
		}
	}
	s.t.Fatalf("postgres does not start:\n%s", s.log())
}

// shop creates the database with all tables.
func (s *server) shop() {
	s.t.Helper()
	s.exec(`CREATE DATABASE ` + shopName)
	ctx, cancel := context.WithTimeout(s.t.Context(), setupTimeout)
	defer cancel()
	if err := migrate(ctx, s.url(shopName)); err != nil {
		s.t.Fatal(err)
	}
}

// tryToStart reports whether the server answers; if not, it is stopped again.
func (s *server) tryToStart() bool {
	s.t.Helper()
	log, err := os.Create(s.logPath())
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port)}
	settings := []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "lc_messages=C", "timezone=UTC", "fsync=off",
		"autovacuum=off",
		"wal_keep_size=512MB", "wal_retrieve_retry_interval=200ms",
	}
	for _, setting := range append(settings, s.more...) {
		args = append(args, "-c", setting)
	}
	s.cmd, s.ended = s.command("postgres", args...), make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("%v: run `make services`, which installs it", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // its exit status is in its log
	}()
	if s.db, err = sql.Open("postgres", s.url("postgres")); err != nil {
		s.t.Fatal(err)
	}
	answers := false
	testenv.Eventually(s.t, setupTimeout, func() bool {
		answers = s.db.PingContext(s.t.Context()) == nil
		return answers || s.hasEnded()
	}, "the server answers")
	if !answers {
		s.stop()
	}
	return answers
}

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// stop ends the server as a crash does, and waits for it. It does nothing when the server
// is down.
func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.db.Close()
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	<-s.ended
	s.cmd = nil
}

// exec executes statements.
func (s *server) exec(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.db.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// value returns the only value of a query as text.
func (s *server) value(query string, args ...any) (text string) {
	s.t.Helper()
	if err := s.db.QueryRowContext(s.t.Context(), query, args...).Scan(&text); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return text
}
