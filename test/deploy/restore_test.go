//go:build ship

package deploy

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// The procedure of docs/operations.md: stop, restore Postgres, start with an empty Redis.
func TestABackupOfPostgresIsEnoughToGoOn(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, environ: settings(t)}
	s.seed()
	stop := s.serve(exec.Command(binary(t), "serve"))
	s.buysThrough("http://"+s.public, http.DefaultClient)
	stop()
	from, _ := strings.CutPrefix(s.environ[0], "SECKILL_DATABASE_URL=")
	dump := filepath.Join(t.TempDir(), "backup")
	run(t, "pg_dump", "--format=custom", "--file="+dump, from)
	into := testdb.EmptyPostgresURL(t)
	plain, _, _ := strings.Cut(into, "?") // libpq refuses the timeouts of the product's URLs
	run(t, "pg_restore", "--no-owner", "--dbname="+plain+"?sslmode=disable", dump)

	s.environ[0] = "SECKILL_DATABASE_URL=" + into
	s.environ[1] = "SECKILL_REDIS_URL=" + testenv.RedisServer(t).URL()
	s.serve(exec.Command(binary(t), "serve"))
	c := &client{shop: s, url: "http://" + s.public, http: http.DefaultClient}
	c.waitUntilOpen()
	s.buysThrough("http://"+s.public, http.DefaultClient)
}

// waitUntilOpen waits until the gate of the sale is rebuilt.
func (c *client) waitUntilOpen() {
	c.t.Helper()
	testenv.Eventually(c.t, testenv.Wait, func() bool {
		var report struct {
			OK    bool
			Redis struct{ Stock, Reserved int }
		}
		return json.Unmarshal(c.audit(), &report) == nil && report.OK && report.Redis.Stock > 0
	}, "the gate is rebuilt from the backup")
}

// audit returns the report of the sale, with or without findings.
func (c *client) audit() []byte {
	cmd := exec.CommandContext(c.t.Context(), binary(c.t), "audit", "--json", "--sale", c.saleID)
	cmd.Env = c.environ
	out, _ := cmd.Output() // exit code 1 means findings, which the report contains
	return out
}
