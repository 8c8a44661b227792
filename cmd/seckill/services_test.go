package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/internal/buy/reservation"
	"seckill/internal/gate/audit"
	"seckill/internal/ops/seed"
	"seckill/internal/platform/id"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestMigrateBringsAnEmptyDatabaseUpToDate(t *testing.T) {
	t.Parallel()
	environ := []string{"SECKILL_DATABASE_URL=" + testdb.EmptyPostgresURL(t)}
	before := command(t, environ, "migrate", "status")
	before.wants(t, exitFinding)
	if !strings.Contains(before.stdout, "missing") {
		t.Errorf("status is %s", before.stdout)
	}
	command(t, environ, "migrate", "up").wants(t, exitOK)
	command(t, environ, "migrate", "status", "--json").wants(t, exitOK)
	if again := command(t, environ, "migrate", "up"); again.stdout != "applied 0 migrations\n" {
		t.Errorf("the second time: %s", again.stdout)
	}
}

func TestServeRefusesAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_DATABASE_URL="+testdb.EmptyPostgresURL(t))
	got := command(t, environ, "serve")
	got.wants(t, exitUnfit, "seckill migrate up")
	if strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("more than one line:\n%s", got.stderr)
	}
}

func TestServeRefusesARedisThatEvicts(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t, "--maxmemory-policy", "allkeys-lru")
	got := command(t, append(services(t), "SECKILL_REDIS_URL="+server.URL()), "serve")
	got.wants(t, exitUnfit, "SECKILL_REDIS_URL: ", "CONFIG SET maxmemory-policy noeviction")
	if strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("more than one line:\n%s", got.stderr)
	}
}

func TestServeRefusesServicesThatAreAway(t *testing.T) {
	t.Parallel()
	for service, setting := range map[string]string{
		"redis": "SECKILL_REDIS_URL=redis://127.0.0.1:1/0", "postgres": "SECKILL_DATABASE_URL=postgres://127.0.0.1:1/x?sslmode=disable",
	} {
		out, err := process(t, append(services(t), setting), "serve").CombinedOutput()
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok || failed.ExitCode() != exitUnfit {
			t.Errorf("%s away: %v", service, err)
		}
		line := string(out)
		if !strings.HasPrefix(line, "seckill: ") || !strings.Contains(line, service) || !strings.Contains(line, "refused") || strings.Count(line, "\n") != 1 {
			t.Errorf("%s away: not one clear line:\n%s", service, line)
		}
	}
}

func TestASeededSaleAddsUpUntilItIsSpoilt(t *testing.T) {
	t.Parallel()
	environ := services(t)
	seeded := command(t, environ, "seed", "--users", "5", "--stock", "7", "--paths", "--path-ttl", "10m", "--json")
	seeded.wants(t, exitOK)
	var result seed.Result
	if err := json.Unmarshal([]byte(seeded.stdout), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Users) != 5 {
		t.Fatalf("%d users", len(result.Users))
	}
	for _, u := range result.Users {
		if u.Account == "" || u.Password == "" || strings.Count(u.AccessToken, ".") != 2 || len(u.Path) < 16 {
			t.Errorf("user is %+v", u)
		}
	}
	checked := command(t, environ, "audit", "--sale", result.SaleID, "--json")
	checked.wants(t, exitOK)
	var report audit.Report
	if err := json.Unmarshal([]byte(checked.stdout), &report); err != nil || !report.OK || report.Postgres.Total != 7 || report.Redis.Stock != 7 {
		t.Errorf("report is %+v (%v)", report, err)
	}
	burnUnit(t, environ, result)
	spoilt := command(t, environ, "audit", "--sale", result.SaleID)
	spoilt.wants(t, exitFinding)
	if !strings.Contains(spoilt.stdout, "finding") || !strings.Contains(spoilt.stdout, "does not add up") {
		t.Errorf("audit says\n%s", spoilt.stdout)
	}
}

