package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/internal/ops/doctor"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/config"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/priority"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const key = "0123456789abcdef0123456789abcdef"

// healthy returns an installation without problems.
func healthy(t *testing.T) doctor.Deps {
	t.Helper()
	return deps(t, testdb.PostgresURL(t), testenv.RedisServer(t, "--appendfsync", "everysec").URL(), "SECKILL_PROFILE", "development")
}

func TestSettingsThatLetStrangersInAreWarnedOfInProduction(t *testing.T) {
	t.Parallel()
	d := deps(t, testdb.PostgresURL(t), testenv.RedisURL(t), "SECKILL_JWT_KEY", "passwordpasswordpasswordpassword")
	findings := check(t, d)
	for _, part := range []string{"SECKILL_PUBLIC_URL is empty", "SECKILL_JWT_KEY is predictable"} {
		wants(t, findings, "config", doctor.Warning, part)
	}
}

func TestFewOpenFilesAreWarnedOf(t *testing.T) {
	t.Parallel()
	d := healthy(t)
	d.Files = 1024
	wants(t, check(t, d), "config", doctor.Warning, "SECKILL_MAX_SOCKETS is 20000, but 1024 open files allow 576 sockets")
}

// deps returns an installation with further variables and flags.
func deps(t *testing.T, database, redis string, extra ...string) doctor.Deps {
	t.Helper()
	vars := map[string]string{"SECKILL_DATABASE_URL": database, "SECKILL_REDIS_URL": redis, "SECKILL_JWT_KEY": key, "SECKILL_SANDBOX": "trial"}
	var args []string
	for i := 0; i < len(extra); i += 2 {
		if strings.HasPrefix(extra[i], config.EnvPrefix) {
			vars[extra[i]] = extra[i+1]
		} else {
			args = append(args, "--"+extra[i]+"="+extra[i+1])
		}
	}
	cfg, settings, err := config.Parse(args, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	d := doctor.Deps{Config: cfg, Settings: settings, Clock: clock.System{}, Files: 65_536, Timeout: testenv.Wait}
	for name, value := range vars {
		d.Environ = append(d.Environ, name+"="+value)
	}
	return d
}

// check returns the findings, but for the fsync that the private Postgres is without.
func check(t *testing.T, d doctor.Deps) []doctor.Finding {
	t.Helper()
	return slices.DeleteFunc(doctor.Check(t.Context(), d), func(f doctor.Finding) bool { return strings.HasPrefix(f.Message, "fsync is off") })
}

// find returns the findings of an area with a level.
func find(findings []doctor.Finding, area string, level doctor.Level) []string {
	var found []string
	for _, f := range findings {
		if f.Area == area && f.Level == level {
			found = append(found, f.Message)
		}
	}
	return found
}

func wants(t *testing.T, findings []doctor.Finding, area string, level doctor.Level, part string) {
	t.Helper()
	if !strings.Contains(strings.Join(find(findings, area, level), "\n"), part) {
		t.Errorf("no %s of %s with %q in %+v", level, area, part, findings)
	}
	if level == doctor.Error == doctor.Healthy(findings) {
		t.Errorf("healthy: %t with %+v", doctor.Healthy(findings), findings)
	}
}

func TestAFitInstallationHasNoFindings(t *testing.T) {
	t.Parallel()
	findings := check(t, healthy(t))
	for _, f := range findings {
		if f.Level != doctor.OK {
			t.Errorf("finding %+v", f)
		}
	}
	for area, n := range map[string]int{"config": 1, "postgres": 3, "redis": 3, "clock": 2} {
		if got := find(findings, area, doctor.OK); len(got) != n {
			t.Errorf("%s was examined %d times, want %d: %q", area, len(got), n, got)
		}
	}
}

func TestAPostgresWithoutFsyncIsAnErrorInProduction(t *testing.T) {
	t.Parallel()
	var fsync string
	if err := testdb.Postgres(t).SQL.QueryRowContext(t.Context(), "SHOW fsync").Scan(&fsync); err != nil {
		t.Fatal(err)
	}
	findings := doctor.Check(t.Context(), deps(t, testdb.PostgresURL(t), testenv.RedisURL(t)))
	if reported := strings.Contains(strings.Join(find(findings, "postgres", doctor.Error), "\n"), "fsync is off"); reported != (fsync == "off") {
		t.Errorf("fsync is %s; findings %+v", fsync, findings)
	}
}

func TestMissingSettingsAreAllReported(t *testing.T) {
	t.Parallel()
	d := doctor.Deps{Config: config.Default(), Clock: clock.System{}}
	findings := check(t, d)
	if got := find(findings, "config", doctor.Error); len(got) != 3 {
		t.Errorf("findings are %q", got)
	}
}

func TestServicesThatCannotBeReachedAreReported(t *testing.T) {
	t.Parallel()
	d := deps(t, "postgres://shop:hunter2@127.0.0.1:1/seckill?sslmode=disable", "redis://:hunter2@127.0.0.1:1/0")
	findings := check(t, d)
	wants(t, findings, "postgres", doctor.Error, "cannot be reached at postgres://***@127.0.0.1:1/seckill")
	wants(t, findings, "redis", doctor.Error, "cannot be reached at redis://***@127.0.0.1:1/0")
	for _, f := range findings {
		if strings.Contains(f.Message, "hunter2") {
			t.Errorf("a password shows: %s", f.Message)
		}
	}
}

func TestADatabaseWithoutTablesIsReported(t *testing.T) {
	t.Parallel()
	d := deps(t, testdb.EmptyPostgresURL(t), testenv.RedisURL(t))
	wants(t, check(t, d), "postgres", doctor.Error, "run `seckill migrate up`")
}

func TestAnAddressThatMaySendPasswordsInPlainTextIsReported(t *testing.T) {
	t.Parallel()
	base := testdb.PostgresURL(t)
	for mode, want := range map[string]string{
		"":        "does not say how it is encrypted",
		"prefer":  "sslmode=prefer, which sends passwords in plain text",
		"allow":   "sslmode=allow, which sends passwords in plain text",
		"disable": "",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("sslmode", strings.TrimSpace(mode))
		if mode == "" {
			q.Del("sslmode")
		}
		u.RawQuery = q.Encode()
		got := strings.Join(find(check(t, deps(t, u.String(), testenv.RedisURL(t))), "postgres", doctor.Warning), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("sslmode %q: warnings %q, want %q", mode, got, want)
		}
	}
}

func TestSettingsOfPostgresThatLoseOrdersAreReported(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(testdb.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("synchronous_commit", "off")
	q.Set("default_transaction_read_only", "on")
	u.RawQuery = q.Encode()
	d := deps(t, u.String(), testenv.RedisURL(t), "SECKILL_DATABASE_POOL", "1000")
	findings := check(t, d)
	wants(t, findings, "postgres", doctor.Error, "synchronous_commit is off")
	wants(t, findings, "postgres", doctor.Error, "takes no writes")
	if got := find(findings, "postgres", doctor.Warning); len(got) != 1 || !strings.Contains(got[0], "may open 1002") {
		t.Errorf("warnings are %q", got)
	}
}

func TestServersWithoutConnectionsForCommandsAreReported(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t, "--maxclients", "150")
	database := testdb.PostgresURL(t)
	var most, reserved int
	err := testdb.Open(t, database).SQL.QueryRowContext(t.Context(),
		"SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int").Scan(&most, &reserved)
	if err != nil {
		t.Fatal(err)
	}
	for pool, warned := range map[int]bool{most - reserved - 5 - priority.ReserveConns: false, most - reserved - 4 - priority.ReserveConns: true} {
		findings := check(t, deps(t, database, server.URL(), "SECKILL_DATABASE_POOL", strconv.Itoa(pool)))
		wants(t, findings, "redis", doctor.Warning, "accepts 150 clients, and one process may open 200")
		if got := strings.Contains(strings.Join(find(findings, "postgres", doctor.Warning), ""), "commands such as audit"); got != warned {
			t.Errorf("a pool of %d beside %d connections, %d of them reserved: warned %t, want %t", pool, most, reserved, got, warned)
		}
	}
}

func TestRunningProcessesAreComparedWithMaxConnections(t *testing.T) {
	t.Parallel()
	database := testdb.PostgresURL(t)
	var most, reserved int
	err := testdb.Open(t, database).SQL.QueryRowContext(t.Context(),
		"SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int").Scan(&most, &reserved)
	if err != nil {
		t.Fatal(err)
	}
	pool := (most-reserved-5)/2 - priority.ReserveConns // two processes fit
	d := deps(t, database, testenv.RedisURL(t), "SECKILL_DATABASE_POOL", strconv.Itoa(pool))
	for n := 1; n <= 3; n++ {
		for range 2 { // connections of a process count once
			other := testdb.Open(t, database+"&application_name="+url.QueryEscape(fmt.Sprintf("%s host/%d", postgres.Application, n)))
			if err := other.SQL.PingContext(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		findings := check(t, d)
		if n <= 2 {
			wants(t, findings, "postgres", doctor.OK, fmt.Sprintf("enough for 2 processes with up to %d connections each (SECKILL_DATABASE_POOL and 2), and for commands; %d run now", pool+2, n))
		} else {
			wants(t, findings, "postgres", doctor.Warning, fmt.Sprintf("3 processes run, and with up to %d connections each (SECKILL_DATABASE_POOL and 2) they may open %d; raise it to %d, lower the setting to %d",
				pool+2, 3*(pool+2), 3*(pool+2)+reserved+5, (most-reserved-5)/3-2))
		}
	}
}

func TestARedisThatEvictsIsAnError(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t, "--maxmemory-policy", "allkeys-lru", "--appendonly", "no")
	findings := check(t, deps(t, testdb.PostgresURL(t), server.URL()))
	wants(t, findings, "redis", doctor.Error, "evicts (maxmemory-policy allkeys-lru)")
	if got := find(findings, "redis", doctor.Warning); len(got) != 1 || !strings.Contains(got[0], "append-only") {
		t.Errorf("warnings are %q", got)
	}
}

func TestWhatAFailoverOrACrashOfRedisLosesIsReported(t *testing.T) {
	t.Parallel()
	master := testenv.RedisServer(t, "--appendfsync", "no")
	findings := func() []doctor.Finding { return check(t, deps(t, testdb.PostgresURL(t), master.URL())) }
	wants(t, findings(), "redis", doctor.Warning, "thirty seconds of orders")
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	testenv.RedisServer(t, "--replicaof", host+" "+port)
	admin := master.Conn().Cmd
	testenv.Eventually(t, testenv.Wait, func() bool {
		return strings.Contains(admin.Info(t.Context(), "replication").Val(), "connected_slaves:1")
	}, "the replica is attached")
	wants(t, findings(), "redis", doctor.Warning, "a failover loses what an isolated master accepts")
	for setting, value := range map[string]string{"appendfsync": "always", "min-replicas-to-write": "1"} {
		if err := admin.ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(findings(), "redis", doctor.Warning); len(got) != 0 {
		t.Errorf("warnings are %q", got)
	}
}

func TestARedisWithoutScriptsIsAnErrorThatSaysWhatToGrant(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	if err := server.Conn().Cmd.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-@scripting").Err(); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(server.URL(), "redis://", "redis://app:pw@", 1)
	wants(t, check(t, deps(t, testdb.PostgresURL(t), url)), "redis", doctor.Error, "runs no Lua scripts")
	conn, err := redisconn.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.Check(t.Context()); !errors.Is(err, redisconn.ErrNoLua) || !strings.Contains(err.Error(), "+evalsha") {
		t.Errorf("serve is refused with %v, want ErrNoLua and what to grant", err)
	}
}

func TestARedisUserWithoutINFOIsAnErrorThatSaysWhatToGrant(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	if err := server.Conn().Cmd.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(server.URL(), "redis://", "redis://app:pw@", 1)
	wants(t, check(t, deps(t, testdb.PostgresURL(t), url)), "redis", doctor.Error, "+info")
}

func TestClocksThatDisagreeAreReported(t *testing.T) {
	t.Parallel()
	d := healthy(t)
	d.Clock = clock.NewFake(time.Now().Add(-2 * time.Hour))
	findings := check(t, d)
	wants(t, findings, "clock", doctor.Error, "postgres is 2h")
	wants(t, findings, "clock", doctor.Error, "off this host")
	if got := find(findings, "clock", doctor.Error); len(got) != 2 {
		t.Errorf("findings are %q", got)
	}
}

func TestWhatAnOperatorShouldKnowIsAWarning(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seckill.toml")
	if err := os.WriteFile(file, []byte(`jwt_key = "`+key+`"`), 0o644); err != nil {
		t.Fatal(err)
	}
	d := deps(t, testdb.PostgresURL(t), testenv.RedisURL(t),
		"SECKILL_JWT_KEY", "", "SECKILL_CONFIG", file, "SECKILL_ADMIN_ADDR", "0.0.0.0:9090", "SECKILL_HTP_ADDR", ":1", "SECKILL_SANDBOX", "off", "SECKILL_PUBLIC_URL", "https://shop.example.com")
	findings := check(t, d)
	wants(t, findings, "config", doctor.Warning, "SECKILL_HTP_ADDR is no setting")
	wants(t, findings, "config", doctor.Warning, "open to other users")
	wants(t, findings, "config", doctor.Warning, "admin listener is on 0.0.0.0:9090")
	wants(t, findings, "config", doctor.Warning, "orders cannot be paid")
	wants(t, findings, "config", doctor.Warning, "SECKILL_TRUSTED_PROXIES is not set")
}

func TestFindingsArePrintedForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	findings := []doctor.Finding{{Area: "redis", Level: doctor.Error, Message: "gone"}, {Area: "config", Level: doctor.OK, Message: "fit"}}
	var table, text bytes.Buffer
	if err := doctor.WriteTable(&table, findings); err != nil {
		t.Fatal(err)
	}
	if want := "error  redis   gone\nok     config  fit\n"; table.String() != want {
		t.Errorf("table is\n%swant\n%s", table.String(), want)
	}
	if err := doctor.WriteJSON(&text, findings); err != nil {
		t.Fatal(err)
	}
	var back struct {
		OK       bool
		Findings []doctor.Finding
	}
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back.OK || len(back.Findings) != 2 {
		t.Errorf("JSON is %s (%v)", text.String(), err)
	}
}
