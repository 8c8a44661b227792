//go:build ship

package deploy

import (
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/internal/ops/apiclient"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

// shopOrigin is the origin of a shop of the operator's own, whose pages sell here.
const shopOrigin = "https://www.shop.example"

// foreignPage sends requests as a browser does for a page of shopOrigin: with preflights.
type foreignPage struct{ t *testing.T }

// RoundTrip sends a request that the preflight allows.
func (f foreignPage) RoundTrip(r *http.Request) (*http.Response, error) {
	var names []string
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	// as tracing libraries and clients add them
	names = append(names, "traceparent", "apollographql-client-name")
	slices.Sort(names)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.Header.Set("Apollographql-Client-Name", "shop")
	r.Header.Set("Origin", shopOrigin)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodOptions, r.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	ask.Header = http.Header{"Origin": {shopOrigin}, "Access-Control-Request-Method": {r.Method}, "Access-Control-Request-Headers": {strings.Join(names, ",")}}
	allowed, err := http.DefaultTransport.RoundTrip(ask)
	if err != nil {
		return nil, err
	}
	allowed.Body.Close()
	granted := strings.Split(strings.ToLower(allowed.Header.Get("Access-Control-Allow-Headers")), ", ")
	for _, name := range names {
		if !slices.Contains(granted, name) {
			f.t.Errorf("the preflight does not grant %s: %s %v", name, allowed.Status, allowed.Header)
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && answer.Header.Get("Access-Control-Allow-Origin") != shopOrigin {
		f.t.Errorf("the page may not read the answer: %s %v", answer.Status, answer.Header)
	}
	return answer, err
}

// diary notes the commands that a person types, and how long the machine took for each step.
type diary struct {
	began time.Time
	typed int
	lines []string
}

func (d *diary) step(what string, commands int) {
	d.typed += commands
	d.lines = append(d.lines, fmt.Sprintf("%6.2f s  %d typed  %s", time.Since(d.began).Seconds(), d.typed, what))
}

// TestFromAnEmptyMachineToTheFirstPaidOrderAndBack follows docs/get-started.md and the backup of
// docs/operations.md: init, first paid order by a page of another origin, restart, backup, restore,
// audit.
func TestFromAnEmptyMachineToTheFirstPaidOrderAndBack(t *testing.T) {
	server, redis := testdb.StartAlone(t), testenv.RedisServer(t)
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "seckill.toml")
	address := "postgres://newshop@" + at.Host + "/newshop?sslmode=disable"
	d, before := &diary{began: time.Now()}, machineTime(t)

	initialise := exec.CommandContext(t.Context(), binary(t), "init", "--file", file, "--database-url", address, "--database-admin-url", server.URL(),
		"--redis-url", redis.URL(), "--account", "admin@example.com", "--seed")
	// the server of tests has fsync = off, which is the one finding
	out, _ := initialise.CombinedOutput()
	if code := initialise.ProcessState.ExitCode(); code > 1 || strings.Count(string(out), "\nerror ") != 1 || !strings.Contains(string(out), "Next:") {
		t.Fatalf("init: exit code %d\n%s", code, out)
	}
	d.step("seckill init --seed", 1)

	s := &shop{t: t, environ: []string{
		"SECKILL_CONFIG=" + file, "SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0", "SECKILL_LOG_FORMAT=json",
		"SECKILL_POW_MAX=10000", "SECKILL_ALLOWED_ORIGINS=" + shopOrigin,
	}}
	s.readSeeded(string(out))
	stop := s.serve(exec.Command(binary(t), "serve"))
	d.step("seckill serve", 1)
	page := &client{shop: s, url: "http://" + s.public, http: &http.Client{Transport: foreignPage{t}}}
	page.paysFor(page.orders(t))
	d.step("first paid order, by a page of another origin", 0)

	stop()
	stop = s.serve(exec.Command(binary(t), "serve"))
	page.url = "http://" + s.public
	page.waitUntilOpen()
	d.step("restart", 0)
	dump := filepath.Join(t.TempDir(), "backup")
	run(t, "pg_dump", "--format=custom", "--file="+dump, address)
	d.step("pg_dump", 1)

	page.paysFor(page.orders(t)) // lost with the server
	stop()
	run(t, "pg_restore", "--clean", "--if-exists", "--dbname="+address, dump)
	d.step("pg_restore", 1)
	stop = s.serve(exec.Command(binary(t), "serve"))
	page.url = "http://" + s.public
	page.waitUntilOpen()
	d.step("serve on the restored record", 0)
	page.paysFor(page.orders(t))
	s.command("audit", "--all")
	d.step("another paid order, seckill audit --all", 1)
	stop()
	took := machineTime(t) - before
	t.Logf("from an empty machine to the restored one, %.1f s of processor time:\n%s", took.Seconds(), strings.Join(d.lines, "\n"))
	if d.typed > 5 {
		t.Errorf("%d commands were typed", d.typed)
	}
	if took > 10*time.Second {
		t.Errorf("it took %s of processor time, more than 10 s", took)
	}
}

// readSeeded reads the sale and its accounts from what `seckill init --seed` prints.
func (s *shop) readSeeded(out string) {
	s.t.Helper()
	found := regexp.MustCompile(`sale +(\S+)\nitem +(\S+)\n(?s:.*)first +buyer000001(\S+), password (\S+)`).FindStringSubmatch(out)
	if found == nil {
		s.t.Fatalf("init names no sale:\n%s", out)
	}
	s.saleID, s.itemID = found[1], found[2]
	for i := range 10 {
		s.buyers = append(s.buyers, buyer{Account: fmt.Sprintf("buyer%06d%s", i+1, found[3]), Password: found[4]})
	}
}

// machineTime returns the processor time of all programs that this one has started and that have
// ended: unlike the clock, it does not depend on what else the machine does.
func machineTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// orders lets the next buyer order a unit and returns the order.
func (c *client) orders(t *testing.T) (api *apiclient.Client, order string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b := c.buyers[0]
	c.buyers = c.buyers[1:]
	api = &apiclient.Client{URL: c.url, HTTP: c.http}
	var err error
	api.Token, err = api.Login(t.Context(), b.Account, b.Password)
	must(err)
	challenge, err := api.Challenge(t.Context(), "SECKILL", c.saleID)
	must(err)
	solved, err := challenge.Solve()
	must(err)
	issued, err := api.IssuePath(t.Context(), c.itemID, solved)
	must(err)
	if issued.Path == nil {
		t.Fatal("the waiting room has no place for the only buyer")
	}
	task, err := api.PlaceOrder(t.Context(), c.itemID, issued.Path.Token, "first-"+challenge.ID[len(challenge.ID)-32:])
	must(err)
	return api, "ord_" + strings.TrimPrefix(task, "tsk_")
}

// paysFor pays an order at the built-in bank.
func (c *client) paysFor(api *apiclient.Client, order string) {
	c.t.Helper()
	c.waitForStatus(api, order, "PENDING_PAYMENT")
	var paying struct{ Payment struct{ RedirectURL string } }
	if err := api.Mutate(c.t.Context(), &paying, "payOrder", "payment { redirectUrl }",
		apiclient.Object{"orderId": order, "optionId": "sandbox", "idempotencyKey": order[4:]}); err != nil {
		c.t.Fatal(err)
	}
	bank, err := url.Parse(paying.Payment.RedirectURL)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.Post(c.url+bank.Path+"/approve", "", nil) //nolint:noctx // the buyer's browser
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
	c.waitForStatus(api, order, "PAID")
}

func (c *client) waitForStatus(api *apiclient.Client, order, status string) {
	c.t.Helper()
	testenv.Eventually(c.t, testenv.Wait, func() bool {
		var data struct{ Order struct{ Status string } }
		err := api.Execute(c.t.Context(), &data, "query($id: ID!) { order(by: {id: $id}) { status } }", apiclient.Object{"id": order})
		return err == nil && data.Order.Status == status
	}, "the order is "+status)
}