// burnUnit removes a unit from the gate in Redis without a reservation.
func burnUnit(t *testing.T, environ []string, result seed.Result) {
	t.Helper()
	conn, _ := testenv.Redis(t)
	prefix, _ := lookupIn(environ)("SECKILL_REDIS_PREFIX")
	sale, err := id.ParseSale(result.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	item, err := id.ParseItem(result.ItemID)
	if err != nil {
		t.Fatal(err)
	}
	itemKey := reservation.Keys{Prefix: prefix}.Item(id.ShardOf(sale), item)
	if err := conn.Cmd.HIncrBy(t.Context(), itemKey, "stock", -1).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestPathsAreNotSeededInProductionNorTheDemo(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_PROFILE=production")
	command(t, environ, "seed", "--users", "1", "--paths", "--yes-make-test-buyers").wants(t, exitUnfit, "--paths goes around the captcha")
	command(t, environ, "seed", "--demo").wants(t, exitUnfit, "whose password is public")
}

func TestProductionIsSeededOnlyOnRequest(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_PROFILE=production")
	command(t, environ, "seed", "--users", "1", "--stock", "1").wants(t, exitUnfit, "--yes-make-test-buyers")
	made := command(t, environ, "seed", "--users", "1", "--stock", "1", "--yes-make-test-buyers")
	made.wants(t, exitOK)
	if !strings.Contains(made.stdout, "sale   sal_") {
		t.Errorf("it printed\n%s", made.stdout)
	}
}

func TestTheDemoIsSeededOnce(t *testing.T) {
	t.Parallel()
	environ := services(t)
	seeded := command(t, environ, "seed", "--demo", "--json")
	seeded.wants(t, exitOK)
	var made demoSeeded
	if err := json.Unmarshal([]byte(seeded.stdout), &made); err != nil {
		t.Fatal(err)
	}
	if len(made.Sales) != 4 || len(made.Accounts) != 4 {
		t.Fatalf("made %+v", made)
	}
	for _, each := range made.Sales {
		command(t, environ, "audit", "--sale", each.SaleID).wants(t, exitOK)
	}
	command(t, environ, "seed", "--demo").wants(t, exitUnfit, "already")
}

func TestAnUnknownSaleIsExitTwo(t *testing.T) {
	t.Parallel()
	command(t, services(t), "audit", "--sale", id.New[id.Sale]().Public()).wants(t, exitUnfit, "no such sale")
}

func TestTheFirstAdministratorIsMadeByTheCommand(t *testing.T) {
	t.Parallel()
	environ := services(t)
	create := []string{"user", "create", "--account", "Admin@Example.com", "--role", "admin"}
	made := commandWithInput(t, "a long enough password\n", environ, create...)
	made.wants(t, exitOK)
	if !regexp.MustCompile(`^usr_[0-9a-z]{26} ADMIN\n$`).MatchString(made.stdout) {
		t.Errorf("printed %q", made.stdout)
	}
	commandWithInput(t, "a long enough password\n", environ, create...).wants(t, exitUnfit, "seckill: ")
	command(t, environ, create...).wants(t, exitUnfit, "no password")
	command(t, environ, "user", "create", "--account", "x@example.com", "--role", "king", "--password", "a long enough password").wants(t, exitUnfit)
	command(t, environ, "user", "create", "--account", "y@example.com", "--password", "short").wants(t, exitUnfit)
	command(t, environ, "user", "create", "--account", "nonsense", "--password", "a long enough password").wants(t, exitUnfit)
}

func TestDoctorIsContentWithAFitInstallation(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_TEST_REDIS_URL=x", "SECKILL_PROFILE=development") // the private Postgres has no fsync
	got := command(t, environ, "doctor", "--json")
	got.wants(t, exitOK)
	if !strings.Contains(got.stdout, `"ok": true`) {
		t.Errorf("doctor says %s", got.stdout)
	}
	bad := command(t, nil, "doctor")
	bad.wants(t, exitFinding)
	if strings.Count(bad.stdout, "is not set") != 3 {
		t.Errorf("doctor says %s", bad.stdout)
	}
}

func TestTheDemoStartsWithNothingAndStopsCleanly(t *testing.T) {
	t.Parallel()
	cmd := process(t, nil, "demo", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--request-timeout", "1m", "--drain-timeout", "2m")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if found := regexp.MustCompile(`http://[^ ]+/playground`).FindString(lines.Text()); found != "" {
				address <- found
			}
		}
		close(address)
	}()
	select {
	case at, ok := <-address:
		if !ok {
			t.Fatalf("the demo ended: %v\n%s", cmd.Wait(), stderr.String())
		}
		get(t, at)
	case <-time.After(testenv.Wait):
		t.Fatal("the demo says no address")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(cmd.Wait); err != nil {
		t.Errorf("the demo ended with %v\n%s", err, stderr.String())
	}
}

func get(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: testenv.Wait}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s answers %s", url, response.Status)
	}
}

// waitFor waits for the end of a process, with a timeout.
func waitFor(wait func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(testenv.Wait):
		return fmt.Errorf("it did not end in 20 s")
	}
}

func TestServeDrainsOnSIGTERM(t *testing.T) {
	t.Parallel()
	environ := append(services(t), "SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0",
		"SECKILL_LOG_LEVEL=info", "SECKILL_LOG_FORMAT=json")
	cmd := process(t, environ, "serve")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		var seen strings.Builder
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			seen.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), `"listening"`) {
				listening <- ""
			}
		}
		listening <- seen.String()
	}()
	if said := <-listening; said != "" {
		t.Fatalf("serve ended: %v\n%s", cmd.Wait(), said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(cmd.Wait); err != nil {
		t.Errorf("serve ended with %v\n%s", err, <-listening)
	}
}
