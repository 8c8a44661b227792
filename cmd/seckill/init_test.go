package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"seckill/internal/ops/apiclient"
	"seckill/internal/ops/doctor"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// empty is an installation that has services and nothing else: a Postgres without the role
// and the database, and a Redis.
type empty struct {
	t               *testing.T
	file            string
	address, admin  string // of Postgres
	redis           string
	environ, common []string
}

func newEmpty(t *testing.T) empty {
	t.Helper()
	server := testdb.StartAlone(t)
	server.AskPassword("shopkeeper")
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	e := empty{t: t, file: filepath.Join(t.TempDir(), "shop.toml"), admin: server.URL(), redis: testenv.RedisServer(t).URL(),
		environ: []string{"SECKILL_LOG_LEVEL=warn"}}
	e.address = "postgres://shopkeeper@" + u.Host + "/newshop?sslmode=disable"
	e.common = []string{"init", "--file", e.file, "--account", "admin@example.com"}
	return e
}

// first runs init for the first time.
func (e empty) first(more ...string) answer {
	e.t.Helper()
	return command(e.t, e.environ, slices.Concat(e.common, []string{"--database-url", e.address, "--redis-url", e.redis}, more)...)
}

// wantsDone checks that init came to its end: the private Postgres is without fsync, which the
// doctor finds.
func (a answer) wantsDone(t *testing.T, parts ...string) {
	t.Helper()
	if a.code != exitFinding || a.stderr != "" || strings.Count(a.stdout, string(doctor.Error)+"    ") > 1 {
		t.Errorf("exit code %d\n%s\n%s", a.code, a.stdout, a.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(a.stdout, part) {
			t.Errorf("it does not say %q:\n%s", part, a.stdout)
		}
	}
}

func TestFromNothingToTheFirstOrder(t *testing.T) {
	t.Parallel()
	e := newEmpty(t)
	got := e.first("--database-admin-url", e.admin, "--seed")
	got.wantsDone(t, "first  buyer000001.", "seckill seed --config "+e.file+" --remove", "role           shopkeeper created", "database       newshop created", "written, for its owner only",
		"administrator  admin@example.com, password ", "Next:\n  seckill serve --config "+e.file)
	info, err := os.Stat(e.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file of settings: %v %v", info, err)
	}
	text, err := os.ReadFile(e.file)
	if err != nil {
		t.Fatal(err)
	}

	again := command(t, e.environ, append(e.common, "--seed")...)
	again.wantsDone(t, e.file+" is there and is kept", "applied 0 migrations", "admin@example.com is there, with its password as it was")
	if strings.Contains(again.stdout, "first  buyer") {
		t.Errorf("another sale was made:\n%s", again.stdout)
	}
	if after, err := os.ReadFile(e.file); err != nil || string(after) != string(text) {
		t.Errorf("the file has changed: %v\n%s", err, after)
	}
	command(t, e.environ, slices.Concat(e.common, []string{"--redis-url", "redis://other:6379/0"})...).
		wants(t, exitUnfit, e.file+" is there, has another redis_url, and is not overwritten")

	environ := append(e.environ, "SECKILL_CONFIG="+e.file, "SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0", "SECKILL_LOG_FORMAT=json",
		"SECKILL_LOG_LEVEL=info", "SECKILL_POW_MAX=10000")
	seeded := command(t, environ, "seed", "--users", "1", "--stock", "1", "--yes-make-test-buyers", "--json")
	var sale struct {
		SaleID, ItemID string
		Users          []struct{ Account, Password string }
	}
	if err := json.Unmarshal([]byte(seeded.stdout), &sale); err != nil {
		t.Fatalf("%v\n%s", err, seeded.stderr)
	}
	buyer := &apiclient.Client{URL: "http://" + serving(t, environ), HTTP: &http.Client{Timeout: testenv.Wait}}
	if buyer.Token, err = buyer.Login(t.Context(), sale.Users[0].Account, sale.Users[0].Password); err != nil {
		t.Fatal(err)
	}
	challenge, err := buyer.Challenge(t.Context(), "SECKILL", sale.SaleID)
	if err != nil {
		t.Fatal(err)
	}
	solved, err := challenge.Solve()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := buyer.IssuePath(t.Context(), sale.ItemID, solved)
	if err != nil || issued.Path == nil {
		t.Fatalf("%+v %v", issued, err)
	}
	if task, err := buyer.PlaceOrder(t.Context(), sale.ItemID, issued.Path.Token, "the-first-order-of-all"); err != nil || task == "" {
		t.Errorf("the first order: %q %v", task, err)
	}
	_, password, _ := strings.Cut(got.stdout, "password ")
	password, _, _ = strings.Cut(password, " ")
	if _, err := buyer.Login(t.Context(), "admin@example.com", password); err != nil {
		t.Errorf("the administrator cannot sign in: %v", err)
	}
}

// serving starts a server until the end of the test, and returns its public address.
func serving(t *testing.T, environ []string) string {
	t.Helper()
	cmd := process(t, environ, "serve")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
	})
	var line struct{ Msg, Addr string }
	lines := bufio.NewScanner(stderr)
	for line.Msg != "listening" && lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
	}
	go func() {
		for lines.Scan() { // so that the pipe does not fill
		}
	}()
	if _, _, err := net.SplitHostPort(line.Addr); err != nil {
		t.Fatalf("the log names no address: %+v", line)
	}
	return line.Addr
}

