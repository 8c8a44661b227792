//go:build ship

package deploy

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/testdb"
)

// pooler starts PgBouncer with the shipped configuration in front of a database, and
// returns the database's URL through it. The pool has two servers, so that the
// connections of the product share them.
func pooler(t *testing.T, direct string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pooler") // not t.TempDir, which another user cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	name := strings.TrimPrefix(u.Path, "/")
	users := filepath.Join(dir, "userlist.txt")
	readable(t, users, []byte(`"`+u.User.Username()+`" ""`))
	address := startProgram(t, func(address string) *exec.Cmd {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		config := configured(t, "pgbouncer/pgbouncer.ini", dir, append([]string{
			"seckill = host=127.0.0.1 port=5432 dbname=seckill", name + " = host=127.0.0.1 port=" + u.Port() + " dbname=" + name,
			"listen_port = 6432", "listen_port = " + port, "auth_type = scram-sha-256", "auth_type = trust",
			"/etc/pgbouncer/userlist.txt", users, "default_pool_size = 20", "default_pool_size = 2",
		}, pairs...)...)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(config, 0o644); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 { // PgBouncer refuses to run as root
			return exec.Command("pgbouncer", "-u", "daemon", config)
		}
		return exec.Command("pgbouncer", config)
	}, func(address string) bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	u.Host, u.RawQuery = address, "sslmode=disable"
	return u.String()
}

func readable(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPgBouncerPassesMigrationAndPurchase(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, environ: settings(t)}
	s.environ[0] = "SECKILL_DATABASE_URL=" + pooler(t, testdb.EmptyPostgresURL(t))
	s.environ = append(s.environ, "SECKILL_DATABASE_POOLING=transaction")
	s.command("migrate", "up")
	s.seed()
	s.serve(exec.Command(binary(t), "serve"))
	s.buysThrough("http://"+s.public, http.DefaultClient)
}

// In session mode the timeouts are refused at the start of a connection, and set after it.
func TestPgBouncerInSessionModeNeedsNoSetting(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, environ: settings(t)}
	s.environ[0] = "SECKILL_DATABASE_URL=" + pooler(t, testdb.EmptyPostgresURL(t), "pool_mode = transaction", "pool_mode = session",
		"default_pool_size = 2", "default_pool_size = 60")
	s.command("migrate", "up")
	s.seed()
	s.serve(exec.Command(binary(t), "serve"))
	s.buysThrough("http://"+s.public, http.DefaultClient)
}

func TestAPoolerInTransactionModeIsRefusedWithoutItsSetting(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, environ: settings(t)}
	s.environ[0] = "SECKILL_DATABASE_URL=" + pooler(t, testdb.ShortPostgresURL(t))
	cmd := exec.Command(binary(t), "serve")
	cmd.Env = s.environ
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "set SECKILL_DATABASE_POOLING=transaction") {
		t.Errorf("serve: %v\n%s", err, out)
	}
}

func TestDoctorFindsAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	direct := testdb.ShortPostgresURL(t)
	s := &shop{t: t, environ: settings(t)}
	doctor := func(want, unwanted string) {
		t.Helper()
		cmd := exec.Command(binary(t), "doctor")
		cmd.Env = s.environ
		out, _ := cmd.CombinedOutput() // it may find other things
		if !strings.Contains(string(out), want) || (unwanted != "" && strings.Contains(string(out), unwanted)) {
			t.Errorf("want %q and not %q:\n%s", want, unwanted, out)
		}
	}
	const found = "set SECKILL_DATABASE_POOLING=transaction"
	s.environ[0] = "SECKILL_DATABASE_URL=" + direct
	doctor("all ", found)

	s.environ[0] = "SECKILL_DATABASE_URL=" + pooler(t, direct)
	doctor(found, "")
	lenient := pooler(t, direct, "max_client_conn = 2000",
		"ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout")
	s.environ[0] = "SECKILL_DATABASE_URL=" + lenient
	doctor(found, "")

	s.environ = append(s.environ, "SECKILL_DATABASE_POOLING=transaction")
	doctor("ALTER ROLE", found)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "psql", direct, "--command", `ALTER DATABASE "`+strings.TrimPrefix(u.Path, "/")+`" SET statement_timeout = '2s'`)
	s.environ[0] = "SECKILL_DATABASE_URL=" + pooler(t, direct)
	doctor("all ", "ALTER ROLE")
}
