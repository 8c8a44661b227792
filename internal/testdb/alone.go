package testdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/testenv"
)

// Sizes of the volumes of Alone, in megabytes: an empty database takes 60 and 10 of them.
const (
	dataVolume = 128
	walVolume  = 64
)

// Alone is a Postgres of its own for one test.
type Alone struct {
	t         testing.TB
	server    *server
	data, wal *testenv.Volume // nil = on no volumes
}

// StartAlone starts a server with a database that has all tables. It is stopped when the
// test ends.
func StartAlone(t testing.TB) *Alone {
	t.Helper()
	a := &Alone{t: t, server: newServer(t)}
	a.start()
	return a
}

// OnVolumes is StartAlone for a server whose data and write-ahead log are on a volume each.
func OnVolumes(t testing.TB) *Alone {
	t.Helper()
	a := &Alone{t: t, server: newServer(t)}
	a.data, a.wal = a.volume("data", dataVolume), a.volume("wal", walVolume)
	t.Cleanup(a.server.stop) // before the volumes go
	a.server.more = []string{"wal_keep_size=0", "min_wal_size=2MB", "max_wal_size=16MB"}
	a.start("--wal-segsize=1", "--waldir", filepath.Join(a.server.dir, "wal"))
	return a
}

// start initialises and starts the server, with more settings of initdb.
func (a *Alone) start(settings ...string) {
	a.t.Helper()
	a.server.init(settings...)
	a.server.start()
	a.server.shop()
}

func (a *Alone) volume(name string, megabytes int) *testenv.Volume {
	a.t.Helper()
	path := filepath.Join(a.server.dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		a.t.Fatal(err)
	}
	return testenv.MountVolume(a.t, path, megabytes, a.server.uid, a.server.gid)
}

// URL returns the address of the database.
func (a *Alone) URL() string { return a.server.url(shopName) }

// WithPassword sets the password of a user of its own, whose connections stay, and returns
// the address of the database for that user.
func (a *Alone) WithPassword(password string) (address string) {
	a.t.Helper()
	const name = "rotated"
	if a.AskPassword(name) {
		a.server.exec(`CREATE ROLE ` + name + ` LOGIN SUPERUSER`)
	}
	a.server.exec(`ALTER ROLE ` + name + ` PASSWORD '` + password + `'`)
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", name, password, a.server.addr(), shopName)
}

// AskPassword makes the server ask a user, who need not exist yet, for a password. It reports
// whether it did not before.
func (a *Alone) AskPassword(user string) (changed bool) {
	a.t.Helper()
	rules := filepath.Join(a.server.data(), "pg_hba.conf")
	text, err := os.ReadFile(rules)
	if err != nil {
		a.t.Fatal(err)
	}
	first := "host all " + user + " 127.0.0.1/32 scram-sha-256\n"
	if strings.HasPrefix(string(text), first) {
		return false
	}
	if err := os.WriteFile(rules, append([]byte(first), text...), 0o600); err != nil {
		a.t.Fatal(err)
	}
	a.server.exec(`SELECT pg_reload_conf()`)
	return true
}

// FillData takes all space of the data, also what is left in the pages of tables, until
// the returned function is called.
func (a *Alone) FillData() (free func()) {
	a.t.Helper()
	return a.fill(a.data, `CREATE TABLE full_disk AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)`)
}

// FillLog takes all space of the write-ahead log, which ends the server, until the returned
// function is called. That starts the server again if it does not run, as a supervisor
// does.
func (a *Alone) FillLog() (free func()) {
	a.t.Helper()
	empty := a.fill(a.wal, `SELECT pg_logical_emit_message(true, 'full disk', repeat('x', 1000000))`)
	return func() {
		a.t.Helper()
		empty()
		testenv.Eventually(a.t, setupTimeout, func() bool {
			if a.server.hasEnded() {
				a.server.stop() // closes the connections to it
				return a.server.tryToStart()
			}
			return a.server.db.PingContext(a.t.Context()) == nil
		}, "the server answers")
	}
}

// fill fills a volume, and runs a statement until it fails.
func (a *Alone) fill(v *testenv.Volume, statement string) (free func()) {
	a.t.Helper()
	free = v.Fill()
	for range 1000 {
		if _, err := a.server.db.ExecContext(a.t.Context(), statement); err != nil {
			a.t.Logf("the disk is full: %v", err)
			return free
		}
	}
	a.t.Fatal("postgres goes on with a full disk")
	return free
}