func TestInitSaysWhatToDoWhenItMayNotCreate(t *testing.T) {
	t.Parallel()
	e := newEmpty(t)
	e.first().wants(t, exitUnfit, `postgres has no role "shopkeeper" with a database "newshop", and this user may not create them`,
		"give --database-admin-url", `CREATE ROLE "shopkeeper" LOGIN PASSWORD '…'; CREATE DATABASE "newshop" OWNER "shopkeeper"`)
	if _, err := os.Stat(e.file); err == nil {
		t.Error("a file of settings was written")
	}
	db, err := sql.Open("postgres", e.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE ROLE manager LOGIN CREATEROLE CREATEDB"); err != nil {
		t.Fatal(err)
	}
	manager := strings.Replace(e.address, "shopkeeper@", "manager@", 1) // of a managed service, and no superuser
	manager = strings.Replace(manager, "/newshop", "/postgres", 1)
	given := strings.Replace(e.address, "shopkeeper@", "shopkeeper:first%40one@", 1)
	e.address = given
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("a long password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.first("--database-admin-url", manager, "--password-file", password, "--shop", "stripe", "--public-url", "http://shop.example.com").
		wantsDoneForMoney(t)
	// the role is there, with another password
	e.file, e.address = filepath.Join(t.TempDir(), "second.toml"), strings.Replace(given, "first", "second", 1)
	e.common[2] = e.file
	e.first("--database-admin-url", e.admin).wants(t, exitUnfit, "SECKILL_DATABASE_URL: postgres cannot be used", "put user and password right")
}

// wantsDoneForMoney checks what init says of the settings of a sale for money.
func (a answer) wantsDoneForMoney(t *testing.T) {
	t.Helper()
	if a.code != exitFinding || strings.Contains(a.stdout, "password a") {
		t.Errorf("exit code %d\n%s\n%s", a.code, a.stdout, a.stderr)
	}
	lines := strings.Join(strings.Fields(a.stdout), " ")
	for _, part := range []string{
		"ok SECKILL_SANDBOX", "wrong SECKILL_PUBLIC_URL Stripe reports to https", "missing payments.stripe.key secret key of the Stripe account: write sk_live_…",
		"missing payments.stripe.webhook_secret", "optional payments.stripe.publishable_key", "missing SECKILL_SMTP_URL", "missing shop.seller_name",
	} {
		if !strings.Contains(lines, part) {
			t.Errorf("it does not say %q:\n%s", part, a.stdout)
		}
	}
}

func TestInitWithoutATerminalNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.toml")
	command(t, nil, "init", "--file", file).wants(t, exitUnfit, "--database-url is missing, and there is no terminal to ask on: give it, for example --database-url postgres://")
	command(t, nil, "init", "--file", file, "--database-url", "postgres://u@127.0.0.1:1/x", "--redis-url", "redis://127.0.0.1:1/0", "--account", "a@b.example").
		wants(t, exitUnfit, "SECKILL_REDIS_URL: redis cannot be reached", "start Redis there")
	command(t, nil, "init", "--seed", "--shop", "stripe").wants(t, exitUnfit, "--seed makes a sale and buyers for tests")
}
