package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// logged runs serve until it listens, ends it with SIGTERM, and returns its log.
func logged(t *testing.T, environ []string, args ...string) []map[string]any {
	t.Helper()
	environ = append(environ, "SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0",
		"SECKILL_LOG_LEVEL=info", "SECKILL_LOG_FORMAT=json")
	cmd := process(t, environ, append([]string{"serve"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, line)
		if line["msg"] == "listening" {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := waitFor(cmd.Wait); err != nil {
		t.Errorf("serve ended with %v\n%v", err, all)
	}
	return all
}

// saying returns the indexes of the lines with a message.
func saying(lines []map[string]any, message string) (at []int) {
	for i, line := range lines {
		if text, _ := line["msg"].(string); strings.HasPrefix(text, message) {
			at = append(at, i)
		}
	}
	return at
}

func TestServeSaysThatOrdersCannotBePaidWithoutTheSandbox(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]int{"SECKILL_SANDBOX=off": 1, "SECKILL_SANDBOX=trial": 0} {
		lines := logged(t, append(services(t), "SECKILL_PROFILE=production", setting))
		found := saying(lines, "no payment provider: orders cannot be paid")
		if len(found) != want {
			t.Fatalf("%s: said %d times, want %d: %v", setting, len(found), want, lines)
		}
		for _, at := range found {
			if text, _ := lines[at]["msg"].(string); lines[at]["level"] != "WARN" || !strings.Contains(text, "SECKILL_SANDBOX=trial") {
				t.Errorf("line is %v", lines[at])
			}
		}
	}
}

// During a rolling upgrade processes of both releases run; one of the former release that
// restarts must start.
func TestServeWarnsOfADatabaseOfANewerRelease(t *testing.T) {
	t.Parallel()
	environ := services(t)
	at := slices.IndexFunc(environ, func(v string) bool { return strings.HasPrefix(v, "SECKILL_DATABASE_URL=") })
	db, err := sql.Open("postgres", strings.TrimPrefix(environ[at], "SECKILL_DATABASE_URL="))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (29991231000000, true)"); err != nil {
		t.Fatal(err)
	}
	lines := logged(t, environ)
	found := saying(lines, "the database has migrations of a newer release")
	if len(found) != 1 || lines[found[0]]["level"] != "WARN" || lines[found[0]]["newer"] != 1.0 {
		t.Errorf("lines are %v", lines)
	}
	got := command(t, environ, "doctor")
	if !strings.Contains(got.stdout+got.stderr, "has 1 migrations of a newer release") {
		t.Errorf("the doctor found\n%s%s", got.stdout, got.stderr)
	}
}

func TestServeSaysWhenItDrainsAndWhenItHasEnded(t *testing.T) {
	t.Parallel()
	lines := logged(t, services(t))
	got := slices.Concat(saying(lines, "listening"), saying(lines, "draining"), saying(lines, "ended"))
	if len(got) != 3 || !slices.IsSorted(got) || got[2] != len(lines)-1 {
		t.Errorf("listening, draining and ended are lines %v of %v", got, lines)
	}
}

func TestAProcessWithoutAPublicListenerNamesNone(t *testing.T) {
	t.Parallel()
	lines := logged(t, services(t), "--roles", "worker")
	listening := saying(lines, "listening")
	if len(listening) != 1 {
		t.Fatalf("lines are %v", lines)
	}
	line := lines[listening[0]]
	if _, named := line["public"]; named || line["admin"] == nil {
		t.Errorf("line is %v", line)
	}
}

func TestTheLogShowsPublicSaleIDs(t *testing.T) {
	t.Parallel()
	got := command(t, append(services(t), "SECKILL_LOG_LEVEL=info"), "seed", "--users", "1", "--stock", "3")
	got.wants(t, exitOK, "sale loaded")
	_, after, _ := strings.Cut(got.stdout, "sale   ")
	if sale, _, _ := strings.Cut(after, "\n"); !strings.HasPrefix(sale, "sal_") || !strings.Contains(got.stderr, "sale="+sale) {
		t.Errorf("the log does not name %q:\n%s", sale, got.stderr)
	}
}
