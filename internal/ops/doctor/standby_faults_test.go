//go:build faults

package doctor_test

import (
	"strings"
	"testing"

	"seckill/internal/ops/doctor"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestStandbysAreReportedWithWhatAFailoverLoses(t *testing.T) {
	t.Parallel()
	servers := testdb.Replicate(t)
	db := testdb.Open(t, servers.PrimaryURL())
	says := func(address string, level doctor.Level, part string) {
		t.Helper()
		wants(t, check(t, deps(t, address, testenv.RedisURL(t), "SECKILL_PROFILE", "development")), "postgres", level, part)
	}
	exec := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := db.SQL.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	says(servers.PrimaryURL(), doctor.Warning, "has 1 asynchronous standbys, up to ")
	says(servers.StandbyURL(), doctor.Error, "takes no writes: it is a replica or set to read-only")
	exec(`CREATE ROLE clerk LOGIN`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk`)
	clerk := strings.Replace(servers.PrimaryURL(), "//seckill@", "//clerk@", 1)
	says(clerk, doctor.Warning, "has 1 standbys, and does not show this role whether they are synchronous: GRANT pg_monitor")
	exec(`GRANT pg_monitor TO clerk`)
	says(clerk, doctor.Warning, "has 1 asynchronous standbys, up to ")

	servers.Synchronous("*")
	says(servers.PrimaryURL(), doctor.OK, "waits for synchronous standbys: a failover to one loses nothing")
	exec(`ALTER DATABASE shop SET synchronous_commit = local`)
	says(servers.PrimaryURL(), doctor.Warning, "synchronous_commit is local: commits do not wait for the standbys")
	exec(`ALTER DATABASE shop RESET synchronous_commit`)
	servers.Synchronous("another")
	says(servers.PrimaryURL(), doctor.Warning, "has 1 standbys that are not synchronous")
}
