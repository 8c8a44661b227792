package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"seckill/internal/ops/drill"
	"seckill/internal/testenv"
)

// verdictOf decodes a verdict and reports the checks that do not hold.
func verdictOf(t *testing.T, stdout string) drill.Verdict {
	t.Helper()
	var v drill.Verdict
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	for _, c := range v.Checks {
		if !c.OK {
			t.Errorf("%s does not hold: %s: %s", c.ID, c.Promise, c.Figures)
		}
	}
	if len(v.Checks) != 7 {
		t.Errorf("checks are %+v", v.Checks)
	}
	return v
}

func TestADrillBesideTheDemoHoldsEveryInvariant(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	admin := regexp.MustCompile(`(http://[^ /]+)/metrics`).FindStringSubmatch(d.said)
	if admin == nil {
		t.Fatalf("the demo does not print its admin address:\n%s", d.said)
	}
	got := command(t, nil, "drill", "--url", d.url, "--admin", admin[1], "--buyers", "30", "--stock", "12", "--faults", "cut", "--fault-every", "300ms", "--json")
	got.wants(t, exitOK, "30 buyers for 12 units")
	v := verdictOf(t, got.stdout)
	if !v.OK || v.Counts.Accepted != 12 || v.Counts.Orders != 12 || v.Audit.Postgres.Held != 12 || v.Faults["cut"] == 0 || v.Counts.Seeded != 0 {
		t.Errorf("verdict is %+v, audit %+v", v, v.Audit)
	}
	refused := 0
	for _, n := range v.Counts.Refusals {
		refused += n
	}
	if refused != 18 {
		t.Errorf("refusals are %v, want 18", v.Counts.Refusals)
	}
	for _, l := range v.Latencies {
		if l.Calls == 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max {
			t.Errorf("latency is %+v", l)
		}
	}
	sales := d.ask(`{ sales(first: 1, filter: { search: "Morning" }) { edges { node { id } } } }`)
	id := sales["sales"].(map[string]any)["edges"].([]any)[0].(map[string]any)["node"].(map[string]any)["id"].(string) // as asked
	got = command(t, nil, "drill", "--url", d.url, "--admin", admin[1], "--sale", id, "--buyers", "3")
	got.wants(t, exitOK)
	if !strings.Contains(got.stdout, " units: 3 accepted, 3 orders") || !strings.Contains(got.stdout, "every invariant holds") {
		t.Errorf("printed\n%s", got.stdout)
	}
}

func TestADrillOfAServerHoldsEveryInvariantUnderFaults(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisServer(t, "--maxmemory-policy", "noeviction") // of its own: the drill closes all connections
	environ := append(services(t), "SECKILL_REDIS_URL="+redis.URL(), "SECKILL_POW_MAX=10000",
		"SECKILL_TRUSTED_PROXIES=127.0.0.1/32", "SECKILL_LOG_FORMAT=json", "SECKILL_LOG_LEVEL=info")
	public := testenv.ReserveAddr(t)
	server := process(t, environ, "serve", "--roles", "api,scheduler", "--http-addr", public, "--admin-addr", "127.0.0.1:0")
	listening(t, server)
	run := process(t, environ, "drill", "--url", "http://"+public, "--buyers", "60", "--stock", "40", "--over", "10s", "--faults", "cut,redis,worker", "--fault-every", "1s", "--fault-for", "20s", "--json")
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	v := verdictOf(t, stdout.String())
	if v.Counts.Orders != 40 || v.Audit.Postgres.Orders != 40 {
		t.Errorf("counts are %+v, audit %+v", v.Counts, v.Audit)
	}
	for _, fault := range []string{"cut", "redis", "worker"} {
		if v.Faults[fault] == 0 {
			t.Errorf("no fault %s: %v", fault, v.Faults)
		}
	}
}

// listening starts a server and waits until it logs that it listens. It is killed at the
// end of the test.
func listening(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	said := &notice{want: `"listening"`, seen: make(chan struct{})}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	select {
	case <-said.seen:
	case <-ended:
		t.Fatalf("the server ended:\n%s", said.text.String())
	}
}

// notice is a writer that closes seen once it has been written want.
type notice struct {
	want string
	seen chan struct{}
	text bytes.Buffer
	done bool
}

func (n *notice) Write(p []byte) (int, error) {
	if !n.done {
		n.text.Write(p)
		if n.done = strings.Contains(n.text.String(), n.want); n.done {
			close(n.seen)
		}
	}
	return len(p), nil
}

func TestADrillNeedsPermissionForOtherMachines(t *testing.T) {
	t.Parallel()
	command(t, nil, "drill", "--url", "http://192.0.2.1:8080").wants(t, exitUnfit, "--allow-remote")
	command(t, nil, "drill", "--admin", "http://192.0.2.1:9090").wants(t, exitUnfit, "demo on this machine")
	command(t, nil, "drill", "--buyers", "20001").wants(t, exitUnfit, "between 1 and 20000")
	command(t, nil, "drill", "--faults", "fire").wants(t, exitUnfit, "cut, redis, worker")
	command(t, nil, "drill", "--faults", "worker").wants(t, exitUnfit, "SECKILL_DATABASE_URL")
	command(t, append(services(t), "SECKILL_REDIS_URL=redis://192.0.2.1:6379/0"), "drill", "--faults", "redis").wants(t, exitUnfit, "another machine")
	command(t, append(services(t), "SECKILL_PROFILE=production"), "drill").wants(t, exitUnfit, "--yes-make-test-buyers")
}
