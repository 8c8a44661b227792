//go:build ship

package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"seckill/internal/ops/apiclient"
	"seckill/internal/platform/captcha"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
	"seckill/web"
)

// deployment is the directory under test.
const deployment = "../../deploy"

// buyer is the account of a buyer.
type buyer struct{ Account, Password string }

// shop is a server in the production profile with its own services and an open sale.
type shop struct {
	t             testing.TB
	environ       []string
	public, admin string // addresses
	saleID        string
	itemID        string
	buyers        []buyer // each buys once
}

// binary returns the path of the release binary.
func binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("SHIP_BINARY") // set by scripts/ship
	if path == "" {
		t.Fatal("SHIP_BINARY is not set: run scripts/ship")
	}
	return path
}

// settings returns the environment of a production server with its own services.
func settings(t testing.TB) []string {
	t.Helper()
	return []string{
		"SECKILL_DATABASE_URL=" + testdb.ShortPostgresURL(t), "SECKILL_REDIS_URL=" + testenv.RedisServer(t).URL(),
		"SECKILL_JWT_KEY=" + strings.Repeat("ship", 12), "SECKILL_TRUSTED_PROXIES=127.0.0.1", "SECKILL_POW_MAX=10000",
		"SECKILL_PUBLIC_URL=https://shop.example.com", "SECKILL_LOG_FORMAT=json",
		"SECKILL_HTTP_ADDR=127.0.0.1:0", "SECKILL_ADMIN_ADDR=127.0.0.1:0", "SECKILL_SANDBOX=trial",
	}
}

// openShop starts the release binary and opens a sale.
func openShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{t: t, environ: settings(t)}
	s.seed()
	s.serve(exec.Command(binary(t), "serve"))
	return s
}

// seed creates an open sale with accounts.
func (s *shop) seed() {
	s.t.Helper()
	var seeded struct {
		SaleID, ItemID string
		Users          []buyer
	}
	if err := json.Unmarshal(s.command("seed", "--users", "8", "--stock", "8", "--yes-make-test-buyers", "--json"), &seeded); err != nil {
		s.t.Fatal(err)
	}
	s.saleID, s.itemID, s.buyers = seeded.SaleID, seeded.ItemID, seeded.Users
}

// command runs the binary until it ends and returns its standard output.
func (s *shop) command(args ...string) []byte {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), binary(s.t), args...)
	cmd.Env = s.environ
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("seckill %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return out
}

// serve starts a server until the test ends, and waits until it is ready.
func (s *shop) serve(cmd *exec.Cmd) (stop func()) {
	s.t.Helper()
	cmd.Env = s.environ
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var log bytes.Buffer
	listening, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(&log, lines.Text())
			var line struct {
				Msg           string
				Public, Admin net.TCPAddr
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				s.public, s.admin = line.Public.String(), line.Admin.String()
				close(listening)
			}
		}
		_ = cmd.Wait() // its exit code is not under test
	}()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		<-ended
	})
	s.t.Cleanup(stop)
	select {
	case <-listening:
	case <-ended:
		s.t.Fatalf("the server ended:\n%s", log.String())
	}
	testenv.Eventually(s.t, testenv.Wait, func() bool {
		response, err := http.Get("http://" + s.admin + "/readyz")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	}, "the server is ready")
	return stop
}

// client buys at one address, directly or through a proxy.
type client struct {
	*shop
	url   string // https://127.0.0.1:8443
	http  *http.Client
	token string
}

// document returns the shop's document with an operation. A production server accepts
// these with all settings.
func document(t testing.TB, operation string) string {
	t.Helper()
	texts, err := web.Documents()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if strings.Contains(text, " "+operation+"(") {
			return text
		}
	}
	t.Fatalf("the shop has no operation %s", operation)
	return ""
}

func (c *client) post(operation string, variables map[string]any, accept string) *http.Response {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"query": document(c.t, operation), "variables": variables})
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatalf("%s: %v", operation, err)
	}
	return response
}

// call sends a mutation with an input and returns the value at a path of its payload.
func (c *client) call(operation string, input map[string]any, path ...string) string {
	c.t.Helper()
	response := c.post(operation, map[string]any{"input": input}, "application/json")
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var answer struct{ Data map[string]any }
	if err := json.Unmarshal(text, &answer); err != nil {
		c.t.Fatalf("%s: %s: %v\n%s", operation, response.Status, err, text)
	}
	value, ok := dig(answer.Data, path...).(string)
	if !ok {
		c.t.Fatalf("%s: no %v in %s", operation, path, text)
	}
	return value
}

func dig(value any, path ...string) any {
	for _, step := range path {
		object, _ := value.(map[string]any)
		value = object[step]
	}
	return value
}

// reserve signs the next buyer in and buys one unit; it returns the order task.
func (c *client) reserve() string {
	c.t.Helper()
	b := c.buyers[0]
	c.buyers = c.buyers[1:]
	c.token = ""
	c.token = c.call("Login", map[string]any{"account": b.Account, "password": b.Password}, "login", "tokens", "accessToken")
	ask := map[string]any{"purpose": "SECKILL", "saleId": c.saleID, "kind": "PROOF_OF_WORK"}
	response := c.post("CreateCaptcha", map[string]any{"input": ask}, "application/json")
	defer response.Body.Close()
	var answer struct {
		Data struct {
			CreateCaptcha struct {
				Challenge struct{ ID, Parameters string }
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		c.t.Fatal(err)
	}
	challenge := answer.Data.CreateCaptcha.Challenge
	captcha := map[string]any{"challengeId": challenge.ID, "answer": solve(c.t, challenge.Parameters)}
	path := c.call("IssuePath", map[string]any{"itemId": c.itemID, "captcha": captcha}, "issueSeckillPath", "path", "token")
	buy := map[string]any{"itemId": c.itemID, "pathToken": path, "idempotencyKey": "ship-" + challenge.ID[len(challenge.ID)-32:]}
	return c.call("PlaceOrder", buy, "placeOrder", "orderTask", "id")
}

// solve returns the solution of a proof of work.
func solve(t testing.TB, parameters string) string {
	t.Helper()
	solution, err := captcha.Solve(parameters)
	if err != nil {
		t.Fatal(err)
	}
	return solution
}

// followSocket follows the task by WebSocket until its order exists.
func (c *client) followSocket(task string) {
	c.t.Helper()
	api := &apiclient.Client{URL: c.url, HTTP: c.http, Token: c.token}
	err := api.Subscribe(c.t.Context(), document(c.t, "TaskStatus"), map[string]any{"id": task}, func(data json.RawMessage) (bool, error) {
		var event map[string]any
		err := json.Unmarshal(data, &event)
		return dig(event, "orderTaskStatus", "orderTask", "status") == "SUCCEEDED", err
	})
	if err != nil {
		c.t.Fatalf("the socket ended before the order: %v", err)
	}
}

// followEvents follows the task by SSE until its order exists.
func (c *client) followEvents(task string) {
	c.t.Helper()
	response := c.post("TaskStatus", map[string]any{"id": task}, "text/event-stream")
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, _ := strings.CutPrefix(lines.Text(), "data:")
		var event map[string]any
		if json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		if dig(event, "data", "orderTaskStatus", "orderTask", "status") == "SUCCEEDED" {
			return
		}
	}
	c.t.Fatal("the stream of events ended before the order")
}

// buysThrough buys one unit with WebSocket and one with SSE, over HTTP, at an address.
func (s *shop) buysThrough(url string, with *http.Client) {
	s.t.Helper()
	c := &client{shop: s, url: url, http: with}
	c.followSocket(c.reserve())
	c.followEvents(c.reserve())
	s.buyers = c.buyers
	s.command("audit", "--sale", s.saleID)
}
